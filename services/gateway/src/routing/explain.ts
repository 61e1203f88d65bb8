import type { Tenancy } from '@tollgate/contracts'
import type { Identity } from '../auth/identity.ts'
import { tenancyOf } from '../auth/tenancy.ts'
import type { AnswerNeeds } from '../conversation/answer.ts'
import type { RequestEnd } from '../conversation/request-end.ts'
import type { Dialect, Json, JsonObject, ToolEntry, Turn } from '../conversation/turn.ts'
import { parseChat } from '../dialects/chat/parse.ts'
import { parseMessages } from '../dialects/messages/parse.ts'
import { parseResponses } from '../dialects/responses/parse.ts'
import { planChain } from '../loop/admission.ts'
import { type Attempt, askedOf, type Chain, type PassedOver, pricedTools } from '../loop/chain.ts'
import { toolForKeyword } from '../loop/keywords.ts'
import { offeredBy } from '../loop/prepared.ts'
import { quoteChain } from '../loop/priced.ts'
import { builtinNamed } from '../loop/provider-tools.ts'
import type { ServerTools } from '../mcp-client/servers.ts'
import { toolOfType } from '../tools/registry.ts'
import { candidatesOf } from './candidates.ts'

export type ExplainNeeds = Pick<
  AnswerNeeds,
  'bus' | 'settings' | 'capabilities' | 'policies' | 'mixedTurns' | 'models' | 'routing' | 'coolDowns' | 'openServers'
>

export interface Question {
  dialect: Dialect
  tools: JsonObject[]
  headers: Record<string, string>
  container?: Json | undefined
  mcp_servers?: Json | undefined
  mcp_server_ids?: Json | undefined
}

/** A tool of the request, or one that comes with the candidate: what its backend runs by itself, what MCP servers have. */
export interface PlacedTool {
  tool: string
  runs_at: 'gateway' | 'provider' | 'client'
  /** The MCP server that has it. */
  server?: string
}

/**
 * What a policy would do with a request that declares these tools: the plan of each candidate, in the order of trying. Its
 * MCP servers are asked what they offer, as the request would ask them.
 */
export async function explain(
  needs: ExplainNeeds,
  policy: string,
  question: Question,
  identity: Identity,
  request: string,
  { signal, deadline }: Pick<RequestEnd, 'signal' | 'deadline'>,
) {
  const { bus, coolDowns, models, routing } = needs
  const { turn, bodyText } = turnOf(policy, question)
  const headers = Object.fromEntries(
    Object.entries(question.headers).map(([name, value]) => [name.toLowerCase(), value]),
  )
  const tenancy = tenancyOf(identity, request)
  const candidates = candidatesOf(routing.route(policy), policy, identity, models, question.dialect)
  const { attempts: planned, capabilities } = await planChain(needs, { turn, headers, bodyText, tenancy, candidates })
  const { attempts } = await quoteChain<Attempt>(bus, planned, {
    tenancy,
    budgetExempt: identity.budgetExempt,
    deadline,
    estimate: { inputTokens: 0, outputTokens: 0 },
    toolsOf: (attempt) => pricedTools([attempt], capabilities),
  })
  const offered = await offersOf(needs, turn, tenancy, attempts, { signal, deadline })
  const each = attempts.map((attempt) => {
    const condition = coolDowns?.of(attempt) ?? { state: 'ready' as const }
    return {
      model: `${attempt.provider.name}:${attempt.model}`,
      seat: candidates[attempt.number]?.seat?.name ?? null,
      ...fateOf(attempt, turn.tools, offered),
      state: condition.state,
      cooling_for_ms: condition.state === 'cooling' ? condition.forMs : null,
    }
  })
  // candidates that rest are tried after all others
  const rests = ({ action, state }: (typeof each)[number]) => action === 'ask' && state === 'cooling'
  return [...each.filter((one) => !rests(one)), ...each.filter(rests)]
}

/** Nobody is connected to for a request that would be refused. */
async function offersOf(
  { openServers }: ExplainNeeds,
  turn: Turn,
  tenancy: Tenancy,
  chain: Chain,
  limits: Pick<RequestEnd, 'signal' | 'deadline'>,
): Promise<readonly ServerTools[]> {
  if (askedOf(chain).length === 0) return []
  const servers = await openServers(turn.mcpServers, tenancy, limits)
  try {
    return await offeredBy(servers, turn, chain)
  } finally {
    servers?.close()
  }
}

function fateOf(attempt: Attempt | PassedOver, declared: ToolEntry[], offered: readonly ServerTools[]) {
  if ('refused' in attempt) return { action: 'skip' as const, why: attempt.refused.message, tools: [] }
  return { action: 'ask' as const, why: null, tools: placed(attempt, declared, offered) }
}

function placed({ plan: { owned, seat } }: Attempt, declared: ToolEntry[], offered: readonly ServerTools[]) {
  const asked = declared.map((entry): PlacedTool => {
    if (entry.kind === 'function') return { tool: entry.name, runs_at: 'client' }
    const ours = toolOfType(entry.type) ?? toolForKeyword(entry.type)
    const here = ours !== undefined && owned.has(ours.name)
    return { tool: builtinNamed(entry) ?? entry.type, runs_at: here ? 'gateway' : 'provider' }
  })
  const named = new Set(asked.map(({ tool }) => tool))
  const ofBackend = [...(seat?.executed ?? []), ...(seat?.delegated === undefined ? [] : [seat.delegated])]
  const ofServers = offered.flatMap(({ tools }) => tools)
  return [
    ...asked,
    ...ofBackend.filter((tool) => !named.has(tool)).map((tool): PlacedTool => ({ tool, runs_at: 'provider' })),
    ...ofServers.map(
      ({ name, server }): PlacedTool => ({ tool: name, runs_at: 'gateway', ...(server !== undefined && { server }) }),
    ),
  ]
}

/** The shortest request of the dialect that declares these tools; refused as that request would be. */
function turnOf(
  model: string,
  { dialect, tools, container, mcp_servers, mcp_server_ids }: Question,
): { turn: Turn; bodyText: string } {
  const said = [{ role: 'user', content: 'Hello' }]
  const more = {
    ...(tools.length > 0 && { tools }),
    ...(container !== undefined && { container }),
    ...(mcp_servers !== undefined && { mcp_servers }),
    ...(mcp_server_ids !== undefined && { mcp_server_ids }),
  }
  const body = {
    chat: { model, messages: said, ...more },
    messages: { model, max_tokens: 1, messages: said, ...more },
    responses: { model, input: 'Hello', ...more },
  }[dialect]
  const bodyText = JSON.stringify(body)
  switch (dialect) {
    case 'chat':
      return { turn: parseChat(body, bodyText.length), bodyText }
    case 'messages':
      return { turn: parseMessages(body, bodyText.length, {}), bodyText }
    case 'responses':
      return { turn: parseResponses(body, bodyText.length).turn, bodyText }
    default:
      return dialect satisfies never
  }
}

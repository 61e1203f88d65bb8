import type { Identity } from '../auth/identity.ts'
import { tenancyOf } from '../auth/tenancy.ts'
import type { AnswerNeeds } from '../conversation/answer.ts'
import type { Dialect, Json, JsonObject, ToolEntry, Turn } from '../conversation/turn.ts'
import { parseChat } from '../dialects/chat/parse.ts'
import { parseMessages } from '../dialects/messages/parse.ts'
import { parseResponses } from '../dialects/responses/parse.ts'
import { planChain } from '../loop/admission.ts'
import { type Attempt, type PassedOver, pricedTools } from '../loop/chain.ts'
import { toolForKeyword } from '../loop/keywords.ts'
import { quoteChain } from '../loop/priced.ts'
import { toolOfType } from '../tools/registry.ts'
import { candidatesOf } from './candidates.ts'

export type ExplainNeeds = Pick<
  AnswerNeeds,
  'bus' | 'settings' | 'capabilities' | 'policies' | 'mixedTurns' | 'models' | 'routing' | 'coolDowns'
>

export interface Question {
  dialect: Dialect
  tools: JsonObject[]
  headers: Record<string, string>
  container?: Json | undefined
}

const QUOTE_MS = 10_000

/** What a policy would do with a request that declares these tools: the plan of each candidate, in the order of trying. */
export async function explain(
  needs: ExplainNeeds,
  policy: string,
  question: Question,
  identity: Identity,
  request: string,
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
    deadline: Date.now() + QUOTE_MS,
    estimate: { inputTokens: 0, outputTokens: 0 },
    toolsOf: (attempt) => pricedTools([attempt], capabilities),
  })
  const each = attempts.map((attempt) => {
    const condition = coolDowns?.of(attempt) ?? { state: 'ready' as const }
    return {
      model: `${attempt.provider.name}:${attempt.model}`,
      ...fateOf(attempt, turn.tools),
      state: condition.state,
      cooling_for_ms: condition.state === 'cooling' ? condition.forMs : null,
    }
  })
  // candidates that rest are tried after all others
  const rests = ({ action, state }: (typeof each)[number]) => action === 'ask' && state === 'cooling'
  return [...each.filter((one) => !rests(one)), ...each.filter(rests)]
}

function fateOf(attempt: Attempt | PassedOver, tools: ToolEntry[]) {
  if ('refused' in attempt) return { action: 'skip' as const, why: attempt.refused.message, tools: [] }
  const { owned } = attempt.plan
  return {
    action: 'ask' as const,
    why: null,
    tools: tools.map((entry) => {
      if (entry.kind === 'function') return { tool: entry.name, runs_at: 'client' as const }
      const ours = toolOfType(entry.type) ?? toolForKeyword(entry.type)
      const here = ours !== undefined && owned.has(ours.name)
      return { tool: entry.type, runs_at: here ? ('gateway' as const) : ('provider' as const) }
    }),
  }
}

/** The shortest request of the dialect that declares these tools; refused as that request would be. */
function turnOf(model: string, { dialect, tools, container }: Question): { turn: Turn; bodyText: string } {
  const said = [{ role: 'user', content: 'Hello' }]
  const more = { ...(tools.length > 0 && { tools }), ...(container !== undefined && { container }) }
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

import { Fault } from '@tollgate/contracts'
import type { Turn } from '../conversation/turn.ts'
import type { RequestServers, ServerTools } from '../mcp-client/servers.ts'
import type { GatewaySettings } from '../settings.ts'
import { noOptions } from '../tools/tool.ts'
import { askedOf, type Chain } from './chain.ts'
import { asWaiting, withMore } from './deferral.ts'
import { functionForm } from './function-form.ts'
import { hintBlock, withHints } from './hints.ts'
import { hasRounds, type Owned, type Plan } from './plan.ts'

/**
 * A plan with everything that its rounds offer: the tools of MCP servers after those that the client declared (M-05), and
 * what the model is told of them all (T-29).
 */
export function prepared(plan: Plan, servers: readonly ServerTools[], settings: GatewaySettings): Plan {
  const { turn, messages } = plan
  const tools = servers.flatMap((server) => server.tools)
  const waiting = new Set(servers.flatMap((server) => (server.deferred ? server.tools : [])))
  const entries = tools.map((tool) => {
    const entry = functionForm(tool, turn.dialect)
    return plan.deferral?.by === 'provider' && waiting.has(tool) ? asWaiting(entry, turn) : entry
  })
  const hints = [...plan.hints, ...servers.flatMap(serverHint)]
  const place = turn.dialect === 'chat' ? 'append' : 'prepend'
  return {
    ...plan,
    owned: new Map([...plan.owned, ...tools.map((tool): [string, Owned] => [tool.name, { tool, options: noOptions }])]),
    turn: entries.length > 0 ? { ...turn, tools: [...turn.tools, ...entries] } : turn,
    messages: hints.length > 0 ? withHints(messages, hintBlock(hints, settings, turn.toolsHeader), place) : messages,
    hints: [],
    tools: [...plan.tools, ...entries],
    ...(plan.deferral && {
      deferral: withMore(
        plan.deferral,
        turn,
        Array.from(waiting, ({ name }) => name),
      ),
    }),
  }
}

/** A server has one hint for all of its tools; those of a server without one say themselves what they are for. */
function serverHint({ hint, tools }: ServerTools): string[] {
  if (hint === undefined || tools.length === 0) return []
  return [`- ${tools.map(({ name }) => name).join(', ')}: ${hint}`]
}

/** What the servers of a request offer. Throws before any model is called where a name would mean two things (L-30, BR-057). */
export async function offeredBy(
  servers: RequestServers | undefined,
  { tools: declared }: Turn,
  chain: Chain,
): Promise<readonly ServerTools[]> {
  if (servers === undefined) return []
  const offered = await servers.tools()
  const plans = askedOf(chain).map(({ plan }) => plan)
  const builtIns = new Set(plans.flatMap(({ owned }) => [...owned.keys()]))
  const ofBackends = new Set(plans.flatMap(({ seat }) => seat?.executed ?? []))
  const functions = new Set(declared.flatMap((entry) => (entry.kind === 'function' ? [entry.name] : [])))
  for (const { name } of offered.flatMap(({ tools }) => tools)) {
    if (builtIns.has(name)) throw clash(name, 'a built-in tool this request runs')
    if (ofBackends.has(name)) throw clash(name, "a tool that this model's backend runs")
    if (functions.has(name)) throw clash(name, 'a function this request declares')
  }
  return offered
}

const clash = (name: string, other: string): Fault =>
  new Fault(
    'invalid_request',
    `MCP server tool '${name}' has the same name as ${other}. Exclude it through allowed_tools or drop one of the declarations.`,
  )

/** L-34: whether a built-in may run on any attempt, whose names are to be kept free before anything is done. */
export const mayClash = (chain: Chain): boolean => askedOf(chain).some(({ plan }) => hasRounds(plan))

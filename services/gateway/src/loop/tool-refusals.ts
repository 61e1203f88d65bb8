import type { Log } from '@tollgate/telemetry'
import { type ToolRefusal, UpstreamFault } from '../models/upstream-fault.ts'
import type { Plan } from './plan.ts'

/** Which seats' backends refuse the tools that they are sent: a mistake of the configuration that looks like a dead model. */
export interface ToolRefusals {
  /** Tells the operator of a failure that is one: in the log at most once a minute a seat, and in the activity entry always (PE-53). */
  note(thrown: unknown, plan: Plan, model: string): void
  /** Whether there was one in the last hour. */
  recently(seat: string): boolean
}

const LOG_EVERY_MS = 60_000
const RECENTLY_MS = 3_600_000
const MIXED =
  'backend refuses our tools declared beside a provider-executed one — every tool call from this seat will fail. Use the nested search-only call instead of declaring the tool alongside.'
const DUPLICATE = 'backend was sent two declarations of one name'

interface Seen {
  lastAt: number
  loggedAt: number
  /** Those that no line has told of. */
  untold: number
}

/** As many entries as there are seats. */
export function openToolRefusals(log: Log, now: () => number = Date.now): ToolRefusals {
  const seen = new Map<string, Seen>()
  return {
    note(thrown, plan, model) {
      const { seat } = plan
      if (!(thrown instanceof UpstreamFault) || thrown.toolRefusal === undefined) return
      if (seat === undefined || seat.executed.length === 0) return
      const refusal = thrown.toolRefusal
      thrown.note = noteOf(refusal)
      const entry = seen.get(seat.name) ?? { lastAt: 0, loggedAt: -Infinity, untold: 0 }
      seen.set(seat.name, entry)
      entry.lastAt = now()
      entry.untold += 1
      if (entry.lastAt - entry.loggedAt < LOG_EVERY_MS) return
      const fields = { seat: seat.name, model, provider_executed_tools: seat.executed, count: entry.untold }
      log.error({ ...fields, ...(refusal.type === 'duplicate' && duplicateOf(refusal.name, plan)) }, noteOf(refusal))
      entry.loggedAt = entry.lastAt
      entry.untold = 0
    },
    recently: (seat) => now() - (seen.get(seat)?.lastAt ?? -Infinity) < RECENTLY_MS,
  }
}

const noteOf = ({ type }: ToolRefusal): string => (type === 'mixed' ? MIXED : DUPLICATE)

/** Where each declaration of the name came from; what we declared but once was declared again on its way (PE-51). */
function duplicateOf(name: string, { seat, owned, turn }: Plan) {
  const origins = [
    ...(seat?.executed.includes(name) ? ['provider_executed_tools'] : []),
    ...(owned.has(name) ? ['this gateway'] : []),
    ...turn.tools.flatMap((entry) => (entry.kind === 'function' && entry.name === name ? ['the client'] : [])),
  ]
  return { tool: name, origins: origins.length > 1 ? origins : [...origins, 'the backend'] }
}

import type { ToolChoice, ToolEntry, Turn } from '../conversation/turn.ts'
import type { Tool } from '../tools/tool.ts'
import { toolSearchOfType } from '../tools/tool-search.ts'
import { asOrdinary, asWaiting, type Deferral, deferralOf, isDeferred } from './deferral.ts'
import { functionForm } from './function-form.ts'
import type { Target } from './keywords.ts'
import type { Verdict } from './plan.ts'

/** What the model is offered of the client's declarations: ours as functions, each once, everything else as it came. */
export function offered(turn: Turn, verdicts: Verdict[], deferral: Deferral | undefined): ToolEntry[] {
  const placed = new Set<Tool>()
  const form = (entry: ToolEntry, waits: boolean) => {
    if (deferral?.by === 'provider') return waits ? asWaiting(entry, turn) : entry
    return deferral ? asOrdinary(entry) : entry
  }
  return turn.tools.flatMap((entry, at) => {
    const verdict = verdicts[at]
    if (verdict?.action === 'backend') return []
    if (verdict?.action === 'forward' || verdict === undefined) return [form(entry, isDeferred(entry))]
    if (placed.has(verdict.tool)) return []
    placed.add(verdict.tool)
    return [form(functionForm(verdict.tool, turn.dialect), isDeferred(entry))]
  })
}

/** Undefined where nobody searches: then nothing waits (BR-064). */
export function deferralIn(turn: Turn, verdicts: Verdict[], target: Target): Deferral | undefined {
  const isSearch = (entry: ToolEntry) => entry.kind === 'typed' && toolSearchOfType(entry.type) !== undefined
  const at = turn.tools.findIndex(isSearch)
  if (at < 0 || (verdicts[at]?.action !== 'search' && target.dialect !== turn.dialect)) return undefined
  const names = turn.tools.flatMap((entry, place) => {
    const verdict = verdicts[place]
    if (!isDeferred(entry)) return []
    if (verdict?.action === 'run') return [verdict.tool.name]
    return entry.kind === 'function' ? [entry.name] : []
  })
  return deferralOf(turn, verdicts[at]?.action === 'search' ? 'gateway' : 'provider', names)
}

/** A choice that names a declaration which runs here means its function now; any other is left alone (T-27). */
export function retarget(turn: Turn, verdicts: Verdict[]): ToolChoice | undefined {
  const choice = turn.toolChoice
  if (choice?.type !== 'typed' && choice?.type !== 'function') return choice
  const at = turn.tools.findIndex(
    (entry) => entry.kind === 'typed' && (entry.type === choice.name || entry.raw.name === choice.name),
  )
  const verdict = verdicts[at]
  return verdict?.action === 'run' || verdict?.action === 'search'
    ? { type: 'function', name: verdict.tool.name }
    : choice
}

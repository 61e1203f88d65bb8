import type { Message, ToolEntry, Turn } from '../conversation/turn.ts'
import type { SearchedTool } from '../tools/tool-search-index.ts'
import type { Plan } from './plan.ts'
import { type ModelCall, resultMessage } from './transcript.ts'

/** Tools of a request that wait until its model looks for them (BR-064). */
export interface Deferral {
  /** Who searches them: the model's provider, which is sent all of them, or this gateway. */
  by: 'provider' | 'gateway'
  /** All that wait, by name. */
  waiting: ReadonlySet<string>
  /** Those that the model does not know yet; none where its provider searches. */
  hidden: ReadonlySet<string>
}

export const isDeferred = ({ raw }: ToolEntry): boolean => raw.defer_loading === true

/** `names`: of the tools that wait. One that the client forces, or that the conversation has found, is known at once. */
export function deferralOf({ foundTools, toolChoice }: Turn, by: Deferral['by'], names: readonly string[]): Deferral {
  const forced = toolChoice?.type === 'function' ? toolChoice.name : undefined
  const unknown = names.filter((name) => name !== forced && foundTools?.byAnyone.has(name) !== true)
  return { by, waiting: new Set(names), hidden: new Set(by === 'gateway' ? unknown : []) }
}

/** The same with tools that are known once their servers are connected. */
export function withMore(deferral: Deferral, turn: Turn, names: readonly string[]): Deferral {
  const more = deferralOf(turn, deferral.by, names)
  return {
    by: deferral.by,
    waiting: new Set([...deferral.waiting, ...more.waiting]),
    hidden: new Set([...deferral.hidden, ...more.hidden]),
  }
}

/**
 * An entry as a provider that searches by itself gets it: it waits there as well, unless a search of this gateway has found
 * it before, which that provider knows nothing of.
 */
export function asWaiting(entry: ToolEntry, { foundTools }: Turn): ToolEntry {
  const { defer_loading: _said, ...raw } = entry.raw
  const known = entry.kind === 'function' && foundTools?.byGateway.has(entry.name) === true
  return known ? { ...entry, raw } : { ...entry, raw: { ...entry.raw, defer_loading: true } }
}

/** As everyone else gets it, who knows no such word. */
export function asOrdinary(entry: ToolEntry): ToolEntry {
  if (entry.raw.defer_loading === undefined) return entry
  const { defer_loading: _said, ...raw } = entry.raw
  return { ...entry, raw }
}

export const isHidden = ({ deferral }: Pick<Plan, 'deferral'>, name: string): boolean =>
  deferral?.hidden.has(name) ?? false

/** What a search of this gateway's goes through. */
export const searchedIn = ({ tools, deferral }: Plan): SearchedTool[] =>
  tools.flatMap((entry) => (entry.kind === 'function' && deferral?.waiting.has(entry.name) ? [entry] : []))

/** The plan once the model knows of these tools. */
export function withFound(plan: Plan, found: readonly string[]): Plan {
  const { deferral } = plan
  if (deferral === undefined || found.length === 0) return plan
  const hidden = new Set(deferral.hidden)
  for (const name of found) hidden.delete(name)
  return { ...plan, deferral: { ...deferral, hidden } }
}

/** The answer to a call of a tool that the model cannot know. Whosever the tool is, it does not run. */
export const unknownYet = ({ id, name }: ModelCall): Message =>
  resultMessage(
    id,
    `[tool error] '${name}' is not loaded. Search for it first; it can be called once it is found.`,
    true,
  )

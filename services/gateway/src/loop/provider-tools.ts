import { Fault } from '@tollgate/contracts'
import { isObject } from '../conversation/json.ts'
import type { JsonObject, ToolChoice, ToolEntry, Turn } from '../conversation/turn.ts'
import type { SeatTools } from '../models/seats.ts'
import { Uncarried } from '../models/uncarried.ts'
import { delegatedSearch } from '../tools/delegated-search.ts'
import { noOptions } from '../tools/tool.ts'
import type { Owned } from './plan.ts'

/** The one mark by which backends tell their own tools, and which no function's name may have (PE-72). */
const OWN_MARK = '$'

export const isMarked = (name: string): boolean => name.startsWith(OWN_MARK)

/** The declaration of a backend's tool: its name decides the shape (PE-05). */
export const declarationOfBackend = (name: string): ToolEntry => ({
  kind: 'typed',
  type: isMarked(name) ? 'builtin_function' : name,
  raw: isMarked(name) ? { type: 'builtin_function', function: { name } } : { type: name },
  wire: 'openai-chat',
})

/** Tools whose purpose is a search, by the names that backends give them. */
export const isSearchTool = (name: string): boolean => /^\$?web_search(_\w+)?$/.test(name)

/** The name of a backend's tool that a client declares itself (PE-61). */
export function builtinNamed(entry: ToolEntry): string | undefined {
  if (entry.kind !== 'typed' || entry.type !== 'builtin_function') return undefined
  const declared = entry.raw.function
  return isObject(declared) && typeof declared.name === 'string' ? declared.name : undefined
}

/**
 * Whether the backend of the seat runs what the entry declares, so that it is declared once and by the gateway: its very
 * declaration (PE-61), or a search keyword where the operator says so (PE-65).
 */
export function runsAtBackend(
  entry: ToolEntry,
  seat: SeatTools | undefined,
  { dialect }: Turn,
  search: boolean,
): boolean {
  if (seat === undefined || entry.kind !== 'typed') return false
  const own = dialect === 'chat' ? (builtinNamed(entry) ?? entry.type) : undefined
  if (own !== undefined && seat.executed.includes(own)) return true
  return search && seat.servesKeyword && (seat.delegated !== undefined || seat.executed.some(isSearchTool))
}

/** The one tool of ours through which a backend searches that takes its search tool only alone (PE-36). */
export const delegatedOf = (seat: SeatTools | undefined): [string, Owned] | undefined =>
  seat?.delegated === undefined ? undefined : [delegatedSearch.name, { tool: delegatedSearch, options: noOptions }]

interface Named {
  turn: Turn
  seat: SeatTools | undefined
  /** Tools that this gateway runs, by name. */
  ours: Iterable<string>
}

/** What a name would mean two things for is refused before any model is called (PE-09, PE-37, PE-72). */
export function refuseNames({ turn, seat, ours }: Named): void {
  const functions = turn.tools.flatMap((entry) => (entry.kind === 'function' ? [entry.name] : []))
  const marked = functions.find((name) => name.includes(OWN_MARK))
  if (marked !== undefined)
    throw new Fault('invalid_request', `The function '${marked}' cannot have a '${OWN_MARK}' in its name`)
  const taken = new Set([...functions, ...ours])
  const twice = seat?.executed.find((name) => taken.has(name))
  if (twice !== undefined)
    throw new Fault('invalid_request', `The tool '${twice}' has the same name as a tool that this model's backend runs`)
  if (seat?.delegated !== undefined && functions.includes(delegatedSearch.name))
    throw new Fault(
      'invalid_request',
      `The function '${delegatedSearch.name}' has a name that this gateway needs itself`,
    )
}

/** A client's own declaration of a backend's tool waits for the candidate that runs it, where there is one (PE-62). */
export function refuseElsewhere({ tools }: Turn, seat: SeatTools | undefined, elsewhere: ReadonlySet<string>): void {
  const name = tools
    .map(builtinNamed)
    .find((named) => named !== undefined && elsewhere.has(named) && !seat?.executed.includes(named))
  if (name !== undefined)
    throw new Uncarried('invalid_request', `The tool '${name}' is run by another model that this request may try`)
}

/** Backends refuse a choice that forces their own tool (PE-66). */
export const unforced = (choice: ToolChoice | undefined, atBackend: ToolEntry[]): ToolChoice | undefined =>
  choice?.type === 'typed' && atBackend.some((entry) => namesEntry(choice, entry)) ? { type: 'auto' } : choice

function namesEntry({ name, raw }: { name: string; raw: JsonObject }, entry: ToolEntry): boolean {
  if (entry.kind !== 'typed' || entry.type !== name) return false
  const named = isObject(raw.function) ? raw.function.name : undefined
  return named === undefined || named === builtinNamed(entry)
}

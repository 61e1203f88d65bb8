import { Fault } from '@tollgate/contracts'
import type { Message, ToolChoice, ToolEntry, Turn } from '../conversation/turn.ts'
import { refuseTheirFiles } from '../files/declared.ts'
import type { SeatTools } from '../models/seats.ts'
import { Uncarried } from '../models/uncarried.ts'
import type { Policies } from '../policies/policy.ts'
import type { GatewaySettings } from '../settings.ts'
import { isConfigured } from '../tools/away.ts'
import type { Capabilities } from '../tools/capabilities.ts'
import { codeExecution } from '../tools/code-execution.ts'
import { type ContainerWish, keptContainer, refuseOurContainer } from '../tools/container.ts'
import { narrowDomains } from '../tools/domains.ts'
import { toolOfType } from '../tools/registry.ts'
import { sessionSeconds } from '../tools/sandbox-session.ts'
import { type BuiltIn, noOptions, type Tool, type ToolOptions } from '../tools/tool.ts'
import { toolSearchOfType } from '../tools/tool-search.ts'
import { webFetch } from '../tools/web-fetch.ts'
import { webSearch } from '../tools/web-search.ts'
import { claims } from './claims.ts'
import { containerOf, declarationOf } from './declarations.ts'
import type { Deferral } from './deferral.ts'
import type { ExecutorChoice } from './executors.ts'
import { withoutForeignCalls } from './foreign-calls.ts'
import { functionForm } from './function-form.ts'
import { hintLines } from './hints.ts'
import { runsNatively, type Target, toolForKeyword } from './keywords.ts'
import { deferralIn, offered, retarget } from './planned-tools.ts'
import { policed } from './policed.ts'
import {
  declarationOfBackend,
  delegatedOf,
  refuseElsewhere,
  refuseNames,
  runsAtBackend,
  unforced,
} from './provider-tools.ts'

export interface PlanInput {
  turn: Turn
  /** The body as it came: numbers are judged by their spelling (S-19). */
  bodyText: string
  settings: GatewaySettings
  capabilities: Capabilities
  executors: ExecutorChoice
  /** What holds for the workspace; asked for where `readsPolicies` says that it matters. */
  policies: Policies
  target: Target
  /** Tools that the backends of other candidates run (PE-62). */
  elsewhere?: ReadonlySet<string> | undefined
  /** Code that is declared in both ways runs here on every attempt. */
  codeHere?: boolean | undefined
}

export interface Owned<T extends Tool = Tool> {
  tool: T
  options: ToolOptions
}

/** What one attempt sends, and which calls of its model stay here. */
export interface Plan {
  /** Tools that run here, by the name the model calls them. */
  owned: ReadonlyMap<string, Owned>
  turn: Turn
  messages: Message[]
  /** What the model is told of each, still to be put into the messages: see `prepared`. */
  hints: readonly string[]
  /** What the model is offered: declarations of ours as functions, everything else as it came, in the client's order. */
  tools: ToolEntry[]
  toolChoice: ToolChoice | undefined
  /** What the seat's backend runs by itself; undefined where that is nothing. */
  seat: SeatTools | undefined
  /** Absent where none of its tools waits to be searched for. */
  deferral?: Deferral | undefined
  /** Its provider runs code that the request declares; absent where that runs here, or nowhere. */
  codeAtProvider?: true
}

/** Whether rounds may follow on each other here, which the fast lane knows nothing of. */
export const hasRounds = ({ owned, seat }: Plan): boolean => owned.size > 0 || seat !== undefined

/** What becomes of an entry of `tools` on this attempt. */
/** `search`: this gateway searches the tools that wait. */
export type Verdict =
  | { action: 'run'; tool: BuiltIn }
  | { action: 'search'; tool: Tool }
  | { action: 'forward' }
  | { action: 'backend' }

/** True when the request declares anything this gateway might run; the others never touch the tool path (T-33). */
export const mayRunHere = (turn: Turn): boolean =>
  turn.tools.some((entry) => entry.kind === 'typed' && toolNamed(entry.type) !== undefined)

/**
 * Whether the workspace's policies can matter to an attempt: something runs here whatever they say, or they may say who
 * runs code. Nothing else is worth asking for (W-21), nor is who runs code where no sandbox could.
 */
export function readsPolicies(input: PlanInput): boolean {
  const { turn, capabilities } = input
  const container = containerOf(turn)
  return turn.tools.some((entry) => {
    const isCode = entry.kind === 'typed' && toolNamed(entry.type) === codeExecution
    return isCode ? isConfigured(codeExecution, capabilities) : judge(entry, container, input).action === 'run'
  })
}

/**
 * Decides for one attempt who runs each declared tool, and what is sent for it. Pure: it throws the refusal that the
 * request alone earns (T-32), and asks nobody.
 */
export function plan(input: PlanInput): Plan {
  const { turn, settings } = input
  const container = containerOf(turn)
  const verdicts = turn.tools.map((entry) => judge(entry, container, input))
  refuseClashes(turn, verdicts)
  refuseUncarried(input, verdicts)
  refuseAway(input, verdicts)
  const narrowed = policed(readOwned(input, verdicts), input)
  const codeRunsHere = narrowed.has(codeExecution.name)
  const codeAtProvider = !codeRunsHere && forwardsCode(turn, verdicts)
  if (codeAtProvider) refuseOurContainer(container)
  if (codeRunsHere) refuseTheirFiles(turn.tools)

  const sent = codeRunsHere ? inSandbox(turn, input.policies) : turn
  const owned = inContainer(narrowed, container, sent)
  const { seat } = input.target
  refuseNames({ turn, seat, ours: owned.keys() })
  refuseElsewhere(turn, seat, input.elsewhere ?? new Set())
  const delegated = delegatedOf(seat)
  const searches = verdicts.flatMap((verdict) => (verdict.action === 'search' ? [verdict.tool] : []))
  const deferral = deferralIn(turn, verdicts, input.target)

  return {
    owned: new Map<string, Owned>([
      ...owned,
      ...(delegated ? [delegated] : []),
      ...searches.map((tool): [string, Owned] => [tool.name, { tool, options: noOptions }]),
    ]),
    turn: sent,
    messages: withoutForeignCalls(turn, seat),
    hints: hintLines(owned.values(), settings),
    tools: [
      ...offered(turn, verdicts, deferral),
      ...(delegated ? [functionForm(delegated[1].tool, turn.dialect)] : []),
      ...(seat?.executed ?? []).map(declarationOfBackend),
    ],
    toolChoice: unforced(
      retarget(turn, verdicts),
      turn.tools.filter((_, at) => verdicts[at]?.action === 'backend'),
    ),
    seat,
    ...(deferral && { deferral }),
    ...(codeAtProvider && { codeAtProvider }),
  }
}

/** An `otari_*` type always runs here (T-14), a function never does (T-19), a provider's keyword as it is claimed. */
export function judge(entry: ToolEntry, container: ContainerWish, input: PlanInput): Verdict {
  if (entry.kind === 'function') return { action: 'forward' }
  const { capabilities, executors, policies, target, turn, codeHere = false } = input
  const own = toolOfType(entry.type)
  if (own !== undefined) {
    if (!isConfigured(own, capabilities)) throw new Fault('invalid_request', own.unavailable)
    return { action: 'run', tool: own }
  }
  const search = turn.dialect === 'messages' ? toolSearchOfType(entry.type) : undefined
  if (search !== undefined && !runsNatively(entry.type, turn.dialect, target)) return { action: 'search', tool: search }
  const tool = toolForKeyword(entry.type)
  const unclaimed: Verdict = runsAtBackend(entry, target.seat, turn, tool === webSearch)
    ? { action: 'backend' }
    : { action: 'forward' }
  if (tool === undefined) return unclaimed
  const claimed = claims({
    keyword: entry.type,
    tool,
    dialect: turn.dialect,
    target,
    executors,
    pin: policies.code.executor,
    capabilities,
    container,
    codeHere,
  })
  return claimed ? { action: 'run', tool } : unclaimed
}

const toolNamed = (type: string): BuiltIn | undefined => toolOfType(type) ?? toolForKeyword(type)

const isWeb = (tool: BuiltIn): boolean => tool === webSearch || tool === webFetch

function refuseClashes(turn: Turn, verdicts: Verdict[]): void {
  const running = verdicts.flatMap((verdict) => (verdict.action === 'run' ? [verdict.tool] : []))
  if (running.some((tool, at) => isWeb(tool) && running.indexOf(tool) < at)) {
    throw new Fault('invalid_request', 'A managed web tool may be declared at most once')
  }
  const names = new Set(turn.tools.flatMap((entry) => (entry.kind === 'function' ? [entry.name] : [])))
  if (running.some(isWeb) && (names.has(webSearch.name) || names.has(webFetch.name))) {
    throw new Fault('invalid_request', 'A caller-defined function uses a reserved managed web-tool name')
  }
  const taken = verdicts.find((verdict) => verdict.action === 'search' && names.has(verdict.tool.name))
  if (taken?.action === 'search')
    throw new Fault(
      'invalid_request',
      `A caller-defined function uses the name of a tool this request runs: ${taken.tool.name}`,
    )
  if (running.includes(codeExecution)) {
    if (names.has(codeExecution.name)) {
      throw new Fault(
        'invalid_request',
        'A caller-defined function uses the name of a tool this request runs: code_execution',
      )
    }
    if (forwardsCode(turn, verdicts)) {
      throw new Fault(
        'invalid_request',
        'otari_code_execution cannot be combined with a provider-native code-execution tool (code_execution, code_interpreter, code_execution_<date>) in the same request; pick one.',
      )
    }
  }
}

const forwardsCode = (turn: Turn, verdicts: Verdict[]): boolean =>
  turn.tools.some(
    (entry, at) =>
      entry.kind === 'typed' && verdicts[at]?.action === 'forward' && toolForKeyword(entry.type) === codeExecution,
  )

/** Each tool once, with what its declarations ask; domain lists of a search hold for fetched pages too (W-36). */
function readOwned({ turn, bodyText, capabilities }: PlanInput, verdicts: Verdict[]): Map<string, Owned<BuiltIn>> {
  const owned = new Map<string, Owned<BuiltIn>>()
  turn.tools.forEach((entry, at) => {
    const verdict = verdicts[at]
    if (verdict?.action !== 'run') return
    const { tool } = verdict
    const options = tool.read(declarationOf(entry.raw, at, bodyText), capabilities)
    const before = owned.get(tool.name)?.options
    owned.set(tool.name, { tool, options: before ? { ...options, hint: before.hint ?? options.hint } : options })
  })
  const search = owned.get(webSearch.name)
  const fetch = owned.get(webFetch.name)
  if (search && fetch) {
    const domains = narrowDomains(fetch.options.domains, search.options.domains)
    owned.set(webFetch.name, { ...fetch, options: { ...fetch.options, domains } })
  }
  return owned
}

/** A provider's own tool has no form on another provider's wire, and is refused by name rather than dropped. */
function refuseUncarried({ turn, target }: PlanInput, verdicts: Verdict[]): void {
  if (target.dialect === turn.dialect) return
  turn.tools.forEach((entry, at) => {
    if (entry.kind === 'function' || verdicts[at]?.action !== 'forward') return
    // a wire that is no dialect has forms of its own for what its vendor runs
    if (target.dialect === undefined && runsNatively(entry.type, turn.dialect, target)) return
    throw new Uncarried('invalid_request', `The tool type '${entry.type}' cannot be sent to the provider of this model`)
  })
}

/** What such a tool takes and costs is not known either, so that no model is called for it. */
function refuseAway({ capabilities: { away } }: PlanInput, verdicts: Verdict[]): void {
  for (const verdict of verdicts) {
    const fault = verdict.action === 'run' ? away?.get(verdict.tool.name) : undefined
    if (fault) throw fault()
  }
}

/** Code that runs here gets the sandbox that the request wishes for, for as long as its rounds may need it. */
function inContainer(
  owned: ReadonlyMap<string, Owned<BuiltIn>>,
  wish: ContainerWish,
  { maxToolIterations }: Turn,
): ReadonlyMap<string, Owned<BuiltIn>> {
  const code = owned.get(codeExecution.name)
  if (code === undefined) return owned
  const leaseSeconds = sessionSeconds(maxToolIterations, code.options.execSeconds)
  const options = { ...code.options, container: keptContainer(wish), leaseSeconds }
  return new Map(owned).set(codeExecution.name, { ...code, options })
}

/** The container is ours to read, and rounds end where the policy says if that is sooner (L-05). */
function inSandbox(turn: Turn, { code }: Policies): Turn {
  const { container: _ours, ...raw } = turn.raw
  return { ...turn, raw, maxToolIterations: Math.min(turn.maxToolIterations, code.maxIterations ?? Infinity) }
}

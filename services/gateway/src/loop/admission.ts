import type { IncomingHttpHeaders } from 'node:http'
import type { Bus } from '@tollgate/bus'
import { type Failure, Fault, type Tenancy } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import type { Message, Turn } from '../conversation/turn.ts'
import type { Attachments, Files } from '../files/attachments.ts'
import type { ProviderCopies } from '../files/provider-copies.ts'
import type { RequestServers } from '../mcp-client/servers.ts'
import { withoutForeignThinking } from '../models/issuer.ts'
import { Uncarried } from '../models/uncarried.ts'
import type { KnownPolicies } from '../policies/known-policies.ts'
import { narrowsNothing, type Policies } from '../policies/policy.ts'
import type { CoolDowns } from '../routing/cool-down.ts'
import type { RouteRules } from '../routing/routing.ts'
import type { GatewaySettings } from '../settings.ts'
import type { Capabilities } from '../tools/capabilities.ts'
import { codeExecution } from '../tools/code-execution.ts'
import { webSearch } from '../tools/web-search.ts'
import { type Attempt, askedOf, type Candidate, type Chain, type PassedOver, pricedTools, whyNone } from './chain.ts'
import { readExecutors } from './executors.ts'
import { runsNatively, targetOf, toolForKeyword } from './keywords.ts'
import type { MixedTurns } from './mixed-turns.ts'
import { mayRunHere, plan, readsPolicies } from './plan.ts'
import { usableOptions } from './policed.ts'
import { mayClash, offeredBy } from './prepared.ts'
import { priceChain } from './priced.ts'
import { codePlaceOf } from './provider-code.ts'
import { reserve, type Tally } from './tally.ts'
import type { ToolRefusals } from './tool-refusals.ts'
import { meterUsage, tokensOf, type UsageMeter } from './usage.ts'
import { openWalk, type Walk } from './walk.ts'

/** What the loop needs of the gateway, whichever request it serves. */
export interface LoopNeeds {
  bus: Bus
  log: Log
  settings: GatewaySettings
  capabilities(): Promise<Capabilities>
  policies: Pick<KnownPolicies, 'of'>
  mixedTurns: MixedTurns
  /** Undefined: no model is let rest. */
  coolDowns?: CoolDowns | undefined
  /** Undefined: what backends have against the tools of a request is told to nobody. */
  toolRefusals?: ToolRefusals | undefined
  /** Undefined where files are switched off. */
  files?: Files | undefined
  /** Undefined where files are switched off. */
  providerCopies?: ProviderCopies | undefined
}

export interface TurnRequest {
  turn: Turn
  bodyText: string
  headers: IncomingHttpHeaders
  /** In the order they are tried. */
  candidates: readonly Candidate[]
  /** When the next of them is tried; by default for every failure of a provider. */
  rules?: RouteRules | undefined
  tenancy: Tenancy
  budgetExempt: boolean
  /** The path of the API that was called, as it stands in usage rows. */
  endpoint: string
  /** Fires when the client left, when time is up and when the process must end. */
  signal: AbortSignal
  deadline: number
  /** The files that its messages refer to; none when absent. */
  attachments?: Attachments
  /** Its MCP servers, not connected yet; whoever opened them closes them. */
  servers?: RequestServers | undefined
  /** Told once an answer is complete: what the loop added to the client's messages. */
  added?: (messages: Message[]) => void
}

/** As much of a request as what is sent for it depends on. */
export type TurnToPlan = Pick<TurnRequest, 'turn' | 'headers' | 'bodyText' | 'tenancy' | 'candidates'>

/** A request that may be served: planned for every candidate, and with money set aside. */
export interface Admission {
  /** In the order of the candidates. */
  attempts: Chain
  /** The first of them that is asked. */
  first: Attempt
  capabilities: Capabilities
  usage: UsageMeter
  tally: Tally
  /** Who is asked, and when another one. */
  walk: Walk
}

const runsNothing: Capabilities = { search: null, fetch: false, sandbox: false, intercept: false, executor: 'auto' }

/**
 * Everything that can refuse a request before a model is called (T-32): what it declares, then prices and budgets
 * . After this, something is owed an ending: see `Tally`.
 */
export async function admit(needs: LoopNeeds, request: TurnRequest): Promise<Admission> {
  const { bus, log, settings } = needs
  const { tenancy, deadline, signal } = request
  const planned = await planEach(needs, request)
  const { capabilities, policies } = planned
  if (mayClash(planned.attempts)) await offeredBy(request.servers, request.turn, planned.attempts)
  const attached = await showFiles(request, planned.asks)
  const estimate = {
    inputTokens: tokensOf(request.turn.bodyCharacters + attached),
    outputTokens: request.turn.maxOutputTokens ?? settings.budgetEstimateDefaultOutputTokens,
  }
  const { attempts, dearest } = await priceChain(bus, planned.attempts, {
    ...request,
    estimate,
    toolsOf: (attempt) => pricedTools([attempt], capabilities),
  })
  const asks = askedOf(attempts)
  const first = asks[0] ?? planned.first
  warnOfOptions(needs, asks, policies, capabilities)

  const usage = meterUsage(settings.streamMissingUsagePolicy)
  const tally = await reserve(
    { bus, log, tenancy, usage },
    {
      endpoint: request.endpoint,
      model: { name: first.model, provider: first.provider.name },
      pricedLike: { name: dearest.model, provider: dearest.provider.name },
      tools: pricedTools(asks, capabilities),
      estimate,
      budgetExempt: request.budgetExempt,
      deadline,
      signal,
    },
  )
  const walk = openWalk({
    candidates: attempts,
    rules: request.rules ?? {},
    coolDowns: needs.coolDowns,
    tally,
    usage,
    log,
    request: { id: tenancy.request, signal, deadline },
  })
  return { attempts, first, capabilities, usage, tally, walk }
}

type PlanNeeds = Pick<LoopNeeds, 'settings' | 'capabilities' | 'policies' | 'mixedTurns'>

/** What each candidate would be sent; refuses what the declarations alone earn a refusal for. */
export async function planEach(needs: PlanNeeds, request: TurnToPlan) {
  const planned = await planChain(needs, request)
  const asks = askedOf(planned.attempts)
  const [first] = asks
  if (first === undefined) throw whyNone(planned.attempts)
  return { ...planned, asks, first }
}

/** The same where none may be asked. */
export async function planChain(needs: PlanNeeds, { turn: given, headers, bodyText, tenancy, candidates }: TurnToPlan) {
  const executors = readExecutors(headers)
  const capabilities = mayRunHere(given) ? await needs.capabilities() : runsNothing
  const turn = { ...given, messages: needs.mixedTurns.restore(tenancy, given.messages) }
  const codeHere = declaresCodeTwice(turn, candidates)
  const elsewhere = new Set(candidates.flatMap(({ seat }) => seat?.executed ?? []))
  const asked = {
    turn,
    bodyText,
    settings: needs.settings,
    capabilities,
    executors,
    policies: narrowsNothing,
    codeHere,
    elsewhere,
  }
  const policies = candidates.some((candidate) => readsPolicies({ ...asked, target: targetOf(candidate) }))
    ? await needs.policies.of(tenancy.workspace)
    : narrowsNothing
  const attempts = candidates.map((candidate, number) => planned(candidate, number, { ...asked, policies }))
  return { attempts, capabilities, policies }
}

/** Puts the contents of files where the messages name them; gives the most characters that this adds to an attempt. */
async function showFiles({ attachments }: TurnRequest, asks: Attempt[]): Promise<number> {
  if (!attachments || attachments.files.length === 0) return 0
  let most = 0
  for (const attempt of asks) {
    const { plan, provider } = attempt
    const shown = await attachments.show(plan.messages, codePlaceOf(plan, provider))
    attempt.plan = { ...plan, messages: shown.messages }
    most = Math.max(most, shown.characters)
  }
  return most
}

/** What keeps one candidate from what the request needs, by a policy or while a tool is away; another may do without. */
const OF_THE_CANDIDATE: ReadonlySet<Failure> = new Set<Failure>(['forbidden', 'unavailable', 'upstream'])

/** Such a candidate is passed over, and no reason to refuse it all (X-17, S-13). */
function planned(
  candidate: Candidate,
  number: number,
  asked: Omit<Parameters<typeof plan>[0], 'target'>,
): Attempt | PassedOver {
  const { provider, model, refused } = candidate
  if (refused) return { number, provider, model, refused }
  const turn = { ...asked.turn, messages: withoutForeignThinking(asked.turn.messages, provider.name) }
  try {
    return { number, provider, model, plan: plan({ ...asked, turn, target: targetOf(candidate) }) }
  } catch (thrown) {
    const skips = thrown instanceof Uncarried || (thrown instanceof Fault && OF_THE_CANDIDATE.has(thrown.failure))
    if (!skips) throw thrown
    return { number, provider, model, refused: thrown }
  }
}

/**
 * a request that declares code both ways has every attempt run it alike: here, unless every model of the chain runs
 * the keyword itself.
 */
function declaresCodeTwice(turn: Turn, candidates: readonly Candidate[]): boolean {
  const types = turn.tools.flatMap((entry) => (entry.kind === 'typed' ? [entry.type] : []))
  const keywords = types.filter((type) => toolForKeyword(type) === codeExecution)
  if (keywords.length === 0 || !types.includes(codeExecution.type)) return false
  return !candidates.every((candidate) =>
    keywords.every((keyword) => runsNatively(keyword, turn.dialect, targetOf(candidate))),
  )
}

/** S-35: an option of the workspace that the provider does not take is left out, and said to be so. */
function warnOfOptions({ log }: LoopNeeds, attempts: Attempt[], { web }: Policies, capabilities: Capabilities): void {
  if (!attempts.some(({ plan: { owned } }) => owned.has(webSearch.name))) return
  const { problems } = usableOptions(web, capabilities)
  if (problems.length > 0) log.warn({ problems }, 'options of a workspace’s web-search policy were left out')
}

import type { IncomingHttpHeaders } from 'node:http'
import type { Bus } from '@tollgate/bus'
import { Fault, type PriceKey, type Tenancy } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import type { Message, Turn } from '../conversation/turn.ts'
import type { Attachments, Files } from '../files/attachments.ts'
import { withoutForeignThinking } from '../models/issuer.ts'
import type { ModelProvider } from '../models/provider.ts'
import type { ResolvedModel } from '../models/registry.ts'
import type { KnownPolicies } from '../policies/known-policies.ts'
import { narrowsNothing, type Policies } from '../policies/policy.ts'
import type { GatewaySettings } from '../settings.ts'
import type { Capabilities } from '../tools/capabilities.ts'
import { codeExecution } from '../tools/code-execution.ts'
import { webSearch } from '../tools/web-search.ts'
import type { PassedOver } from './attempts.ts'
import { readExecutors } from './executors.ts'
import { targetOf } from './keywords.ts'
import type { MixedTurns } from './mixed-turns.ts'
import { mayRunHere, type Plan, plan, readsPolicies } from './plan.ts'
import { usableOptions } from './policed.ts'
import { reserve, type Tally } from './tally.ts'
import { meterUsage, tokensOf, type UsageMeter } from './usage.ts'

/** What the loop needs of the gateway, whichever request it serves. */
export interface LoopNeeds {
  bus: Bus
  log: Log
  settings: GatewaySettings
  capabilities(): Promise<Capabilities>
  policies: Pick<KnownPolicies, 'of'>
  mixedTurns: MixedTurns
  /** Undefined where files are switched off. */
  files?: Files | undefined
}

export interface TurnRequest {
  turn: Turn
  bodyText: string
  headers: IncomingHttpHeaders
  /** In the order they are tried. */
  candidates: readonly ResolvedModel[]
  tenancy: Tenancy
  budgetExempt: boolean
  /** The path of the API that was called, as it stands in usage rows. */
  endpoint: string
  /** Fires when the client left, when time is up and when the process must end. */
  signal: AbortSignal
  deadline: number
  /** The files that its messages refer to; none when absent. */
  attachments?: Attachments
  /** Told once an answer is complete: what the loop added to the client's messages. */
  added?: (messages: Message[]) => void
}

/** As much of a request as what is sent for it depends on. */
export type TurnToPlan = Pick<TurnRequest, 'turn' | 'headers' | 'bodyText' | 'tenancy' | 'candidates'>

export interface Attempt {
  /** Its place among the candidates. */
  number: number
  provider: ModelProvider
  model: string
  plan: Plan
}

/** A request that may be served: planned for every candidate, and with money set aside. */
export interface Admission {
  /** In the order of the candidates. */
  attempts: readonly (Attempt | PassedOver)[]
  /** The first of them that is asked. */
  first: Attempt
  capabilities: Capabilities
  usage: UsageMeter
  tally: Tally
}

const runsNothing: Capabilities = { search: null, fetch: false, sandbox: false, intercept: false, executor: 'auto' }

/**
 * Everything that can refuse a request before a model is called (T-32): what it declares, then prices and budgets
 * . After this, something is owed an ending: see `Tally`.
 */
export async function admit(needs: LoopNeeds, request: TurnRequest): Promise<Admission> {
  const { bus, log, settings } = needs
  const { tenancy, deadline, signal } = request
  const { attempts, asks, first, capabilities, policies } = await planEach(needs, request)
  warnOfOptions(needs, asks, policies, capabilities)
  const attached = await showFiles(request, asks)

  const usage = meterUsage(settings.streamMissingUsagePolicy)
  const tally = await reserve(
    { bus, log, tenancy, usage },
    {
      endpoint: request.endpoint,
      model: { name: first.model, provider: first.provider.name },
      tools: pricedTools(asks, capabilities),
      estimate: {
        inputTokens: tokensOf(request.turn.bodyCharacters + attached),
        outputTokens: request.turn.maxOutputTokens ?? settings.budgetEstimateDefaultOutputTokens,
      },
      budgetExempt: request.budgetExempt,
      deadline,
      signal,
    },
  )
  return { attempts, first, capabilities, usage, tally }
}

/** What each candidate would be sent; refuses what the declarations alone earn a refusal for. */
export async function planEach(
  needs: Pick<LoopNeeds, 'settings' | 'capabilities' | 'policies' | 'mixedTurns'>,
  { turn: given, headers, bodyText, tenancy, candidates }: TurnToPlan,
) {
  const executors = readExecutors(headers)
  const capabilities = mayRunHere(given) ? await needs.capabilities() : runsNothing
  const turn = { ...given, messages: needs.mixedTurns.restore(tenancy, given.messages) }
  const asked = { turn, bodyText, settings: needs.settings, capabilities, executors, policies: narrowsNothing }
  const policies = candidates.some((candidate) => readsPolicies({ ...asked, target: targetOf(candidate) }))
    ? await needs.policies.of(tenancy.workspace)
    : narrowsNothing
  const attempts = candidates.map((candidate, number) => planned(candidate, number, { ...asked, policies }))
  const asks = attempts.filter((attempt) => 'plan' in attempt)
  const [first] = asks
  if (first === undefined) throw whyNone(attempts)
  return { attempts, asks, first, capabilities, policies }
}

/** Puts the contents of files where the messages name them; gives the most characters that this adds to an attempt. */
async function showFiles({ attachments }: TurnRequest, asks: Attempt[]): Promise<number> {
  if (!attachments || attachments.files.length === 0) return 0
  let most = 0
  for (const attempt of asks) {
    const { plan } = attempt
    const shown = await attachments.show(plan.messages, plan.owned.has(codeExecution.name))
    attempt.plan = { ...plan, messages: shown.messages }
    most = Math.max(most, shown.characters)
  }
  return most
}

/** A candidate that a policy keeps from what the request needs is passed over, and no reason to refuse it all. */
function planned(
  candidate: ResolvedModel,
  number: number,
  asked: Omit<Parameters<typeof plan>[0], 'target'>,
): Attempt | PassedOver {
  const { provider, model } = candidate
  const turn = { ...asked.turn, messages: withoutForeignThinking(asked.turn.messages, provider.name) }
  try {
    return { number, provider, model, plan: plan({ ...asked, turn, target: targetOf(candidate) }) }
  } catch (thrown) {
    if (!(thrown instanceof Fault && thrown.failure === 'forbidden')) throw thrown
    return { number, provider, model, refused: thrown }
  }
}

/** With nobody left to ask, the refusal is the answer: the first one's, should they differ. */
function whyNone(attempts: (Attempt | PassedOver)[]): Error {
  const refusals = attempts.flatMap((attempt) => ('refused' in attempt ? [attempt.refused] : []))
  return refusals[0] ?? new Error('a request was admitted without a model to answer it')
}

/** S-35: an option of the workspace that the provider does not take is left out, and said to be so. */
function warnOfOptions({ log }: LoopNeeds, attempts: Attempt[], { web }: Policies, capabilities: Capabilities): void {
  if (!attempts.some(({ plan: { owned } }) => owned.has(webSearch.name))) return
  const { problems } = usableOptions(web, capabilities)
  if (problems.length > 0) log.warn({ problems }, 'options of a workspace’s web-search policy were left out')
}

/** Every tool any attempt may run, in declaration order, so that the first without a price is the one named (P-19). */
function pricedTools(attempts: Attempt[], capabilities: Capabilities): { tool: string; keys: PriceKey[] }[] {
  const tools = attempts.flatMap(({ plan: { owned } }) => Array.from(owned.values(), ({ tool }) => tool))
  return [...new Set(tools)].map((tool) => ({ tool: tool.name, keys: tool.priceKeys(capabilities) }))
}

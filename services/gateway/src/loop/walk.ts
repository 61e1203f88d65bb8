import { trace } from '@opentelemetry/api'
import type { Fault } from '@tollgate/contracts'
import { counter, type Log, upTo } from '@tollgate/telemetry'
import { kindOf } from '../models/failure-kind.ts'
import { Uncarried } from '../models/uncarried.ts'
import { UpstreamFault } from '../models/upstream-fault.ts'
import type { CoolDowns } from '../routing/cool-down.ts'
import type { RouteRules } from '../routing/routing.ts'
import { type AttemptTime, openAttemptTime } from './attempt-time.ts'
import type { Attempt, PassedOver } from './chain.ts'
import type { Tally } from './tally.ts'
import type { UsageMeter } from './usage.ts'

/** As much of an attempt as deciding on it takes. */
type Asked = Pick<Attempt, 'number' | 'provider' | 'model'>

/** The candidates of one request, one after the other. */
export interface Walk<A extends Asked = Attempt> {
  /** Whose turn it is. */
  readonly current: A
  /** Begins its attempt; `over` ends it. */
  start(): { signal: AbortSignal }
  /** Its model is asked now, for the first time in this attempt. */
  asking(): void
  /** Something of its answer goes out: no other candidate is tried any more (L-37). */
  began(): void
  answered(): void
  /** It is the next one's turn, or what ends the request is thrown. */
  failed(thrown: unknown): void
  over(): void
}

export interface WalkNeeds<A extends Asked = Attempt> {
  candidates: readonly (A | PassedOver)[]
  rules: RouteRules
  coolDowns: CoolDowns | undefined
  tally: Tally
  usage: Pick<UsageMeter, 'forgetAttempt'>
  log: Log
  request: { id: string; signal: AbortSignal; deadline: number }
}

const attemptsMade = counter('model_attempts_total', 'Candidates asked for an answer, by what came of it', {
  provider: upTo(50),
  outcome: ['answered', 'failed', 'moved_on', 'left'],
})
const passed = counter('model_skips_total', 'Candidates that were passed over for others', {
  provider: upTo(50),
  why: ['refused', 'uncarried', 'cooling'],
})

/**
 * Another candidate is tried only while nothing has gone out, and only for a failure of the provider that the policy
 * names: what this gateway refused or limited would only happen twice, and a client's own mistake is one everywhere
 * (L-37). Candidates that rest come last, so that with all of them resting the first is tried all the same. Where none is
 * left, the last failure is the answer.
 */
export function openWalk<A extends Asked>(needs: WalkNeeds<A>): Walk<A> {
  const { rules, coolDowns, tally, usage, log, request } = needs
  const waiting = [...needs.candidates]
  const resting: A[] = []
  /** So many of them were counted as passed over. */
  let told = 0
  let current: A | undefined
  let time: AttemptTime | undefined
  let begun = false
  let outcome: 'answered' | 'failed' | 'moved_on' | 'left' = 'left'
  let failure: UpstreamFault | undefined

  const over = (): boolean => request.signal.aborted || Date.now() >= request.deadline

  function next(): A | undefined {
    for (let candidate = waiting.shift(); candidate !== undefined; candidate = waiting.shift()) {
      if ('refused' in candidate) passOver(candidate, candidate.refused)
      else if (coolDowns?.of(candidate).state === 'cooling') resting.push(candidate)
      else {
        for (const { provider } of resting.slice(told)) passed.add(1, { provider: provider.name, why: 'cooling' })
        told = resting.length
        return candidate
      }
    }
    return resting.shift()
  }

  function passOver({ number, provider, model }: A | PassedOver, { message }: Fault): void {
    tally.passedOver(number, { name: model, provider: provider.name }, message)
    passed.add(1, { provider: provider.name, why: current?.number === number ? 'uncarried' : 'refused' })
  }

  /** Whether what was thrown is a reason to ask somebody else. */
  function mayMoveOn(thrown: unknown): thrown is UpstreamFault | Uncarried {
    if (begun || over()) return false
    if (thrown instanceof Uncarried) return true
    const kind = thrown instanceof UpstreamFault ? kindOf(thrown) : undefined
    return kind !== undefined && (rules.retryOn === undefined || rules.retryOn.has(kind))
  }

  const walk: Walk<A> = {
    get current() {
      current ??= next()
      if (current === undefined) throw new Error('a request was answered without a model to ask')
      return current
    },
    start() {
      const { number, provider, model } = walk.current
      begun = false
      outcome = 'left'
      coolDowns?.asked(walk.current)
      tally.attempt(number, { name: model, provider: provider.name })
      time = openAttemptTime(rules.attemptTimeoutMs, request.signal)
      return { signal: time.signal }
    },
    asking: () => time?.asking(),
    began() {
      begun = true
      time?.began()
    },
    answered() {
      outcome = 'answered'
      coolDowns?.answered(walk.current)
    },
    failed(given) {
      const { provider } = walk.current
      const thrown = time?.late() ? tooLate(provider, given) : given
      if (thrown instanceof UpstreamFault) {
        outcome = 'failed'
        // an answer that the request's own end cut off says nothing about the provider
        if (!over()) coolDowns?.failed(walk.current, thrown, rules.coolDownMs)
        tellOperator(thrown)
      }
      if (!mayMoveOn(thrown)) throw thrown
      if (thrown instanceof UpstreamFault) failure = thrown
      const following = next()
      if (following === undefined) throw failure ?? thrown
      tellOf(thrown, following)
      usage.forgetAttempt()
      if (thrown instanceof Uncarried) passOver(walk.current, thrown)
      else tally.absorbed(thrown)
      outcome = 'moved_on'
      attemptsMade.add(1, { provider: provider.name, outcome })
      coolDowns?.left(walk.current)
      current = following
    },
    over() {
      time?.end()
      if (outcome === 'moved_on') return
      if (outcome === 'left') coolDowns?.left(walk.current)
      attemptsMade.add(1, { provider: walk.current.provider.name, outcome })
    },
  }
  return walk

  /** A key that the provider does not take, or an account it closed, is for the operator to put right. */
  function tellOperator(fault: UpstreamFault): void {
    if (kindOf(fault) !== 'account') return
    const { provider, model } = walk.current
    log.error(
      { request: request.id, provider: provider.name, model, err: fault },
      'a model provider refuses the account of this deployment: look at its api_key and its credit',
    )
  }

  function tellOf(thrown: Fault, { provider, model }: A): void {
    const from = { provider: walk.current.provider.name, model: walk.current.model }
    const why = thrown instanceof UpstreamFault ? (kindOf(thrown) ?? 'unknown') : 'uncarried'
    log.warn({ request: request.id, ...from, why, err: thrown }, 'an attempt gave no answer; another model is asked')
    trace.getActiveSpan()?.addEvent('another model is asked', {
      'gen_ai.provider.name': provider.name,
      'gen_ai.request.model': model,
      'tollgate.attempt.failed': walk.current.number,
      'error.type': why,
    })
  }
}

const tooLate = (provider: Attempt['provider'], cause: unknown): UpstreamFault =>
  new UpstreamFault(
    'timeout',
    'the model provider did not answer in time',
    { name: provider.name, wire: provider.wire, hidden: [] },
    { retryable: true, cause: new Error(`provider ${provider.name}: attempt_timeout`, { cause }) },
  )

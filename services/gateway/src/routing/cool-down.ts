import { counter, observe, upTo } from '@tollgate/telemetry'
import { type FailureKind, kindOf } from '../models/failure-kind.ts'
import type { UpstreamFault } from '../models/upstream-fault.ts'

/** One model of one provider instance. */
export interface Seat {
  provider: { readonly name: string }
  model: string
}

export type Condition =
  | { state: 'ready' }
  /** Its time is over: the next request tries it, and that one alone. */
  | { state: 'on_trial' }
  | { state: 'cooling'; forMs: number }

/** Which models are let rest, since they failed several times in a row or said when to come back. */
export interface CoolDowns {
  of(seat: Seat): Condition
  /** A request is about to ask it; of a model on trial nobody else does until that one is over. */
  asked(seat: Seat): void
  answered(seat: Seat): void
  failed(seat: Seat, fault: UpstreamFault, restMs?: number): void
  /** The request went away before anything was known. */
  left(seat: Seat): void
  close(): void
}

/** Failures in a row, without an answer between them, that a model has before it rests. */
const FAILURES = 3
const REST_MS = 30_000
/** A rest doubles with every trial that fails, and follows a `retry-after`, up to here. */
const MOST_REST_MS = 5 * 60_000
/** Up to so much of a rest is added by chance, so that replicas do not all come back in one moment. */
const JITTER = 0.2
/** A trial whose end nobody told of is over then. */
const TRIAL_MS = 10 * 60_000
/** Models that are remembered; the one that failed longest ago is forgotten first, and asked as if nothing had been. */
const MOST_SEATS = 1_000

/** A model that does not exist is no better for a rest, and one that this gateway asks too much of is well. */
const restsFor: ReadonlySet<FailureKind> = new Set<FailureKind>([
  'rate_limit',
  'server_error',
  'timeout',
  'connection',
  'broken_answer',
  'account',
])

interface Entry {
  provider: string
  failures: number
  rests: number
  until: number
  trialUntil: number
}

const begun = counter('model_cool_downs_total', 'Models let rest after failures, by provider', { provider: upTo(50) })

/** Kept in this process: every replica finds out for itself. */
export function openCoolDowns(now: () => number = Date.now, random: () => number = Math.random): CoolDowns {
  const entries = new Map<string, Entry>()
  /** Of the configuration's few: what a gauge is not told again is shown as it was. */
  const rested = new Set<string>()
  const stop = observe('models_cooling', 'Models that are let rest now', { provider: upTo(50) }, () => {
    const at = now()
    const counts = new Map(Array.from(rested, (provider) => [provider, 0]))
    for (const { provider, until } of entries.values())
      if (until > at) counts.set(provider, (counts.get(provider) ?? 0) + 1)
    return Array.from(counts, ([provider, value]) => ({ value, values: { provider } }))
  })

  function left(seat: Seat): void {
    const entry = entries.get(keyOf(seat))
    if (entry) entry.trialUntil = 0
  }

  return {
    of(seat) {
      const entry = entries.get(keyOf(seat))
      if (entry === undefined || entry.until === 0) return { state: 'ready' }
      const at = now()
      if (entry.until > at) return { state: 'cooling', forMs: entry.until - at }
      return entry.trialUntil > at ? { state: 'cooling', forMs: entry.trialUntil - at } : { state: 'on_trial' }
    },
    asked(seat) {
      const entry = entries.get(keyOf(seat))
      if (entry && entry.until > 0 && entry.until <= now()) entry.trialUntil = now() + TRIAL_MS
    },
    answered: (seat) => void entries.delete(keyOf(seat)),
    left,
    failed(seat, fault, restMs = REST_MS) {
      const kind = kindOf(fault)
      if (kind === undefined || !restsFor.has(kind) || restMs === 0) return left(seat)
      const key = keyOf(seat)
      const fresh: Entry = { provider: seat.provider.name, failures: 0, rests: 0, until: 0, trialUntil: 0 }
      const entry = entries.get(key) ?? fresh
      entries.delete(key)
      if (entries.size >= MOST_SEATS) entries.delete(entries.keys().next().value as string)
      entries.set(key, entry)
      entry.failures += 1
      entry.trialUntil = 0
      const stated = (fault.retryAfterSeconds ?? 0) * 1_000
      // what it is asked for while it rests, because nobody else is there, makes the rest no longer
      if (entry.until > now()) return
      const earned = entry.failures >= FAILURES ? restMs * 2 ** Math.min(entry.rests, 10) : 0
      const rest = Math.min(MOST_REST_MS, Math.max(stated, earned))
      if (rest === 0) return
      entry.rests += 1
      entry.until = now() + Math.round(rest * (1 + JITTER * random()))
      rested.add(entry.provider)
      begun.add(1, { provider: entry.provider })
    },
    close: stop,
  }
}

const keyOf = ({ provider, model }: Seat): string => `${provider.name}:${model}`

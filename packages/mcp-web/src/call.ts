import { type DomainPolicy, type Failure, Fault, type Tenancy } from '@tollgate/contracts'

/** What a call works with: for whom, until when, and where to it may go. */
export interface CallAt {
  tenancy: Tenancy
  /** Fires when nobody waits for the answer any more, and when the process must end. */
  signal: AbortSignal
  /** Epoch milliseconds. */
  deadline: number
  /** Where it may fetch from (W-33); anywhere public when absent. */
  domains?: DomainPolicy
}

/** What a call came to. A failure is an outcome: its message is safe to show, what really happened is its cause. */
export type Outcome<T> =
  /** `isError`: it came to an end, yet counts as an error and costs nothing. */
  | { ok: true; value: T; label: string; reportedCost?: string | undefined; isError?: boolean }
  | { ok: false; failure: Failure; message: string; label?: string | undefined; cause?: unknown }

/** The kinds of tool that calls of this server count and are priced as. */
export type CallKind = 'web_search' | 'web_fetch'

/** Lets one call run and sees to what it costs; what it throws is a refusal. A desktop's own process lets them run for nothing. */
export type RunCall = <T>(kind: CallKind, run: (at: CallAt) => Promise<Outcome<T>>) => Promise<Outcome<T>>

export const failed = (
  failure: Failure,
  message: string,
  more: { label?: string; cause?: unknown } = {},
): Outcome<never> => ({ ok: false, failure, message, ...more })

/** A worker that gave no answer in time, or is not there; anything else is thrown on, as is the reason of a fired signal. */
export function unanswered(thrown: unknown, what: string, { signal }: CallAt): Outcome<never> {
  if (signal.aborted) throw signal.reason
  const cause = Fault.from(thrown)
  if (cause.failure === 'timeout') return failed('timeout', `${what} timed out`, { cause })
  if (cause.failure === 'unavailable') return failed('unavailable', `${what} is not available right now`, { cause })
  throw cause
}

import type { Fault } from '@tollgate/contracts'
import type { AnswerEvent } from '../conversation/events.ts'
import { UpstreamFault } from '../models/upstream-fault.ts'

/** A candidate that this gateway does not ask: a policy refuses what it would run here (X-17, S-13). */
export interface PassedOver {
  number: number
  provider: { readonly name: string }
  model: string
  refused: Fault
}

/** What became of candidates that gave no answer. */
export interface Unanswered {
  /** The attempt under way failed, and another stands in for it. */
  absorbed(fault: UpstreamFault): void
  passedOver(candidate: PassedOver): void
}

/**
 * Answers from the first candidate that can. Another is tried only while nothing has gone out, and only for a failure of
 * the provider: what this gateway refused or limited would only happen twice (L-37). Where none is left, the last failure
 * is the answer.
 */
export async function* attempts<C extends object>(
  candidates: readonly (C | PassedOver)[],
  answer: (candidate: C) => AsyncIterable<AnswerEvent>,
  { absorbed, passedOver }: Unanswered,
): AsyncGenerator<AnswerEvent> {
  let failed: UpstreamFault | undefined
  for (const candidate of candidates) {
    if ('refused' in candidate) {
      passedOver(candidate)
      continue
    }
    if (failed) absorbed(failed)
    let begun = false
    try {
      for await (const event of answer(candidate)) {
        begun = true
        yield event
      }
      return
    } catch (thrown) {
      if (begun || !(thrown instanceof UpstreamFault && thrown.retryable)) throw thrown
      failed = thrown
    }
  }
  throw failed ?? new Error('a request was answered without a model to ask')
}

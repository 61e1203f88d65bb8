import type { AnswerEvent } from '../conversation/events.ts'
import { UpstreamFault } from '../models/upstream-fault.ts'

/**
 * Answers from the first candidate that can. Another is tried only while nothing has gone out, and only for a failure of
 * the provider: what this gateway refused or limited would only happen twice (L-37).
 */
export async function* attempts<C>(
  candidates: readonly C[],
  answer: (candidate: C, attempt: number) => AsyncIterable<AnswerEvent>,
  absorbed: (fault: UpstreamFault) => void,
): AsyncGenerator<AnswerEvent> {
  for (const [attempt, candidate] of candidates.entries()) {
    let begun = false
    try {
      for await (const event of answer(candidate, attempt)) {
        begun = true
        yield event
      }
      return
    } catch (thrown) {
      const another = attempt + 1 < candidates.length
      if (begun || !another || !(thrown instanceof UpstreamFault && thrown.retryable)) throw thrown
      absorbed(thrown)
    }
  }
}

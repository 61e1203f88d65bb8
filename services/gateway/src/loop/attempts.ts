import type { AnswerEvent } from '../conversation/events.ts'
import type { Walk } from './walk.ts'

/**
 * Answers from the first candidate that can, as `walk` has them. An answer that is collected counts as begun with its
 * first whole message, a streamed one with its first event (L-37).
 */
export async function* attempts(
  walk: Walk,
  answer: (attempt: Walk['current'], signal: AbortSignal) => AsyncIterable<AnswerEvent>,
  { stream }: { stream: boolean },
): AsyncGenerator<AnswerEvent> {
  for (;;) {
    const { signal } = walk.start()
    try {
      let held: AnswerEvent[] | undefined = stream ? undefined : []
      for await (const event of answer(walk.current, signal)) {
        if (held === undefined) {
          walk.began()
          yield event
          continue
        }
        held.push(event)
        if (!beginsAnswer(event)) continue
        walk.began()
        yield* held
        held = undefined
      }
      if (held) yield* held
      walk.answered()
      return
    } catch (thrown) {
      walk.failed(thrown)
    } finally {
      walk.over()
    }
  }
}

/**
 * What an answer that is collected is held until, so that nothing of it is left should it break off before. A tool that the
 * model's own backend ran is no word of the answer yet (PE-19).
 */
const beginsAnswer = (event: AnswerEvent): boolean =>
  event.type === 'tool' ? !event.call.byProvider : event.type === 'finish'

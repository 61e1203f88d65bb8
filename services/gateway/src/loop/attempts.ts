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
      for await (const event of begunBy(answer(walk.current, signal), stream, walk.began)) yield event
      walk.answered()
      return
    } catch (thrown) {
      walk.failed(thrown)
    } finally {
      walk.over()
    }
  }
}

/** Holds the events of a first message that is collected, so that nothing of it is left should it break off. */
async function* begunBy(
  events: AsyncIterable<AnswerEvent>,
  stream: boolean,
  began: () => void,
): AsyncGenerator<AnswerEvent> {
  let held: AnswerEvent[] | undefined = stream ? undefined : []
  for await (const event of events) {
    if (held === undefined) {
      began()
      yield event
      continue
    }
    held.push(event)
    // a tool that the model's own backend ran is no word of the answer yet (PE-19)
    if (event.type === 'tool' ? event.call.byProvider : event.type !== 'finish') continue
    began()
    yield* held
    held = undefined
  }
  if (held) yield* held
}

import type { AnswerEvent } from '../conversation/events.ts'
import { type Tell, tellAll } from '../conversation/tell.ts'
import type { Walk } from './walk.ts'

/**
 * Answers from the first candidate that can, as `walk` has them. An answer that is collected counts as begun with its
 * first whole message, a streamed one with its first event (L-37).
 */
export async function attempts(
  walk: Walk,
  answer: (attempt: Walk['current'], signal: AbortSignal, tell: Tell<AnswerEvent>) => Promise<void>,
  { stream }: { stream: boolean },
  tell: Tell<AnswerEvent>,
): Promise<void> {
  for (;;) {
    const { signal } = walk.start()
    try {
      let held: AnswerEvent[] | undefined = stream ? undefined : []
      await answer(walk.current, signal, (event) => {
        if (held === undefined) {
          walk.began()
          return tell(event)
        }
        held.push(event)
        if (!beginsAnswer(event)) return undefined
        walk.began()
        const all = held
        held = undefined
        return tellAll(all, tell)
      })
      if (held) await tellAll<AnswerEvent>(held, tell)
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

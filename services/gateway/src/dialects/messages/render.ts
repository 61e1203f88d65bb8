import { type Answer, type AnswerBlock, type AnswerItem, activitiesOf } from '../../conversation/collect.ts'
import type { Json, JsonObject, Turn } from '../../conversation/turn.ts'
import { inputOf, isKnown, startOf } from './blocks.ts'
import { laterEnding, noEnding, readExtra } from './extras.ts'
import { messagesFinish } from './finish.ts'
import { containerMember, headOf } from './head.ts'
import { toolBlocks } from './tool-blocks.ts'
import { isProviderSearch, messagesUsage } from './usage.ts'

/** A whole answer as a Messages `message`. */
export function renderMessages(answer: Answer, turn: Pick<Turn, 'model' | 'tools' | 'headers'>): JsonObject {
  const { delta, beside } = endingOf(answer)
  return {
    ...headOf(answer, turn.model),
    content: contentOf(answer, turn),
    ...containerMember(answer.container),
    stop_reason: messagesFinish(answer.finish),
    stop_sequence: null,
    ...delta,
    ...beside,
    usage: messagesUsage(answer.usage, activitiesOf(answer).filter(isProviderSearch).length),
  }
}

function endingOf({ extras }: Answer) {
  return extras.reduce((ending, { dialect, value }) => {
    const own = dialect === 'messages' ? readExtra(value) : undefined
    return own?.type === 'ending' ? laterEnding(ending, own.ending) : ending
  }, noEnding)
}

function contentOf(answer: Answer, { tools, headers }: Pick<Turn, 'tools' | 'headers'>): JsonObject[] {
  const shownAs = toolBlocks(tools, headers)
  return beforeLastWords(answer.items).flatMap((item) => {
    if (item.type === 'tool') return shownAs(item.activity)
    return isKnown(item.start) ? [wholeBlock(item, citationsOf(answer, item))] : []
  })
}

/** in a mixed turn tools run after the model's last words, and are shown before them all the same. */
function beforeLastWords(items: AnswerItem[]): AnswerItem[] {
  const after = items.findLastIndex(({ type }) => type === 'block') + 1
  const last = items.slice(0, after).findLastIndex(({ type }) => type === 'tool') + 1
  return [...items.slice(0, last), ...items.slice(after), ...items.slice(last, after)]
}

const citationsOf = ({ extras }: Answer, block: AnswerBlock): Json[] =>
  extras.flatMap(({ dialect, value, block: of }) => {
    const own = dialect === 'messages' && of === block ? readExtra(value) : undefined
    return own?.type === 'citation' ? [own.citation] : []
  })

function wholeBlock({ start, raw, text, signature }: AnswerBlock, citations: Json[]): JsonObject {
  const block = startOf(start, raw)
  switch (start.kind) {
    case 'text':
    case 'refusal':
      return { ...block, text, ...(citations.length > 0 && { citations }) }
    case 'thinking':
      return { ...block, thinking: text, signature: signature ?? '' }
    case 'call':
      return { ...block, input: inputOf(text) }
    case 'redacted_thinking':
    case 'other':
      return block
    default:
      return start satisfies never
  }
}

import { Fault, type HeldContainer, type TokenCounts } from '@tollgate/contracts'
import type { AnswerEvent, BlockStart, FinishReason, ModelEvent, Raw, ToolActivity } from './events.ts'
import type { Tell } from './tell.ts'
import type { Dialect, JsonObject } from './turn.ts'

/** A whole answer: what a stream says, once it is over. */
export interface Answer {
  id: string | undefined
  created: number | undefined
  /** The instance that answered. */
  provider: string | undefined
  /** The sandbox that outlives the request, if there is one. */
  container: HeldContainer | undefined
  /** Top-level members of the upstream's own dialect. */
  extra: JsonObject
  /** The envelope as its upstream began it. */
  raw: Raw | undefined
  /** What the model said and what the gateway ran, in the order in which it came. */
  items: AnswerItem[]
  /** What only an upstream's own dialect has a place for, each with the block that was being said when it came. */
  extras: { dialect: Dialect; value: JsonObject; block: AnswerBlock | undefined }[]
  usage: { tokens: TokenCounts; raw: Raw | undefined } | undefined
  finish: { reason: FinishReason; raw: string | undefined }
}

export type AnswerItem = AnswerBlock | { type: 'tool'; activity: ToolActivity }

export interface AnswerBlock {
  type: 'block'
  index: number
  start: BlockStart
  /** As its upstream began it. */
  raw: Raw | undefined
  /** Its text, its thinking, or its arguments as JSON text. */
  text: string
  signature: string | undefined
  /** The item that ended with it, as its upstream has it. */
  whole: Raw | undefined
}

/** Reads an answer to its end. A stream that just stops is a failure of the upstream (BR-018). */
export async function collectAnswer(read: (tell: Tell<AnswerEvent>) => Promise<void>): Promise<Answer> {
  const collector = answerCollector()
  await read((event) => {
    collector.push(event)
    return undefined
  })
  return collector.answer()
}

export function answerCollector() {
  const open = new Map<number, AnswerBlock>()
  const items: AnswerItem[] = []
  const extras: Answer['extras'] = []
  let start: (ModelEvent & { type: 'start' }) | undefined
  let container: HeldContainer | undefined
  let usage: Answer['usage']
  let finish: Answer['finish'] | undefined

  return {
    push(event: AnswerEvent): void {
      switch (event.type) {
        case 'start':
          start ??= event
          break
        case 'open': {
          const { index, block, raw } = event
          const unsaid = { text: '', signature: undefined, whole: undefined }
          const opened: AnswerBlock = { type: 'block', index, start: block, raw, ...unsaid }
          open.set(index, opened)
          items.push(opened)
          break
        }
        case 'delta': {
          const block = open.get(event.index)
          if (block) block.text += event.text
          break
        }
        case 'signature': {
          const block = open.get(event.index)
          if (block) block.signature = event.signature
          break
        }
        case 'close': {
          const block = open.get(event.index)
          if (block) block.whole = event.raw
          open.delete(event.index)
          break
        }
        case 'extra':
          extras.push({ dialect: event.dialect, value: event.value, block: Array.from(open.values()).at(-1) })
          break
        case 'usage':
          usage = { tokens: event.tokens, raw: event.raw }
          break
        case 'finish':
          finish = { reason: event.reason, raw: event.raw }
          break
        case 'tool':
          if (event.phase === 'finished') items.push({ type: 'tool', activity: event })
          break
        case 'container':
          container = event.container
          break
        default:
          event satisfies never
      }
    },
    answer(): Answer {
      if (!finish) throw new Fault('upstream', "the model provider's answer broke off")
      return {
        id: start?.id,
        created: start?.created,
        provider: start?.provider,
        container,
        extra: start?.extra ?? {},
        raw: start?.raw,
        items,
        extras,
        usage,
        finish,
      }
    },
  }
}

export const blocksOf = ({ items }: Answer): AnswerBlock[] =>
  items.flatMap((item) => (item.type === 'block' ? [item] : []))

export const activitiesOf = ({ items }: Answer): ToolActivity[] =>
  items.flatMap((item) => (item.type === 'tool' ? [item.activity] : []))

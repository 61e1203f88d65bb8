import type { HeldContainer } from '@tollgate/contracts'
import type { Answer } from '../../conversation/collect.ts'
import type { AnswerEvent, BlockStart, ModelEvent } from '../../conversation/events.ts'
import type { JsonObject, Turn } from '../../conversation/turn.ts'
import type { AnswerWriter } from '../answer-writer.ts'
import { blockQueue } from './block-queue.ts'
import { deltaOf, isKnown, startOf } from './blocks.ts'
import { laterEnding, noEnding, readExtra } from './extras.ts'
import { messagesFinish } from './finish.ts'
import { containerMember, headOf } from './head.ts'
import { toolBlocks } from './tool-blocks.ts'
import { isProviderSearch, messagesUsage } from './usage.ts'

const frame = (type: string, members: JsonObject): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...members })}\n\n`

/** */
export const STREAM_PING = frame('ping', {})
export const STREAM_STOP = frame('message_stop', {})
export const STREAM_DONE = 'event: done\ndata: {}\n\n'
export const STREAM_FAILED = frame('error', {
  error: { type: 'api_error', message: 'An error occurred during streaming' },
})

const startFrame = (index: number, block: JsonObject): string =>
  frame('content_block_start', { index, content_block: block })
const deltaFrame = (index: number, delta: JsonObject): string => frame('content_block_delta', { index, delta })
const stopFrame = (index: number): string => frame('content_block_stop', { index })

/** Writes an answer as the events of a Messages stream: one message, its blocks numbered without gaps. */
export function messagesStream({ model, tools, headers }: Pick<Turn, 'model' | 'tools' | 'headers'>): AnswerWriter {
  const blocks = blockQueue(stopFrame)
  const kinds = new Map<number, BlockStart['kind']>()
  const shownAs = toolBlocks(tools, headers)
  let container: HeldContainer | undefined
  let ending = noEnding
  let searches = 0
  let usage: Answer['usage']

  function start({ id, raw }: ModelEvent & { type: 'start' }): string {
    const head = headOf({ id, raw }, model)
    const counted = { usage: head.usage ?? { input_tokens: 0, output_tokens: 0 } }
    return frame('message_start', { message: { ...head, ...counted, ...containerMember(container) } })
  }

  function open({ index, block, raw }: ModelEvent & { type: 'open' }): string {
    if (!isKnown(block)) return ''
    kinds.set(index, block.kind)
    return blocks.open(index, (at) => startFrame(at, startOf(block, raw)))
  }

  function delta({ index, text }: ModelEvent & { type: 'delta' }): string {
    const value = deltaOf(kinds.get(index) ?? 'other', text)
    return value ? blocks.write(index, (at) => deltaFrame(at, value)) : ''
  }

  function extra({ dialect, value }: ModelEvent & { type: 'extra' }): string {
    const own = dialect === 'messages' ? readExtra(value) : undefined
    if (own?.type === 'ending') ending = laterEnding(ending, own.ending)
    const current = blocks.current()
    if (own?.type !== 'citation' || current === undefined) return ''
    const citation: JsonObject = { type: 'citations_delta', citation: own.citation }
    return blocks.write(current, (at) => deltaFrame(at, citation))
  }

  function finish(event: ModelEvent & { type: 'finish' }): string {
    const delta = { stop_reason: messagesFinish(event), ...ending.delta }
    return frame('message_delta', { delta, ...ending.beside, usage: messagesUsage(usage, searches) }) + STREAM_STOP
  }

  return {
    keepalive: STREAM_PING,
    push(event: AnswerEvent) {
      switch (event.type) {
        case 'start':
          return start(event)
        case 'open':
          return open(event)
        case 'delta':
          return delta(event)
        case 'signature': {
          const { index, signature } = event
          return blocks.write(index, (at) => deltaFrame(at, { type: 'signature_delta', signature }))
        }
        case 'close':
          return blocks.close(event.index)
        case 'extra':
          return extra(event)
        case 'tool':
          if (isProviderSearch(event)) searches += 1
          return shownAs(event)
            .map((block) => blocks.whole((at) => startFrame(at, block)))
            .join('')
        case 'container':
          container = event.container
          return ''
        case 'usage':
          usage = event
          return ''
        case 'finish':
          return finish(event)
        default:
          return event satisfies never
      }
    },
    end: () => STREAM_DONE,
    fail: () => STREAM_FAILED,
  }
}

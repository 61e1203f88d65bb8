import { isObject } from '../../conversation/json.ts'
import type { JsonObject } from '../../conversation/turn.ts'
import type { Watch } from '../forward-stream.ts'
import { bytewise, placesOf, scanFrames, timesIn, type Verdict } from '../scan.ts'
import type { SseFrame } from '../sse.ts'
import { faultOfFrame } from '../upstream-errors.ts'
import { brokenAnswer, type Origin } from '../upstream-fault.ts'
import { finishReason } from './events.ts'
import { messagesUsageReader } from './usage.ts'

/** Words for whose sake a frame is parsed. Written raw, none can stand inside a JSON string. */
const FINDERS = ['"message_start"', '"message_delta"', '"message_stop"', '"error"', '"tool_use"', '[DONE]'].map(
  placesOf,
)
/** Clients of the vendor read it whether anybody counted or not. */
export const UNCOUNTED: JsonObject = { input_tokens: 0, output_tokens: 0 }
/** About what a piece of text costs beside its text. */
const ENVELOPE =
  'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":""}}\n\n'
    .length

/**
 * Frames are found and judged by their bytes; only those that may begin or end the message, count its tokens or begin a
 * call are parsed. Written anew are the first, for the model's name (R-03), the last, for the reason of a turn that called
 * and does not say so (BR-023) or for usage that is missing, and, where a server leaves out the events' names, every one.
 */
export function messagesWatch(origin: Origin, model: string): Watch {
  const usage = messagesUsageReader()
  let began = false
  let started = false
  let nameless = false
  let called = false
  let done = false
  let reason: string | undefined
  let deltas = 0
  let bytesThrough = 0

  function judge({ event, data }: SseFrame, bytes: number): Verdict {
    if (data === '[DONE]') return [] // compatible servers add it
    const json = parse(data)
    if (json === undefined) return began ? undefined : brokenAnswer('unreadable', origin)
    if (json.type === 'error') return faultOfFrame(origin, json)
    nameless ||= event === ''
    if (json.type !== 'content_block_delta') bytesThrough -= bytes
    const mended = look(json)
    done = json.type === 'message_stop'
    const frame = mended || nameless ? [frameOf(json)] : undefined
    return done ? { end: frame ?? [frameOf(json)] } : frame
  }

  /** Reads an event, and says whether it had to be changed. */
  function look(json: JsonObject): boolean {
    switch (json.type) {
      case 'message_start': {
        const message = isObject(json.message) ? json.message : {}
        usage.read(message.usage)
        started = true
        message.model = model
        message.usage ??= UNCOUNTED
        return true
      }
      case 'content_block_start':
        began ||= started
        called ||= isObject(json.content_block) && json.content_block.type === 'tool_use'
        return false
      case 'message_delta':
        began ||= started
        usage.read(json.usage)
        return mendEnd(json)
      default:
        return false
    }
  }

  function mendEnd(json: JsonObject): boolean {
    const uncounted = !isObject(json.usage)
    if (uncounted) json.usage = UNCOUNTED
    const { delta } = json
    if (!isObject(delta) || typeof delta.stop_reason !== 'string') return uncounted
    reason = delta.stop_reason
    if (!called || reason !== 'end_turn') return uncounted
    delta.stop_reason = 'tool_use'
    return true
  }

  return {
    look(frames) {
      const text = bytewise(frames)
      bytesThrough += frames.length
      deltas += timesIn(text, '"content_block_delta"')
      // every frame is read until the answer has begun
      return scanFrames(frames, text, FINDERS, () => !began || nameless, judge)
    },
    began: () => began,
    done: () => done,
    tokens: () => usage.total()?.tokens,
    finish: () => (reason === undefined ? undefined : finishReason(reason, called)),
    outputCharacters: () => Math.max(0, bytesThrough - deltas * ENVELOPE),
  }
}

const frameOf = (json: JsonObject): Buffer =>
  Buffer.from(`event: ${String(json.type)}\ndata: ${JSON.stringify(json)}\n\n`)

function parse(data: string): JsonObject | undefined {
  try {
    const json = JSON.parse(data)
    return isObject(json) && typeof json.type === 'string' ? json : undefined
  } catch {
    return undefined
  }
}

import type { TokenCounts } from '@tollgate/contracts'
import { isObject } from '../../conversation/json.ts'
import type { JsonObject } from '../../conversation/turn.ts'
import type { Watch } from '../forward-stream.ts'
import { placesOf, scanFrames, type Verdict } from '../scan.ts'
import type { SseFrame } from '../sse.ts'
import { faultOfFrame } from '../upstream-errors.ts'
import { brokenAnswer, type Origin } from '../upstream-fault.ts'
import { finishReason } from './events.ts'
import { countedIn } from './usage.ts'

/** Words for whose sake a frame is parsed. Written raw, none can stand inside a JSON string. */
const FINDERS = ['"response"', '"error"', '[DONE]'].map(placesOf)
const CALL = Buffer.from('"function_call"')
const DELTA = Buffer.from('"response.output_text.delta"')
/** About what a piece of text costs beside its text. */
const ENVELOPE =
  'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","item_id":"msg_0123456789abcdef","output_index":0,"content_index":0,"delta":"","sequence_number":10}\n\n'
    .length

/**
 * Frames are found and judged by their bytes; only those that hold the response itself are parsed, and written anew for
 * the model's name in it.
 */
export function responsesWatch(origin: Origin, model: string): Watch {
  let began = false
  let done = false
  let called = false
  let why: string | undefined
  let tokens: TokenCounts | undefined
  let deltas = 0
  let bytesThrough = 0

  function judge({ event, data }: SseFrame, bytes: number): Verdict {
    if (data === '[DONE]') return [] // compatible servers add it, and clients get one of this gateway's
    const json = parse(data)
    if (json === undefined) return began ? undefined : brokenAnswer('unreadable', origin)
    const type = typeof json.type === 'string' ? json.type : event
    if (type === 'error' || (isObject(json.error) && json.response === undefined)) return faultOfFrame(origin, json)
    if (!isObject(json.response)) {
      began ||= type.startsWith('response.')
      return undefined
    }
    // it repeats what was said
    bytesThrough -= bytes
    return judgeResponse(type, json, json.response)
  }

  function judgeResponse(type: string, json: JsonObject, response: JsonObject): Verdict {
    if (type === 'response.failed') return faultOfFrame(origin, { error: response.error })
    response.model = model
    const frame = Buffer.from(`event: ${type}\ndata: ${JSON.stringify(json)}\n\n`)
    if (type !== 'response.completed' && type !== 'response.incomplete') return [frame]
    began = done = true
    tokens = countedIn(response.usage)?.tokens
    if (type === 'response.incomplete') why = reasonIn(response) ?? 'incomplete'
    return { end: [frame] }
  }

  return {
    look(frames) {
      for (let at = frames.indexOf(DELTA); at >= 0; at = frames.indexOf(DELTA, at + DELTA.length)) deltas++
      called ||= frames.includes(CALL)
      bytesThrough += frames.length
      // every frame is read until the answer has begun
      return scanFrames(frames, FINDERS, () => !began, judge)
    },
    began: () => began,
    done: () => done,
    tokens: () => tokens,
    finish: () => (done ? finishReason(why, called) : undefined),
    outputCharacters: () => Math.max(0, bytesThrough - deltas * ENVELOPE),
  }
}

function reasonIn({ incomplete_details: details }: JsonObject): string | undefined {
  return isObject(details) && typeof details.reason === 'string' ? details.reason : undefined
}

function parse(data: string): JsonObject | undefined {
  try {
    const json = JSON.parse(data)
    return isObject(json) ? json : undefined
  } catch {
    return undefined
  }
}

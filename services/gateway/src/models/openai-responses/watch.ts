import type { TokenCounts } from '@tollgate/contracts'
import { isObject } from '../../conversation/json.ts'
import type { JsonObject } from '../../conversation/turn.ts'
import type { Watch } from '../forward-stream.ts'
import { bytewise, frameEnd, frameStart, placesOf, scanFrames, type Verdict } from '../scan.ts'
import { type SseFrame, sseParser } from '../sse.ts'
import { faultOfFrame } from '../upstream-errors.ts'
import { brokenAnswer, type Origin } from '../upstream-fault.ts'
import { finishReason } from './events.ts'
import { countedIn } from './usage.ts'

/** Words for whose sake a frame is parsed. Written raw, none can stand inside a JSON string. */
const FINDERS = ['"response"', '"error"', '[DONE]'].map(placesOf)
const CALL = '"function_call"'
/** How the type of everything that is said piece by piece ends; frames have it once. */
const DELTA = '.delta"'

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
  let bytesThrough = 0
  /** What is said in pieces: other frames only say it again. */
  const said = { pieces: 0, bytes: 0 }
  /** What the first of them would measure with an empty text in it. */
  let envelope: number | undefined

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

  function count(frames: Buffer, text: string): void {
    for (let at = text.indexOf(DELTA); at >= 0; at = text.indexOf(DELTA, at + DELTA.length)) {
      const start = frameStart(text, at)
      const end = frameEnd(text, at)
      envelope ??= envelopeOf(frames.subarray(start, end))
      said.pieces += 1
      said.bytes += end - start
    }
  }

  return {
    look(frames) {
      const text = bytewise(frames)
      count(frames, text)
      called ||= text.includes(CALL)
      bytesThrough += frames.length
      // every frame is read until the answer has begun
      return scanFrames(frames, text, FINDERS, () => !began, judge)
    },
    began: () => began,
    done: () => done,
    tokens: () => tokens,
    finish: () => (done ? finishReason(why, called) : undefined),
    outputCharacters: () =>
      said.pieces === 0 ? bytesThrough : Math.max(0, said.bytes - said.pieces * (envelope ?? 0)),
  }
}

/** Undefined for a frame that is none. */
function envelopeOf(frame: Buffer): number | undefined {
  const [read] = sseParser().push(frame)
  const delta = read && parse(read.data)?.delta
  return typeof delta === 'string' ? frame.length - Buffer.byteLength(JSON.stringify(delta)) + '""'.length : undefined
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

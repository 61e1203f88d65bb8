import type { TokenCounts } from '@tollgate/contracts'
import type { Watch } from '../forward-stream.ts'
import { bytewise, type Finder, placesOf, scanFrames, timesIn, type Verdict } from '../scan.ts'
import type { SseFrame } from '../sse.ts'
import { faultOfFrame } from '../upstream-errors.ts'
import { brokenAnswer, type Origin } from '../upstream-fault.ts'
import { finishReason } from './events.ts'
import { chatMender, type MendableJson, mendable } from './mend.ts'
import { countedIn } from './usage.ts'

/** Members for whose sake a frame is parsed; a null one is no reason. Written raw, none can stand inside a JSON string. */
const MEMBERS = ['"usage"', '"error"', '"tool_calls"', '"role"', '"finish_reason"']
const FINDERS: Finder[] = [
  ...MEMBERS.map(
    (key): Finder =>
      (text, from) =>
        nextMember(text, key, from),
  ),
  placesOf('[DONE]'),
]

/**
 * Frames are found and judged by their bytes; only those that may hold usage, an error, a call, a role or a reason to
 * finish are parsed, and of these only the ones that a client would stumble over are written anew.
 */
export function chatWatch(origin: Origin, showUsage: boolean): Watch {
  const mender = chatMender()
  let began = false
  let done = false
  let tokens: TokenCounts | undefined
  let finish: string | undefined
  let deltas = 0
  let bytesThrough = 0
  /** About what a chunk of text costs beside its text. */
  let envelope = 0

  function judge(frame: SseFrame, bytes: number): Verdict {
    done = frame.data === '[DONE]'
    if (done && mender.nameless()) return brokenAnswer('nameless', origin)
    if (done) return began ? { end: lastChunk() } : brokenAnswer('empty', origin)
    const json = parse(frame.data)
    if (json === undefined) return began ? undefined : brokenAnswer('unreadable', origin)
    if (frame.event === 'error' || json.error) return faultOfFrame(origin, json)
    const counted = countedIn(json)
    if (counted) tokens = counted.tokens
    envelope ||= envelopeOf(json, bytes)
    const mended = mender.mend(json)
    finish = json.choices?.find((choice) => choice.finish_reason)?.finish_reason ?? finish
    if (json.choices?.some(saysSomething)) began = true
    if (!json.choices?.length && counted && !showUsage) return []
    return mended ? [Buffer.from(`data: ${JSON.stringify(json)}\n\n`)] : undefined
  }

  /** The chunk that a stream which ended without a reason is still owed. */
  function lastChunk(): Buffer[] {
    const missing = mender.lastChunk()
    if (!missing) return []
    finish = missing.choices?.[0]?.finish_reason ?? undefined
    return [Buffer.from(`data: ${JSON.stringify(missing)}\n\n`)]
  }

  return {
    look(frames) {
      const text = bytewise(frames)
      bytesThrough += frames.length
      deltas += timesIn(text, '"delta"')
      // every frame is read until the answer has begun
      return scanFrames(frames, text, FINDERS, () => !began, judge)
    },
    began: () => began,
    done: () => done,
    tokens: () => tokens,
    finish: () => (finish === undefined ? undefined : finishReason(finish, false)),
    outputCharacters: () => Math.max(0, bytesThrough - deltas * envelope),
  }
}

/** A role alone is no answer yet: what breaks off behind it may still be asked of another model (BR-030). */
function saysSomething({ delta, finish_reason: reason }: NonNullable<MendableJson['choices']>[number]): boolean {
  if (reason != null) return true
  return Object.entries(delta ?? {}).some(
    ([name, value]) =>
      name !== 'role' && value != null && value !== '' && !(Array.isArray(value) && value.length === 0),
  )
}

/** What the frame would measure with an empty text in it; 0 when it has no choice. */
function envelopeOf({ choices }: MendableJson, bytes: number): number {
  const delta = choices?.[0]?.delta
  return delta ? bytes - JSON.stringify(delta).length + '{"content":""}'.length : 0
}

/** The next place where `key` is a member's name and its value is not null. */
function nextMember(text: string, key: string, from: number): number {
  for (let at = text.indexOf(key, from); at >= 0; at = text.indexOf(key, at + key.length)) {
    const colon = skipSpace(text, at + key.length)
    if (text[colon] === ':' && text[skipSpace(text, colon + 1)] !== 'n') return at
  }
  return Number.POSITIVE_INFINITY
}

function skipSpace(text: string, from: number): number {
  let at = from
  while (text[at] === ' ') at++
  return at
}

function parse(data: string): MendableJson | undefined {
  try {
    return mendable.safeParse(JSON.parse(data)).data
  } catch {
    return undefined
  }
}

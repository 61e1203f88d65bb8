import type { TokenCounts } from '@tollgate/contracts'
import { type SseFrame, sseParser } from '../sse.ts'
import { faultOfFrame } from '../upstream-errors.ts'
import { brokenAnswer, type Origin, type UpstreamFault } from '../upstream-fault.ts'
import { chatMender, type MendableJson, mendable } from './mend.ts'
import { countedIn } from './usage.ts'

/** What passes through the fast lane, looked at on its way. */
export interface Watch {
  /** What of these whole frames goes on to the client, all but `[DONE]` itself; `fault` ends it. */
  look(frames: Buffer): { through: Buffer[]; fault: UpstreamFault | undefined }
  /** An answer has begun: a chunk with something in it went through. */
  began(): boolean
  /** The upstream said `[DONE]`. */
  done(): boolean
  tokens(): TokenCounts | undefined
  finish(): string | undefined
  outputCharacters(): number
}

/** Members for whose sake a frame is parsed; a null one is no reason. Written raw, none can stand inside a JSON string. */
const MEMBERS = ['"usage"', '"error"', '"tool_calls"', '"role"', '"finish_reason"'].map((key) => Buffer.from(key))
const DONE = Buffer.from('[DONE]')
const DELTA = Buffer.from('"delta"')

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

  /** Undefined: as it came. */
  function judge(frame: SseFrame, bytes: number): Buffer | 'drop' | UpstreamFault | undefined {
    const json = parse(frame.data)
    if (json === undefined) return began ? undefined : brokenAnswer('unreadable', origin)
    if (frame.event === 'error' || json.error) return faultOfFrame(origin, json)
    const counted = countedIn(json)
    if (counted) tokens = counted.tokens
    envelope ||= envelopeOf(json, bytes)
    const mended = mender.mend(json)
    finish = json.choices?.find((choice) => choice.finish_reason)?.finish_reason ?? finish
    if (json.choices && json.choices.length > 0) began = true
    else if (counted && !showUsage) return 'drop'
    return mended ? Buffer.from(`data: ${JSON.stringify(json)}\n\n`) : undefined
  }

  /** The chunk that a stream which ended without a reason is still owed. */
  function lastChunk(): Buffer[] {
    const missing = mender.lastChunk()
    if (!missing) return []
    finish = missing.choices?.[0]?.finish_reason ?? undefined
    return [Buffer.from(`data: ${JSON.stringify(missing)}\n\n`)]
  }

  const empty = () => brokenAnswer('empty', origin)

  function count(frames: Buffer): void {
    bytesThrough += frames.length
    for (let at = frames.indexOf(DELTA); at >= 0; at = frames.indexOf(DELTA, at + DELTA.length)) deltas++
  }

  return {
    look(frames) {
      count(frames)
      const through: Buffer[] = []
      const reasons = reasonsToRead(frames)
      let passed = 0
      let from = 0
      while (from < frames.length) {
        // every frame is read until the answer has begun
        const at = began ? reasons(from) : from
        if (at < 0) break
        const start = frameStart(frames, at)
        const stop = frameEnd(frames, at)
        const [frame] = sseParser().push(frames.subarray(start, stop))
        done = frame?.data === '[DONE]'
        const verdict = frame && (done ? 'drop' : judge(frame, stop - start))
        from = stop
        if (verdict === undefined) continue
        if (start > passed) through.push(frames.subarray(passed, start))
        passed = stop
        if (done)
          return began ? { through: [...through, ...lastChunk()], fault: undefined } : { through, fault: empty() }
        if (verdict instanceof Error) return { through, fault: verdict }
        if (verdict !== 'drop') through.push(verdict)
      }
      if (passed < frames.length) through.push(passed === 0 ? frames : frames.subarray(passed))
      return { through, fault: undefined }
    },
    began: () => began,
    done: () => done,
    tokens: () => tokens,
    finish: () => finish,
    outputCharacters: () => Math.max(0, bytesThrough - deltas * envelope),
  }
}

/** What the frame would measure with an empty text in it; 0 when it has no choice. */
function envelopeOf({ choices }: MendableJson, bytes: number): number {
  const delta = choices?.[0]?.delta
  return delta ? bytes - JSON.stringify(delta).length + '{"content":""}'.length : 0
}

/** Finds, position by position, what a frame is read for; each key is looked for once a stretch. */
function reasonsToRead(frames: Buffer): (from: number) => number {
  const next = MEMBERS.map(() => -1)
  let done = -1
  return (from) => {
    let nearest = Number.POSITIVE_INFINITY
    for (const [i, key] of MEMBERS.entries()) {
      if (next[i]! < from) next[i] = nextMember(frames, key, from)
      nearest = Math.min(nearest, next[i]!)
    }
    if (done < from) done = orNever(frames.indexOf(DONE, from))
    nearest = Math.min(nearest, done)
    return nearest === Number.POSITIVE_INFINITY ? -1 : nearest
  }
}

const orNever = (at: number): number => (at < 0 ? Number.POSITIVE_INFINITY : at)

/** The next place where `key` is a member's name and its value is not null. */
function nextMember(frames: Buffer, key: Buffer, from: number): number {
  for (let at = frames.indexOf(key, from); at >= 0; at = frames.indexOf(key, at + key.length)) {
    const colon = skipSpace(frames, at + key.length)
    if (frames[colon] === 0x3a && frames[skipSpace(frames, colon + 1)] !== 0x6e) return at
  }
  return Number.POSITIVE_INFINITY
}

function skipSpace(bytes: Buffer, from: number): number {
  let at = from
  while (bytes[at] === 0x20) at++
  return at
}

function frameStart(frames: Buffer, at: number): number {
  const lf = frames.lastIndexOf('\n\n', at)
  const crlf = frames.lastIndexOf('\n\r\n', at)
  return Math.max(lf < 0 ? 0 : lf + 2, crlf < 0 ? 0 : crlf + 3)
}

function frameEnd(frames: Buffer, at: number): number {
  const lf = frames.indexOf('\n\n', at)
  const crlf = frames.indexOf('\n\r\n', at)
  return Math.min(lf < 0 ? frames.length : lf + 2, crlf < 0 ? frames.length : crlf + 3)
}

function parse(data: string): MendableJson | undefined {
  try {
    return mendable.safeParse(JSON.parse(data)).data
  } catch {
    return undefined
  }
}

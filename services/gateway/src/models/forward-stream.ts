import { Fault, type TokenCounts } from '@tollgate/contracts'
import type { FinishReason } from '../conversation/events.ts'
import { type ByteSink, eventStreamHead, type Forwarded } from './forward.ts'
import { frameCutter } from './frames.ts'
import type { UpstreamReply } from './upstream.ts'
import { brokenAnswer, type Origin, type UpstreamFault } from './upstream-fault.ts'

/** What passes through the fast lane, looked at on its way. */
export interface Watch {
  /** What of these whole frames goes on to the client, all but the very last of a stream; `fault` ends it. */
  look(frames: Buffer): { through: Buffer[]; fault: UpstreamFault | undefined }
  /** An answer has begun: something a client can show went through. */
  began(): boolean
  /** The upstream said that it was done. */
  done(): boolean
  tokens(): TokenCounts | undefined
  finish(): FinishReason | undefined
  outputCharacters(): number
}

/** How the client's dialect ends a stream, well or badly, and what half a frame of the upstream's may end one. */
export interface LastWords {
  done: Buffer
  failed: Buffer
  lastFrame(rest: Buffer): Buffer | undefined
  /** What a complete answer is still owed whose upstream did not say that it was done. */
  owed: Buffer
}

/** Frames held until the answer begins: a server's own pings, filter results and the like. */
const MOST_PRELUDE_BYTES = 1024 * 1024

/** Passes a stream on, frame by frame, to a client of the same dialect. */
export async function forwardStream(
  reply: UpstreamReply,
  sink: ByteSink,
  origin: Origin,
  watch: Watch,
  words: LastWords,
): Promise<Forwarded> {
  const cutter = frameCutter(origin)
  const chunks = reply.chunks()
  const out = opening(sink, reply.status)
  let fault: Fault | undefined
  try {
    for (;;) {
      const { value: chunk, done } = await chunks.next()
      const frames = done ? words.lastFrame(cutter.rest()) : cutter.push(chunk)
      if (frames) {
        const seen = watch.look(frames)
        for (const frame of out.open(seen.through, watch.began(), origin)) {
          const full = sink.write(frame)
          if (full) await full
        }
        if (seen.fault) throw seen.fault
      }
      if (!watch.done() && !done) continue
      // an end without a beginning as well: nothing of it has gone out
      if (!watch.began()) throw brokenAnswer('empty', origin)
      if (!watch.done()) {
        if (watch.finish() === undefined) throw brokenAnswer('cut', origin)
        if (words.owed.length > 0) await sink.write(words.owed)
      }
      await sink.write(words.done)
      break
    }
  } catch (error) {
    fault = Fault.from(error)
    if (out.firstByteAt() === undefined) throw fault
    if (fault.failure !== 'cancelled') await sink.write(words.failed)
  } finally {
    // the client has its last byte; what is left of the body is nobody's to wait for, and settling never rejects
    if (watch.done() && !fault) void reply.settle()
    else await chunks.return()
  }
  return {
    tokens: watch.tokens(),
    finish: watch.finish(),
    outputCharacters: watch.outputCharacters(),
    status: reply.status,
    firstByteAt: out.firstByteAt() ?? Date.now(),
    fault,
  }
}

/** Holds frames back until the answer has begun, so that until then a failure can have a status of its own (BR-031). */
function opening(sink: ByteSink, status: number) {
  let prelude: Buffer[] = []
  let preludeBytes = 0
  let firstByteAt: number | undefined
  return {
    firstByteAt: () => firstByteAt,
    /** What may go out now. */
    open(frames: Buffer[], began: boolean, origin: Origin): Buffer[] {
      if (firstByteAt !== undefined) return frames
      prelude.push(...frames)
      for (const frame of frames) preludeBytes += frame.length
      if (!began && preludeBytes > MOST_PRELUDE_BYTES) throw brokenAnswer('unreadable', origin)
      if (!began) return []
      firstByteAt = Date.now()
      sink.begin(eventStreamHead(status))
      const all = prelude
      prelude = []
      return all
    },
  }
}

import type { ModelEvent } from '../conversation/events.ts'
import { type Tell, tellAll } from '../conversation/tell.ts'
import { MOST_FRAME_BYTES, type SseFrame, sseParser } from './sse.ts'
import type { UpstreamReply } from './upstream.ts'
import { brokenAnswer, type Origin } from './upstream-fault.ts'

/**
 * Of one streamed answer, its framing included: several times what the longest answers of today's models take. One that
 * does not end before is read no further, since much of what it says is kept until it does.
 */
const MOST_STREAM_BYTES = 128 * 1024 * 1024

/** Servers that stream without saying so exist, as do those that stream, or do not, whatever they were asked. */
export const isStream = ({ mediaType }: UpstreamReply, asked: boolean): boolean =>
  mediaType === 'text/event-stream' || (asked && mediaType !== 'application/json' && mediaType !== 'text/html')

export function parseJson(text: string, origin: Origin): unknown {
  if (text.trim() === '') throw brokenAnswer('empty', origin)
  try {
    return JSON.parse(text)
  } catch {
    throw brokenAnswer('unreadable', origin, new Error('no JSON'))
  }
}

/** How a wire reads its stream. */
export interface FrameReader {
  /** Adds what a frame says to `events`; true when the answer is complete with it. */
  frame(frame: SseFrame, events: ModelEvent[]): boolean
  /** The rest, when the stream is over; `complete` when a frame said so. */
  end(complete: boolean): ModelEvent[]
}

/**
 * Tells what a streamed reply says. What is left of the body of a complete answer is read by itself, so that the connection can
 * serve again; left at any other place, the connection is closed.
 */
export async function readFrames(
  reply: UpstreamReply,
  reader: FrameReader,
  origin: Origin,
  tell: Tell<ModelEvent>,
): Promise<void> {
  const parser = sseParser(MOST_FRAME_BYTES, () => brokenAnswer('unreadable', origin))
  const chunks = reply.chunks()
  let complete = false
  let taken = 0
  try {
    for (let over = false; !over && !complete; ) {
      const { value: bytes, done } = await chunks.next()
      over = done === true
      taken += bytes?.length ?? 0
      if (taken > MOST_STREAM_BYTES) throw brokenAnswer('unreadable', origin)
      for (const frame of bytes ? parser.push(bytes) : parser.end()) {
        const events: ModelEvent[] = []
        complete = reader.frame(frame, events)
        for (const event of events) {
          const full = tell(event)
          if (full) await full
        }
        if (complete) break
      }
    }
  } finally {
    // nobody waits for what is left of a complete answer's body, and settling never rejects
    if (complete) void reply.settle()
    else await chunks.return()
  }
  await tellAll(reader.end(complete), tell)
}

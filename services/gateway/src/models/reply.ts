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

/**
 * The frames of a streamed reply. Left after one that `isLast` knows, the rest of the body is read by itself, so that the
 * connection can serve again; left at any other, the connection is closed.
 */
export async function* framesOf(
  reply: UpstreamReply,
  isLast: (frame: SseFrame) => boolean,
  origin: Origin,
): AsyncGenerator<SseFrame, void> {
  const parser = sseParser(MOST_FRAME_BYTES, () => brokenAnswer('unreadable', origin))
  const chunks = reply.chunks()
  let complete = false
  let taken = 0
  try {
    for (;;) {
      const { value: bytes, done } = await chunks.next()
      taken += bytes?.length ?? 0
      if (taken > MOST_STREAM_BYTES) throw brokenAnswer('unreadable', origin)
      for (const frame of done ? parser.end() : parser.push(bytes)) {
        complete ||= isLast(frame)
        yield frame
      }
      if (done) return
    }
  } finally {
    // nobody waits for what is left of a complete answer's body, and settling never rejects
    if (complete) void reply.settle()
    else await chunks.return()
  }
}

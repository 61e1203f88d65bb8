import { type SseFrame, sseParser } from './sse.ts'
import type { UpstreamFault } from './upstream-fault.ts'

/** What becomes of a frame: it goes on as it came, something else goes in its place, or the stream ends with it. */
export type Verdict = undefined | readonly Buffer[] | { end: readonly Buffer[] } | UpstreamFault

/** The next place at or behind `from` for whose sake a frame is read; infinite when there is none. */
export type Finder = (frames: Buffer, from: number) => number

/**
 * Looks for frames by their bytes, and has only those judged that a finder points at; `readAll` has every frame judged
 * while it holds. What is not changed goes on as it came, in one piece where it was one.
 */
export function scanFrames(
  frames: Buffer,
  finders: readonly Finder[],
  readAll: () => boolean,
  judge: (frame: SseFrame, bytes: number) => Verdict,
): { through: Buffer[]; fault: UpstreamFault | undefined } {
  const through: Buffer[] = []
  const nearest = nearestOf(frames, finders)
  let passed = 0
  let from = 0
  while (from < frames.length) {
    const at = readAll() ? from : nearest(from)
    if (at === Number.POSITIVE_INFINITY) break
    const start = frameStart(frames, at)
    const stop = frameEnd(frames, at)
    const [frame] = sseParser().push(frames.subarray(start, stop))
    const verdict = frame && judge(frame, stop - start)
    from = stop
    if (verdict === undefined) continue
    if (start > passed) through.push(frames.subarray(passed, start))
    passed = stop
    if (verdict instanceof Error) return { through, fault: verdict }
    if ('end' in verdict) return { through: [...through, ...verdict.end], fault: undefined }
    through.push(...verdict)
  }
  if (passed < frames.length) through.push(passed === 0 ? frames : frames.subarray(passed))
  return { through, fault: undefined }
}

/** The places of `word`. */
export function placesOf(word: string): Finder {
  const bytes = Buffer.from(word)
  return (frames, from) => orNever(frames.indexOf(bytes, from))
}

export const orNever = (at: number): number => (at < 0 ? Number.POSITIVE_INFINITY : at)

/** Each finder looks through a stretch once. */
function nearestOf(frames: Buffer, finders: readonly Finder[]): (from: number) => number {
  const next = finders.map(() => -1)
  return (from) => {
    let nearest = Number.POSITIVE_INFINITY
    for (const [i, find] of finders.entries()) {
      if (next[i]! < from) next[i] = find(frames, from)
      nearest = Math.min(nearest, next[i]!)
    }
    return nearest
  }
}

/** Where the frame around `at` begins. */
export function frameStart(frames: Buffer, at: number): number {
  const lf = frames.lastIndexOf('\n\n', at)
  const crlf = frames.lastIndexOf('\n\r\n', at)
  return Math.max(lf < 0 ? 0 : lf + 2, crlf < 0 ? 0 : crlf + 3)
}

/** Where it ends, its blank line included. */
export function frameEnd(frames: Buffer, at: number): number {
  const lf = frames.indexOf('\n\n', at)
  const crlf = frames.indexOf('\n\r\n', at)
  return Math.min(lf < 0 ? frames.length : lf + 2, crlf < 0 ? frames.length : crlf + 3)
}

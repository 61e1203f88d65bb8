import { type SseFrame, sseParser } from './sse.ts'
import type { UpstreamFault } from './upstream-fault.ts'

/** What becomes of a frame: it goes on as it came, something else goes in its place, or the stream ends with it. */
export type Verdict = undefined | readonly Buffer[] | { end: readonly Buffer[] } | UpstreamFault

/** The next place at or behind `from` for whose sake a frame is read; infinite when there is none. */
export type Finder = (text: string, from: number) => number

/**
 * Frames with a character for each byte, so that places in the one are places in the other: what is ASCII can be searched
 * for in it, which costs a fraction of searching the bytes.
 */
export const bytewise = (frames: Buffer): string => frames.toString('latin1')

/**
 * Looks for frames by their bytes, and has only those judged that a finder points at; `readAll` has every frame judged
 * while it holds. What is not changed goes on as it came, in one piece where it was one. `text`: `frames`, bytewise.
 */
export function scanFrames(
  frames: Buffer,
  text: string,
  finders: readonly Finder[],
  readAll: () => boolean,
  judge: (frame: SseFrame, bytes: number) => Verdict,
): { through: Buffer[]; fault: UpstreamFault | undefined } {
  const through: Buffer[] = []
  const nearest = nearestOf(text, finders)
  let passed = 0
  let from = 0
  while (from < frames.length) {
    const at = readAll() ? from : nearest(from)
    if (at === Number.POSITIVE_INFINITY) break
    const start = frameStart(text, at)
    const stop = frameEnd(text, at)
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
export const placesOf =
  (word: string): Finder =>
  (text, from) =>
    orNever(text.indexOf(word, from))

export const orNever = (at: number): number => (at < 0 ? Number.POSITIVE_INFINITY : at)

/** How often `word` stands in `text`. */
export function timesIn(text: string, word: string): number {
  let times = 0
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) times++
  return times
}

/** Each finder looks through a stretch once. */
function nearestOf(text: string, finders: readonly Finder[]): (from: number) => number {
  const next: number[] = []
  return (from) => {
    let nearest = Number.POSITIVE_INFINITY
    for (let i = 0; i < finders.length; i++) {
      const known = next[i] ?? -1
      const place = known < from ? finders[i]!(text, from) : known
      next[i] = place
      if (place < nearest) nearest = place
    }
    return nearest
  }
}

/** Where the frame around `at` begins. */
export function frameStart(text: string, at: number): number {
  const lf = text.lastIndexOf('\n\n', at)
  const crlf = text.lastIndexOf('\n\r\n', at)
  return Math.max(lf < 0 ? 0 : lf + 2, crlf < 0 ? 0 : crlf + 3)
}

/** Where it ends, its blank line included. */
export function frameEnd(text: string, at: number): number {
  const lf = text.indexOf('\n\n', at)
  const crlf = text.indexOf('\n\r\n', at)
  return Math.min(lf < 0 ? text.length : lf + 2, crlf < 0 ? text.length : crlf + 3)
}

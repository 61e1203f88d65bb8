import { Fault } from '@tollgate/contracts'

/** One event of a stream: its `event` field ('' when it has none) and its `data` lines joined by a line feed. */
export interface SseFrame {
  event: string
  data: string
}

export interface SseParser {
  /** The frames that this chunk completes; chunks may be cut anywhere, also inside a character or a line end. */
  push(chunk: Buffer): SseFrame[]
  /** The stream is over. Half a frame is dropped, but for a `[DONE]` whose blank line many servers leave out. */
  end(): SseFrame[]
}

/** The largest frame taken; a longer one is an upstream gone wrong, not an answer. */
export const MOST_FRAME_BYTES = 16 * 1024 * 1024

const unreadable = (): Error => new Fault('upstream', "the model provider's answer could not be read")

const LF = 0x0a
const CR = 0x0d
const COLON = 0x3a

/**
 * Reads server-sent events as the WHATWG specification has them, comments and unknown fields left out. Bytes are looked
 * through by `indexOf` and decoded a line at a time, so that what it costs does not depend on how the network cut them.
 */
export function sseParser(mostBytes = MOST_FRAME_BYTES, tooLarge: () => Error = unreadable): SseParser {
  /** Pieces of a line whose end has not come yet. */
  let pieces: Buffer[] = []
  /** Bytes held for the frame under way, finished lines included. */
  let held = 0
  let event = ''
  let data: string | undefined
  let afterCr = false
  let atStart = true

  function hold(bytes: number): void {
    held += bytes
    if (held > mostBytes) throw tooLarge()
  }

  function readField(line: string): void {
    const colon = line.indexOf(':')
    const name = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(line.charCodeAt(colon + 1) === 0x20 ? colon + 2 : colon + 1)
    if (name === 'data') data = data === undefined ? value : `${data}\n${value}`
    else if (name === 'event') event = value
  }

  function readLine(chunk: Buffer, start: number, end: number, frames: SseFrame[]): void {
    let line = chunk
    if (pieces.length > 0) {
      line = Buffer.concat([...pieces, chunk.subarray(start, end)])
      pieces = []
      start = 0
      end = line.length
    }
    if (atStart) {
      atStart = false
      if (line[start] === 0xef && line[start + 1] === 0xbb && line[start + 2] === 0xbf) start += 3
    }
    if (start === end) {
      if (data !== undefined) frames.push({ event, data })
      event = ''
      data = undefined
      held = 0
    } else if (line[start] !== COLON) {
      readField(line.toString('utf8', start, end))
    }
  }

  return {
    push(chunk) {
      const frames: SseFrame[] = []
      let start = 0
      if (afterCr && chunk.length > 0) {
        afterCr = false
        if (chunk[0] === LF) start = 1
      }
      let cr = chunk.indexOf(CR, start)
      for (;;) {
        const lf = chunk.indexOf(LF, start)
        const end = cr >= 0 && (lf < 0 || cr < lf) ? cr : lf
        if (end < 0) break
        hold(end - start)
        readLine(chunk, start, end, frames)
        start = end + 1
        if (end !== cr) continue
        if (start === chunk.length) afterCr = true
        else if (chunk[start] === LF) start++
        cr = chunk.indexOf(CR, start)
      }
      if (start < chunk.length) {
        hold(chunk.length - start)
        pieces.push(chunk.subarray(start))
      }
      return frames
    },

    end() {
      if (pieces.length > 0) readField(Buffer.concat(pieces).toString('utf8'))
      pieces = []
      return data === '[DONE]' ? [{ event, data }] : []
    },
  }
}

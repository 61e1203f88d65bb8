import { MOST_FRAME_BYTES } from './sse.ts'
import { brokenAnswer, type Origin } from './upstream-fault.ts'

/** Cuts a stream of bytes behind its last whole frame; a client can do nothing with half of one. */
export interface FrameCutter {
  /** The whole frames that `chunk` completes, as they came; undefined while there is none. */
  push(chunk: Buffer): Buffer | undefined
  /** What is held back. */
  rest(): Buffer
}

const LF = 0x0a
/** As many bytes as a blank line may have on either side of a cut. */
const SEAM = 3

export function frameCutter(origin: Origin): FrameCutter {
  let held: Buffer[] = []
  let heldBytes = 0
  /** The last bytes held, where a blank line may have begun. */
  let tail: Buffer = Buffer.alloc(0)

  function endOfLastFrame(chunk: Buffer): number {
    const last = chunk.length - 1
    if (last > 0 && chunk[last] === LF && chunk[last - 1] === LF) return chunk.length
    const end = blankLineEnd(chunk)
    if (end > 0 || heldBytes === 0) return end
    const seam = blankLineEnd(Buffer.concat([tail, chunk.subarray(0, SEAM)]))
    return Math.max(0, seam - tail.length)
  }

  return {
    push(chunk) {
      const end = endOfLastFrame(chunk)
      if (end === 0) {
        held.push(chunk)
        heldBytes += chunk.length
        tail = Buffer.concat([tail, chunk.subarray(-SEAM)]).subarray(-SEAM)
        if (heldBytes > MOST_FRAME_BYTES) throw brokenAnswer('unreadable', origin)
        return undefined
      }
      const frames = end === chunk.length ? chunk : chunk.subarray(0, end)
      const whole = heldBytes === 0 ? frames : Buffer.concat([...held, frames])
      held = end === chunk.length ? [] : [chunk.subarray(end)]
      heldBytes = chunk.length - end
      tail = chunk.subarray(end).subarray(-SEAM)
      return whole
    },
    rest: () => Buffer.concat(held),
  }
}

/** The position behind the last blank line; 0 when there is none. */
function blankLineEnd(bytes: Buffer): number {
  const lf = bytes.lastIndexOf('\n\n')
  const crlf = bytes.lastIndexOf('\n\r\n')
  return Math.max(lf < 0 ? 0 : lf + 2, crlf < 0 ? 0 : crlf + 3)
}

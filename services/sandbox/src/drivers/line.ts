import type { Socket } from 'node:net'

/** How a call ended that nobody had to look at while it ran. */
export interface LineAnswer {
  code: number
  stdout: { bytes: Buffer; dropped: number }
  stderr: { bytes: Buffer; dropped: number }
  /** When the session's folder was last changed, in nanoseconds. */
  changed: bigint
}

/** The interpreter's own connection, as far as it can be relied on: its program may write anything on it. */
export interface Line {
  /** When the folder was last changed before any program ran. */
  readonly emptySince: bigint
  readonly isOpen: boolean
  /**
   * One at a time. `answered` hears of its end, unless the supervisor took it over; `broken` when the line cannot be used
   * any more, which says nothing of the call.
   */
  call(number: number, code: Buffer, answered: (answer: LineAnswer) => void, broken: () => void): void
  /** Hears nothing more of the call that is under way. */
  forget(): void
  close(): void
}

const READY_BYTES = 8
const CALL_BYTES = 8
const ANSWER_BYTES = 32

/** The first word on a line; undefined for as long as it has not come. Throws on anything that is longer. */
export function readReady(from: Buffer): bigint | undefined {
  if (from.length > READY_BYTES) throw new Error('more than the first word')
  return from.length === READY_BYTES ? from.readBigUInt64BE(0) : undefined
}

/** Counterpart of `wires.py`. `mostBytes`: of each output, as the interpreter was told; more is nothing it would send. */
export function openLine(socket: Socket, emptySince: bigint, mostBytes: number): Line {
  let call: { number: number; answered(answer: LineAnswer): void; broken(): void } | undefined
  let pieces: Buffer[] = []
  let bytes = 0
  /** Of the answer that is coming, once its head is there. */
  let wanted = ANSWER_BYTES

  const take = (piece: Buffer) => {
    pieces.push(Buffer.from(piece))
    bytes += piece.length
    if (bytes < wanted) return
    const all = pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)
    pieces = [all]
    if (!call || all.readUInt32BE(0) !== call.number) return socket.destroy()
    const [stdout, stderr] = [all.readUInt32BE(8), all.readUInt32BE(12)]
    if (stdout > mostBytes || stderr > mostBytes) return socket.destroy()
    wanted = ANSWER_BYTES + stdout + stderr
    if (bytes < wanted) return
    if (bytes > wanted) return socket.destroy()
    const { answered } = call
    reset()
    answered({
      code: all.readInt32BE(4),
      stdout: { bytes: all.subarray(ANSWER_BYTES, ANSWER_BYTES + stdout), dropped: all.readUInt32BE(16) },
      stderr: { bytes: all.subarray(ANSWER_BYTES + stdout), dropped: all.readUInt32BE(20) },
      changed: all.readBigUInt64BE(24),
    })
  }
  const reset = () => {
    call = undefined
    pieces = []
    bytes = 0
    wanted = ANSWER_BYTES
  }
  socket.on('data', take)
  socket.on('error', () => {}) // `close` follows
  socket.once('close', () => {
    const broken = call?.broken
    reset()
    broken?.()
  })

  return {
    emptySince,
    get isOpen() {
      return !socket.destroyed
    },
    call(number, code, answered, broken) {
      call = { number, answered, broken }
      const data = Buffer.allocUnsafe(CALL_BYTES + code.length)
      data.writeUInt32BE(number, 0)
      data.writeUInt32BE(code.length, 4)
      code.copy(data, CALL_BYTES)
      socket.write(data)
    },
    forget: reset,
    close: () => socket.destroy(),
  }
}

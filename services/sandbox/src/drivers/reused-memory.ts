import { Socket } from 'node:net'

/** Bytes that stay what they are until whoever keeps them says that it is over. */
export interface Kept {
  bytes: Buffer
  release(): void
}

interface Large {
  memory: Buffer
  /** Who needs what is in it: each that keeps some of it, and the connection that reads into it. */
  users: number
}

/** For what comes in bits: of all connections together, as none of it is needed when the next read begins. */
const SMALL_BYTES = 64 * 1024
/** For what comes in bulk, of one connection at a time. */
const LARGE_BYTES = 512 * 1024
/** What two downloads at once use. More are made for as long as they are needed. */
const MOST_SPARE = 8

const small = Buffer.allocUnsafeSlow(SMALL_BYTES)
const spare: Large[] = []
const larges = new WeakMap<ArrayBufferLike, Large>()

/**
 * The same connection, of which nothing has been read yet; its bytes are gone when their listener returns, unless it keeps
 * them. Reads are larger so, and none costs new memory: the first touch of that takes longer than all that is done with what
 * comes into it. Node offers it (`onread`) for connections that it opens; those that it accepts are passed on here as it does
 * so inside. Where it has nothing by this name to pass on, the connection stays as it is.
 */
export function intoReusedMemory(accepted: Socket): Socket {
  const inner = accepted as unknown as { _handle: unknown }
  const handle = inner._handle
  if (!handle) return accepted.resume()
  inner._handle = null
  accepted.destroy()

  let large: Large | undefined
  /** Of it, by reads of which something is kept. */
  let filled = 0
  let comesInBulk = false
  const leaveLarge = () => {
    if (large) leave(large)
    large = undefined
    filled = 0
  }
  const buffer = () => {
    if (!comesInBulk || filled > LARGE_BYTES / 2) leaveLarge()
    if (!comesInBulk) return small
    large ??= take()
    return large.memory.subarray(filled)
  }
  const callback = (count: number, memory: Buffer) => {
    socket.emit('data', memory.subarray(0, count))
    comesInBulk = count >= SMALL_BYTES
    if (large) filled = large.users > 1 ? filled + count : 0
    return true
  }
  const passedOn: object = { handle, onread: { buffer, callback } }
  const socket: Socket = new Socket(passedOn)
  return socket.once('close', leaveLarge)
}

/** Of bytes that came by such a connection, while their listener hears of them; others are kept by whoever has them. */
export function keep(bytes: Buffer): Kept {
  const large = larges.get(bytes.buffer)
  if (!large && bytes.buffer !== small.buffer) return { bytes, release: () => {} }
  // a bit is not worth that all around it stays
  if (!large || bytes.length < SMALL_BYTES) return { bytes: Buffer.from(bytes), release: () => {} }
  large.users += 1
  let isKept = true
  const release = () => {
    if (isKept) leave(large)
    isKept = false
  }
  return { bytes, release }
}

function take(): Large {
  const large = spare.pop() ?? { memory: Buffer.allocUnsafeSlow(LARGE_BYTES), users: 0 }
  large.users = 1
  larges.set(large.memory.buffer, large)
  return large
}

function leave(large: Large): void {
  large.users -= 1
  if (large.users === 0 && spare.length < MOST_SPARE) spare.push(large)
}

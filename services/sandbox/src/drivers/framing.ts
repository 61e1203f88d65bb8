/** Messages between the server and its sandboxes: two lengths, a JSON header, a body. Counterpart of `framing.py`. */
export interface Message {
  header: unknown
  /** The body as it came, piece by piece. */
  pieces: Buffer[]
  /** The body as one. */
  readonly body: Buffer
}

const NOTHING = Buffer.alloc(0)
const LENGTHS = 8
const MAX_HEADER_BYTES = 64 * 1024
const MAX_BODY_BYTES = 8 * 1024 * 1024

export function packMessage(header: object, body: Buffer = Buffer.alloc(0)): Buffer {
  return Buffer.concat([packHead(header, body.length), body])
}

/** What goes before a body of `bytes` bytes. */
export function packHead(header: object, bytes: number): Buffer {
  const text = JSON.stringify(header)
  const length = Buffer.byteLength(text)
  const head = Buffer.allocUnsafe(LENGTHS + length)
  head.writeUInt32BE(length, 0)
  head.writeUInt32BE(bytes, 4)
  head.write(text, LENGTHS)
  return head
}

/** Hears a body while it comes. */
export type Listener = (piece: Buffer) => void

/**
 * Puts messages together from what comes, which may be gone when `add` returns. It holds at most one message; `add` throws
 * on a length that no message has, before anything of that length is kept. Where `listens` gives a listener for a header and
 * the length of its body, that body is neither held nor copied, and no message comes of it.
 */
export function messageReader(listens?: (header: unknown, bytes: number) => Listener | undefined): {
  add(piece: Buffer): Message[]
} {
  let head: Buffer = NOTHING
  let header: unknown
  let pieces: Buffer[] = []
  const hold: Listener = (piece) => void pieces.push(Buffer.from(piece))
  let hear = hold
  /** Of the body that is under way; undefined while its header is. */
  let missing: number | undefined

  /** Takes the next header off `rest`, as far as it is there. */
  const takeHead = (rest: Buffer): Buffer => {
    const begun = head.length === 0 ? rest : Buffer.concat([head, rest])
    head = NOTHING
    const length = begun.length < LENGTHS ? 0 : begun.readUInt32BE(0)
    const body = begun.length < LENGTHS ? 0 : begun.readUInt32BE(4)
    if (length > MAX_HEADER_BYTES || body > MAX_BODY_BYTES) throw new Error('a message of impossible length')
    if (begun.length < LENGTHS + length) {
      head = Buffer.from(begun)
      return begun.subarray(begun.length)
    }
    header = JSON.parse(begun.toString('utf8', LENGTHS, LENGTHS + length))
    const after = begun.subarray(LENGTHS + length)
    missing = body
    pieces = []
    hear = listens?.(header, body) ?? hold
    return after
  }

  return {
    add(piece) {
      const messages: Message[] = []
      let rest = piece
      while (rest.length > 0) {
        if (missing === undefined) rest = takeHead(rest)
        if (missing === undefined) break
        const taken = rest.subarray(0, missing)
        rest = rest.subarray(taken.length)
        missing -= taken.length
        if (taken.length > 0) hear(taken)
        if (missing > 0) break
        if (hear === hold) messages.push(messageOf(header, pieces))
        missing = undefined
      }
      return messages
    },
  }
}

const messageOf = (header: unknown, pieces: Buffer[]): Message => ({
  header,
  pieces,
  get body() {
    return pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)
  },
})

/** Messages between the server and its sandboxes: two lengths, a JSON header, a body. Counterpart of `framing.py`. */
export interface Message {
  header: unknown
  /** The body as it came, piece by piece. */
  pieces: Buffer[]
  /** The body as one. */
  readonly body: Buffer
}

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
 * Puts messages together from what comes. It holds at most one message and one piece, and copies no body; `add` throws on
 * a length that no message has, before anything of that length is kept. Where `listens` gives a listener for a header and
 * the length of its body, that body is held by nobody, and no message comes of it.
 */
export function messageReader(listens?: (header: unknown, bytes: number) => Listener | undefined): {
  add(piece: Buffer): Message[]
} {
  let head: Buffer = Buffer.alloc(0)
  let header: unknown
  let pieces: Buffer[] = []
  const hold: Listener = (piece) => void pieces.push(piece)
  let hear = hold
  /** Of the body that is under way; undefined while its header is. */
  let missing: number | undefined

  /** Takes the next header off `rest`, as far as it is there. */
  const takeHead = (rest: Buffer): Buffer => {
    head = head.length === 0 ? rest : Buffer.concat([head, rest])
    if (head.length < LENGTHS) return head.subarray(head.length)
    const length = head.readUInt32BE(0)
    const body = head.readUInt32BE(4)
    if (length > MAX_HEADER_BYTES || body > MAX_BODY_BYTES) throw new Error('a message of impossible length')
    if (head.length < LENGTHS + length) return head.subarray(head.length)
    header = JSON.parse(head.toString('utf8', LENGTHS, LENGTHS + length))
    const after = head.subarray(LENGTHS + length)
    head = Buffer.alloc(0)
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

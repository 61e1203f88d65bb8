/** Messages between the server and its sandboxes: two lengths, a JSON header, a body. Counterpart of `framing.py`. */
export interface Message {
  header: unknown
  body: Buffer
}

const LENGTHS = 8
const MAX_HEADER_BYTES = 64 * 1024
const MAX_BODY_BYTES = 8 * 1024 * 1024

export function packMessage(header: object, body: Buffer = Buffer.alloc(0)): Buffer {
  const text = Buffer.from(JSON.stringify(header))
  const lengths = Buffer.alloc(LENGTHS)
  lengths.writeUInt32BE(text.length, 0)
  lengths.writeUInt32BE(body.length, 4)
  return Buffer.concat([lengths, text, body])
}

/**
 * Puts messages together from pieces. It holds at most one message and one piece; `add` throws on a length that no
 * message has, before anything of that length is kept.
 */
export function messageReader(): { add(piece: Buffer): Message[] } {
  let pieces: Buffer[] = []
  let held = 0
  let needed = LENGTHS

  return {
    add(piece) {
      pieces.push(piece)
      held += piece.length
      if (held < needed) return []
      let rest = pieces.length === 1 ? piece : Buffer.concat(pieces, held)
      const messages: Message[] = []
      for (;;) {
        needed = LENGTHS
        if (rest.length < LENGTHS) break
        const header = rest.readUInt32BE(0)
        const body = rest.readUInt32BE(4)
        if (header > MAX_HEADER_BYTES || body > MAX_BODY_BYTES) throw new Error('a message of impossible length')
        needed = LENGTHS + header + body
        if (rest.length < needed) break
        messages.push({
          header: JSON.parse(rest.toString('utf8', LENGTHS, LENGTHS + header)),
          body: rest.subarray(LENGTHS + header, needed),
        })
        rest = rest.subarray(needed)
      }
      pieces = [rest]
      held = rest.length
      return messages
    },
  }
}

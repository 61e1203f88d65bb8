/** Words of one length between the server, its zygote and its sessions. Counterpart of `ORDER` in `zygote.py`. */
export const kinds = { open: 1, end: 2, look: 3, channel: 1, line: 2 } as const

const BYTES = 21
const TICKET_BYTES = 16

export interface Order {
  kind: number
  number: number
  ticket: Buffer
}

export function packOrder(kind: number, number: number, ticket: Buffer = Buffer.alloc(TICKET_BYTES)): Buffer {
  const order = Buffer.allocUnsafe(BYTES)
  order.writeUInt8(kind, 0)
  order.writeUInt32BE(number, 1)
  ticket.copy(order, 5)
  return order
}

/** Undefined for as long as it has not come whole. */
export function readOrder(from: Buffer): { order: Order; rest: Buffer } | undefined {
  if (from.length < BYTES) return undefined
  const order = { kind: from.readUInt8(0), number: from.readUInt32BE(1), ticket: from.subarray(5, BYTES) }
  return { order, rest: from.subarray(BYTES) }
}

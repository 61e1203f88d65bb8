import { randomFillSync } from 'node:crypto'

const bytes = Buffer.alloc(16)

/** A UUID version 7 (RFC 9562): ids made later sort later. */
export function newId(): string {
  randomFillSync(bytes)
  bytes.writeUIntBE(Date.now(), 0, 6)
  bytes.writeUInt8(0x70 | (bytes.readUInt8(6) & 0x0f), 6)
  bytes.writeUInt8(0x80 | (bytes.readUInt8(8) & 0x3f), 8)
  const hex = bytes.toString('hex')
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

import { createCipheriv, createDecipheriv, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/** A Fernet key in its two halves (github.com/fernet/spec, version 0x80). */
export interface FernetKey {
  signing: Buffer
  encryption: Buffer
}

const VERSION = 0x80
const HEADER_BYTES = 1 + 8 + 16
const HMAC_BYTES = 32
const BLOCK_BYTES = 16

/** 32 bytes in URL-safe base64, padded or not; undefined for anything else. */
export function parseFernetKey(text: string): FernetKey | undefined {
  const bytes = decodeBase64Url(text)
  if (bytes?.length !== 32) return undefined
  return { signing: bytes.subarray(0, 16), encryption: bytes.subarray(16) }
}

/** `at` and `iv` are for tests with known answers; an IV must never be used twice. */
export function seal(key: FernetKey, text: string, at: Date = new Date(), iv: Buffer = randomBytes(16)): string {
  const header = Buffer.alloc(9)
  header.writeUInt8(VERSION)
  header.writeBigUInt64BE(BigInt(Math.floor(at.getTime() / 1000)), 1)
  const cipher = createCipheriv('aes-128-cbc', key.encryption, iv)
  const signed = Buffer.concat([header, iv, cipher.update(text, 'utf8'), cipher.final()])
  return pad(Buffer.concat([signed, sign(key, signed)]).toString('base64url'))
}

/** The text of a token made with this key; undefined for a token of another key or one that was altered. No age is asked. */
export function unseal(key: FernetKey, token: string): string | undefined {
  const bytes = decodeBase64Url(token)
  if (!bytes || bytes[0] !== VERSION) return undefined
  const cipherBytes = bytes.length - HEADER_BYTES - HMAC_BYTES
  if (cipherBytes < BLOCK_BYTES || cipherBytes % BLOCK_BYTES !== 0) return undefined
  const signed = bytes.subarray(0, -HMAC_BYTES)
  if (!timingSafeEqual(sign(key, signed), bytes.subarray(-HMAC_BYTES))) return undefined
  const decipher = createDecipheriv('aes-128-cbc', key.encryption, signed.subarray(9, HEADER_BYTES))
  try {
    return decipher.update(signed.subarray(HEADER_BYTES), undefined, 'utf8') + decipher.final('utf8')
  } catch {
    return undefined // rightly signed and wrongly padded: whoever made it does not follow the format
  }
}

const sign = ({ signing }: FernetKey, bytes: Buffer): Buffer => createHmac('sha256', signing).update(bytes).digest()

const pad = (base64: string): string => base64.padEnd(Math.ceil(base64.length / 4) * 4, '=')

/** Buffer skips what is not base64; a key or token with such characters in it is not one. */
function decodeBase64Url(text: string): Buffer | undefined {
  return /^[\w-]+={0,2}$/.test(text) && pad(text.replace(/=+$/, '')).length === pad(text).length
    ? Buffer.from(text, 'base64url')
    : undefined
}

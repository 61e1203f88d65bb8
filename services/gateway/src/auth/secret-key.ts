import { hash, randomBytes, timingSafeEqual } from 'node:crypto'

export interface MintedKey {
  /** Shown once and kept nowhere. */
  plaintext: string
  hash: string
  /** Enough to tell one key from another, too little to guess the rest. */
  prefix: string
}

const PREFIX_CHARACTERS = 11

/** A key of 256 random bits. No salt: nothing is guessed about what was never chosen by a person. */
export function mintKey(kind: 'gw' | 'gw-master' = 'gw'): MintedKey {
  const plaintext = `${kind}-${randomBytes(32).toString('base64url')}`
  return { plaintext, hash: hashKey(plaintext), prefix: plaintext.slice(0, PREFIX_CHARACTERS) }
}

export const hashKey = (key: string): string => hash('sha256', key, 'base64')

/** In the same time whatever they have in common. */
export const sameHash = (one: string, other: string): boolean =>
  one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other))

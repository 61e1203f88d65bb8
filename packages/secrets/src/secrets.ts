import { Fault } from '@tollgate/contracts'
import { type FernetKey, parseFernetKey, seal, unseal } from './fernet.ts'

export type Reencrypted = { state: 'reencrypted'; token: string } | { state: 'skipped' } | { state: 'unreadable' }

/** Secrets at rest: provider keys, tokens, credentials. */
export interface Secrets {
  /** False when no key is set: nothing can be stored, and what was stored cannot be read. */
  readonly available: boolean
  /** Throws `invalid_request` when no key is set. */
  encrypt(text: string): string
  /** Undefined when no key reads it: the entry is flagged and passed over, never a crash. */
  decrypt(token: string): string | undefined
  /** Brings a token under the first key; one that is under it already is skipped. */
  reencrypt(token: string): Reencrypted
}

/**
 * Opens with `OTARI_SECRET_KEY`: Fernet keys divided by commas or blanks. The first encrypts, all decrypt. A malformed
 * key throws, without quoting it.
 */
export function openSecrets(keys: string | undefined): Secrets {
  const [first, ...older] = (keys ?? '')
    .split(/[\s,]+/)
    .filter(Boolean)
    .map(parseKey)
  const all = first ? [first, ...older] : []
  return {
    available: first !== undefined,
    encrypt(text) {
      if (!first) {
        throw new Fault(
          'invalid_request',
          'secrets cannot be stored: set OTARI_SECRET_KEY to a Fernet key on the gateway, and on every service that stores them',
        )
      }
      return seal(first, text)
    },
    decrypt: (token) => firstText(all, token),
    reencrypt(token) {
      if (!first) return { state: 'unreadable' }
      if (unseal(first, token) !== undefined) return { state: 'skipped' }
      const text = firstText(older, token)
      return text === undefined ? { state: 'unreadable' } : { state: 'reencrypted', token: seal(first, text) }
    },
  }
}

function parseKey(text: string, index: number): FernetKey {
  const key = parseFernetKey(text)
  if (!key) throw new Error(`OTARI_SECRET_KEY: key ${index + 1} is not a Fernet key (32 bytes in URL-safe base64)`)
  return key
}

function firstText(keys: readonly FernetKey[], token: string): string | undefined {
  for (const key of keys) {
    const text = unseal(key, token)
    if (text !== undefined) return text
  }
  return undefined
}

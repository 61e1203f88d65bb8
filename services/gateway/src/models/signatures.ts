import { issuerOf } from './issuer.ts'

/** What a provider wants to see again that has no signature of its own: a reasoning item, a signed part of Gemini's. */
type Kind = 'rs' | 'gm'

const prefix = (kind: Kind, provider: string): string => `otari_${kind}_${issuerOf(provider)}:`

/**
 * A record of a provider's as a thought's signature: so it survives with clients of every dialect that has signatures, and
 * comes back. It names its provider, since nobody else can read it (BR-017).
 */
export const signatureOf = (kind: Kind, provider: string, record: string): string => prefix(kind, provider) + record

/** The record; undefined for a signature that this provider did not get here. */
export function recordIn(kind: Kind, provider: string, signature: string | undefined): string | undefined {
  const own = prefix(kind, provider)
  return signature?.startsWith(own) ? signature.slice(own.length) : undefined
}

/** True for what `signatureOf` made, which is a forgery to a vendor that signs by itself. */
export const isRecord = (signature: unknown): boolean =>
  typeof signature === 'string' && /^otari_(rs|gm)_/.test(signature)

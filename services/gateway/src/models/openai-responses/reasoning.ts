import type { JsonObject, Part } from '../../conversation/turn.ts'
import { issuerOf } from '../issuer.ts'

const PREFIX = 'otari_rs_'

/**
 * What a reasoning item holds beside its words, as a signature: so it survives with clients of dialects that have no such
 * item, and comes back. It names its provider, since nobody else can read it (BR-017).
 */
export const signatureOf = (provider: string, id: string, encrypted: string): string =>
  `${PREFIX}${issuerOf(provider)}:${id}:${encrypted}`

/** True for what `signatureOf` made, which is a forgery to any other vendor. */
export const isReasoningSignature = (signature: unknown): boolean =>
  typeof signature === 'string' && signature.startsWith(PREFIX)

/** The item again; undefined for thoughts that are not this provider's, or that nobody can show it again. */
export function reasoningItem(
  { text, signature }: Part & { type: 'thinking' },
  provider: string,
): JsonObject | undefined {
  const own = `${PREFIX}${issuerOf(provider)}:`
  if (!signature?.startsWith(own)) return undefined
  const colon = signature.indexOf(':', own.length)
  if (colon < 0) return undefined
  const id = signature.slice(own.length, colon)
  return {
    type: 'reasoning',
    ...(id !== '' && { id }),
    summary: text === '' ? [] : [{ type: 'summary_text', text }],
    encrypted_content: signature.slice(colon + 1),
  }
}

import type { JsonObject, Part } from '../../conversation/turn.ts'
import { recordIn, signatureOf } from '../signatures.ts'

/** What a reasoning item holds beside its words, as the signature of a thought. */
export const reasoningSignature = (provider: string, id: string, encrypted: string): string =>
  signatureOf('rs', provider, `${id}:${encrypted}`)

/** The item again; undefined for thoughts that are not this provider's, or that nobody can show it again. */
export function reasoningItem(
  { text, signature }: Part & { type: 'thinking' },
  provider: string,
): JsonObject | undefined {
  const record = recordIn('rs', provider, signature)
  const colon = record?.indexOf(':') ?? -1
  if (record === undefined || colon < 0) return undefined
  const id = record.slice(0, colon)
  return {
    type: 'reasoning',
    ...(id !== '' && { id }),
    summary: text === '' ? [] : [{ type: 'summary_text', text }],
    encrypted_content: record.slice(colon + 1),
  }
}

import { z } from 'zod'
import type { Part } from '../../conversation/turn.ts'
import type { ItemOf } from './input-item.ts'

/**
 * `encrypted_content` of reasoning that came from another wire: what its provider wants to see again beside the words,
 * and a mark of that provider, since nobody else may be sent it (BR-003, BR-017).
 */
export interface Seal {
  /** Whose it is, as `issuerOf` names it. */
  issuer: string
  signature?: string
  /** Thinking without words that can be shown. */
  redacted?: string
}

const PREFIX = 'otari_seal_'
const seal = z.object({ issuer: z.string(), signature: z.string().optional(), redacted: z.string().optional() })

export const sealed = (what: Seal): string => PREFIX + Buffer.from(JSON.stringify(what)).toString('base64url')

/** Undefined for what this gateway did not make, or what a client changed. */
function unsealed(encrypted: string | null | undefined): Seal | undefined {
  if (!encrypted?.startsWith(PREFIX)) return undefined
  try {
    const text = Buffer.from(encrypted.slice(PREFIX.length), 'base64url').toString('utf8')
    const { issuer, signature, redacted } = seal.parse(JSON.parse(text))
    return { issuer, ...(signature !== undefined && { signature }), ...(redacted !== undefined && { redacted }) }
  } catch {
    return undefined
  }
}

/** A reasoning item of a history; what only another vendor can read is no part of it. */
export function reasoningParts({ summary, encrypted_content }: ItemOf<'reasoning'>): Part[] {
  const { issuer, signature, redacted } = unsealed(encrypted_content) ?? {}
  if (redacted !== undefined) return [{ type: 'redacted_thinking', data: redacted, ...(issuer && { issuer }) }]
  const text = summary.map((part) => part.text ?? '').join('\n\n')
  if (text === '' && signature === undefined) return []
  return [{ type: 'thinking', text, ...(signature !== undefined && { signature }), ...(issuer && { issuer }) }]
}

/** Nothing of ours in it, so that a provider of this dialect can read it: undefined for what would be empty there. */
export const isSealed = (encrypted: unknown): boolean => typeof encrypted === 'string' && encrypted.startsWith(PREFIX)

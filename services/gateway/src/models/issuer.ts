import { createHash } from 'node:crypto'
import { isObject } from '../conversation/json.ts'
import type { Message, Part } from '../conversation/turn.ts'

/** Tells providers apart without naming them. */
export const issuerOf = (provider: string): string => createHash('sha256').update(provider).digest('hex').slice(0, 16)

/** A history without what another provider thought: a signature means something to whoever signed alone (BR-017). */
export function withoutForeignThinking(messages: Message[], provider: string): Message[] {
  if (!messages.some(({ parts }) => parts.some(issued))) return messages
  const own = issuerOf(provider)
  return messages.flatMap((message) => {
    const parts = message.parts.filter((part) => !issued(part) || part.issuer === own)
    if (parts.length === message.parts.length) return [message]
    return parts.length > 0 || message.raw !== undefined ? [withoutReasoning({ ...message, parts })] : []
  })
}

/** The items of a message keep as little of it as its parts. */
function withoutReasoning(message: Message): Message {
  const { raw } = message
  if (raw?.dialect !== 'responses' || !Array.isArray(raw.value.items)) return message
  const items = raw.value.items.filter((item) => !isObject(item) || item.type !== 'reasoning')
  return { ...message, raw: { ...raw, value: { items } } }
}

/** Thoughts as they are kept, for the one provider that had them. */
export function issuedBy(messages: readonly Message[], provider: string | undefined): Message[] {
  if (provider === undefined) return [...messages]
  const issuer = issuerOf(provider)
  return messages.map((message) => ({
    ...message,
    parts: message.parts.map((part) => (isThinking(part) ? { ...part, issuer } : part)),
  }))
}

type Thinking = Part & { type: 'thinking' | 'redacted_thinking' }
const isThinking = (part: Part): part is Thinking => part.type === 'thinking' || part.type === 'redacted_thinking'
const issued = (part: Part): part is Thinking & { issuer: string } => isThinking(part) && part.issuer !== undefined

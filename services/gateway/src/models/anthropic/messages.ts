import { Fault } from '@tollgate/contracts'
import type { JsonObject, Message, Part } from '../../conversation/turn.ts'
import { pairResults } from '../history.ts'
import { assistantBlocks, uniqueIds } from './assistant.ts'
import { userBlocks } from './user.ts'

export interface Transcript {
  /** Text blocks for `system`. */
  system: JsonObject[]
  messages: { role: 'user' | 'assistant'; content: JsonObject[] }[]
}

/** Stands first where a history begins with the model's own words, which the vendor does not take. */
const CONTINUED = '[the conversation continues]'

/**
 * A conversation as the Messages API takes it. System messages all go into `system`, in order, wherever they stood;
 * neighbours of one role become one message, a user's with its tool results first (BR-010). Each message depends only on
 * those before it, so that a longer conversation begins with the same bytes.
 */
export function transcriptOf(all: readonly Message[], replayUnsigned: boolean): Transcript {
  const system = all.filter(({ role }) => role === 'system').flatMap(({ parts }) => parts.flatMap(systemBlock))
  const messages: Transcript['messages'] = []
  const idsOf = uniqueIds()
  let ids: string[] = []

  for (const message of pairResults(all.filter(({ role }) => role !== 'system'))) {
    const mine = message.role === 'assistant'
    if (mine) ids = idsOf(message.parts)
    const content = mine ? assistantBlocks(message, ids, replayUnsigned) : userBlocks(message.parts, ids)
    if (content.length === 0) continue
    const role = mine ? 'assistant' : 'user'
    const last = messages.at(-1)
    if (last?.role === role) for (const block of content) last.content.push(block)
    else messages.push({ role, content })
  }
  if (messages.length === 0) throw new Fault('invalid_request', "'messages' holds nothing but system messages")
  if (messages[0]?.role === 'assistant')
    messages.unshift({ role: 'user', content: [{ type: 'text', text: CONTINUED }] })
  trimPrefill(messages.at(-1))
  return { system, messages }
}

function systemBlock(part: Part): JsonObject[] {
  if (part.type === 'text') return part.text.trim() === '' ? [] : [{ type: 'text', text: part.text }]
  throw new Fault('invalid_request', `a system message cannot hold '${part.type}' for this model's provider`)
}

/** The vendor refuses to go on from an answer that ends in white space. */
function trimPrefill(last: Transcript['messages'][number] | undefined): void {
  const block = last?.role === 'assistant' ? last.content.at(-1) : undefined
  if (block?.type === 'text' && typeof block.text === 'string') block.text = block.text.trimEnd()
}

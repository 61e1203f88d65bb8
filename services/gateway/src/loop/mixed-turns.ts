import { createHash } from 'node:crypto'
import type { Tenancy } from '@tollgate/contracts'
import type { Message, Part } from '../conversation/turn.ts'

const MOST_TURNS = 1_000
const MOST_BYTES = 16 * 1024 * 1024
const KEPT_MS = 30 * 60_000

/**
 * What our tools found in turns that also called the client's. The client answers its own calls alone; when it does, the
 * model is shown the whole turn again, so that nothing is lost or run twice (BR-055). Kept in this process: a request
 * that reaches another replica goes on without our half, as it would with a client that edits its history.
 */
export interface MixedTurns {
  keep(whose: Tenancy, before: Message[], said: Message, results: Message[]): void
  /** The history with our calls and their results put back where they were. */
  restore(whose: Tenancy, messages: Message[]): Message[]
}

interface Kept {
  said: Message
  results: Message[]
  bytes: number
  until: number
}

export function rememberMixedTurns(): MixedTurns {
  const turns = new Map<string, Kept>()
  let bytes = 0

  const drop = (key: string, { bytes: freed }: Kept) => {
    turns.delete(key)
    bytes -= freed
  }

  return {
    keep(whose, before, said, results) {
      const kept = { said, results, bytes: JSON.stringify([said, results]).length, until: Date.now() + KEPT_MS }
      const ours = new Set(
        results.flatMap(({ parts }) => parts.map((part) => (part.type === 'result' ? part.callId : ''))),
      )
      const asked = before.findLast(({ role }) => role === 'user')
      const key = keyOf(whose, asked, said, (id) => !ours.has(id))
      const former = turns.get(key)
      if (former) drop(key, former)
      turns.set(key, kept)
      bytes += kept.bytes
      for (const [oldest, turn] of turns) {
        if (turns.size <= MOST_TURNS && bytes <= MOST_BYTES && turn.until > Date.now()) break
        drop(oldest, turn)
      }
    },
    restore(whose, messages) {
      if (turns.size === 0) return messages
      let asked: Message | undefined
      return messages.flatMap((message) => {
        if (message.role === 'user') asked = message
        if (message.role !== 'assistant' || !message.parts.some(isCall)) return [message]
        const kept = turns.get(keyOf(whose, asked, message, () => true))
        return kept === undefined || kept.until <= Date.now() ? [message] : [kept.said, ...kept.results]
      })
    },
  }
}

type Call = Part & { type: 'call' }
const isCall = (part: Part): part is Call => part.type === 'call'

/** Known again only by the same user of the same workspace, after the same words, with the same calls unchanged. */
function keyOf(
  whose: Tenancy,
  asked: Message | undefined,
  said: Message,
  isClients: (callId: string) => boolean,
): string {
  const calls = said.parts.filter(isCall).filter(({ id }) => isClients(id))
  const parts = [
    [whose.organization, whose.workspace, whose.user],
    asked === undefined ? '' : textOf(asked),
    textOf(said),
    calls.map(({ id, name, arguments: text }) => [id, name, canonical(text)]),
  ]
  return createHash('sha256').update(JSON.stringify(parts)).digest('base64')
}

const textOf = ({ parts }: Message): string => parts.map((part) => (part.type === 'text' ? part.text : '')).join('')

/** Arguments compare as data: some dialects hand them to the client parsed. */
function canonical(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text))
  } catch {
    return text
  }
}

import { createHash } from 'node:crypto'
import type { Tenancy } from '@tollgate/contracts'
import type { Message } from '../conversation/turn.ts'
import type { ModelCall } from './transcript.ts'

const MOST_TURNS = 1_000
const MOST_BYTES = 16 * 1024 * 1024
const KEPT_MS = 30 * 60_000

/**
 * What the gateway's half of a turn was when it ended in calls of the client. The client answers its own calls alone;
 * when it does, the model is shown the whole turn again, so that nothing our tools found is lost or run twice (BR-055).
 * Kept in this process: a request that reaches another replica goes on without our half, as it would with a client that
 * edits its history.
 */
export interface MixedTurns {
  keep(whose: Tenancy, turn: MixedTurn): void
  /** The history, with every turn known here as the model saw it. */
  restore(whose: Tenancy, messages: Message[]): Message[]
}

export interface MixedTurn {
  /** What the turn answered. */
  asked: Message | undefined
  /** What the client was shown of it: words of every round, and its own calls. */
  shown: { text: string; calls: ModelCall[] }
  /** What the model said and was told in it. */
  replay: Message[]
}

interface Kept {
  replay: Message[]
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
    keep(whose, { asked, shown, replay }) {
      const kept = { replay, bytes: JSON.stringify(replay).length, until: Date.now() + KEPT_MS }
      const key = keyOf(whose, fingerprint(asked), shown)
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
      /** Of what was asked: made once, for however many turns of the model follow it. */
      let print: string | undefined
      return messages.flatMap((message) => {
        if (message.role === 'user') {
          asked = message
          print = undefined
        }
        const calls = message.role === 'assistant' ? callsIn(message) : []
        if (calls.length === 0) return [message]
        print ??= fingerprint(asked)
        const kept = turns.get(keyOf(whose, print, { text: textOf(message), calls }))
        return kept === undefined || kept.until <= Date.now() ? [message] : kept.replay
      })
    },
  }
}

/** Known again only by the same user of the same workspace, after the same words, with the same calls unchanged. */
function keyOf({ organization, workspace, user }: Tenancy, asked: string, { text, calls }: MixedTurn['shown']): string {
  const parts = [
    [organization, workspace, user],
    asked,
    text,
    calls.map(({ id, name, arguments: input }) => [id, name, canonical(input)]),
  ]
  return digest(JSON.stringify(parts))
}

const digest = (text: string): string => createHash('sha256').update(text).digest('base64')

const fingerprint = (asked: Message | undefined): string => digest(asked === undefined ? '' : textOf(asked))

const callsIn = ({ parts }: Message): ModelCall[] => parts.flatMap((part) => (part.type === 'call' ? [part] : []))

export const textOf = ({ parts }: Message): string =>
  parts.map((part) => (part.type === 'text' ? part.text : '')).join('')

/** Arguments compare as data: some dialects hand them to the client parsed. */
function canonical(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text))
  } catch {
    return text
  }
}

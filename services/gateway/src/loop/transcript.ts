import { Fault } from '@tollgate/contracts'
import type { BlockStart, ModelEvent } from '../conversation/events.ts'
import type { JsonObject, Message, Part } from '../conversation/turn.ts'

export type Finish = ModelEvent & { type: 'finish' }

export interface ModelCall {
  id: string
  name: string
  /** As the model wrote them: JSON text, or what it took for that. */
  arguments: string
  /** Its upstream called it a `builtin_function`. */
  builtin?: true
}

interface SaidBlock {
  start: BlockStart
  text: string
  signature: string | undefined
}

/** What the model said in one round, hidden or not: it is replayed to the model in its own order (L-18). */
export interface Transcript {
  take(event: ModelEvent): void
  calls(): ModelCall[]
  message(): Message
  /** How the round ended. A stream that just stops is a failure of the upstream (BR-018). */
  finish(): Finish
}

/** Characters of all that a model says in one attempt, hidden or not: as much as an answer that comes in one piece may have. */
const MOST_CHARACTERS = 32 * 1024 * 1024
/** What a block takes beside its text. */
const BLOCK_CHARACTERS = 128

/** The room that the rounds of one attempt share; what goes past it ends the request, and not this process. */
export function openRoom(most = MOST_CHARACTERS): { take(characters: number): void } {
  let left = most
  return {
    take(characters) {
      left -= characters
      if (left < 0) throw new Fault('upstream', "the model provider's answer is larger than is taken")
    },
  }
}

export function openTranscript(room = openRoom()): Transcript {
  const blocks = new Map<number, SaidBlock>()
  /** Items of a Responses upstream, each as it ended: what it is shown again. */
  const items: JsonObject[] = []
  let finish: Finish | undefined
  return {
    finish() {
      if (finish === undefined) throw new Fault('upstream', "the model provider's answer broke off")
      return finish
    },
    take(event) {
      switch (event.type) {
        case 'open':
          room.take(BLOCK_CHARACTERS)
          blocks.set(event.index, { start: event.block, text: '', signature: undefined })
          if (event.block.kind === 'other' && event.block.dialect === 'responses') items.push(event.block.value)
          break
        case 'delta': {
          room.take(event.text.length)
          const block = blocks.get(event.index)
          if (block) block.text += event.text
          break
        }
        case 'signature': {
          const block = blocks.get(event.index)
          if (block) block.signature = event.signature
          break
        }
        case 'close':
          if (event.raw?.dialect === 'responses') items.push(event.raw.value)
          break
        case 'finish':
          finish = event
          break
      }
    },
    calls: () => Array.from(blocks.values(), callOf).filter((call) => call !== undefined),
    message: () => ({
      role: 'assistant',
      parts: Array.from(blocks.values()).flatMap(partOf),
      ...(items.length > 0 && { raw: { dialect: 'responses', value: { items: [...items] } } }),
    }),
  }
}

const callOf = ({ start, text }: SaidBlock): ModelCall | undefined =>
  start.kind === 'call' ? callIn(start, text) : undefined

const callIn = ({ id, name, builtin }: BlockStart & { kind: 'call' }, text: string): ModelCall => ({
  id,
  name,
  arguments: text,
  ...(builtin && { builtin }),
})

function partOf({ start, text, signature }: SaidBlock): Part[] {
  switch (start.kind) {
    case 'text':
    case 'refusal':
      return text === '' ? [] : [{ type: 'text', text }]
    case 'thinking':
      return [{ type: 'thinking', text, ...(signature !== undefined && { signature }) }]
    case 'redacted_thinking':
      return [{ type: 'redacted_thinking', data: start.data }]
    case 'call':
      return [{ type: 'call', ...callIn(start, text) }]
    case 'other':
      return [{ type: 'other', dialect: start.dialect, kind: String(start.value.type), raw: start.value }]
    default:
      return start satisfies never
  }
}

export const resultMessage = (callId: string, text: string, isError: boolean): Message => ({
  role: 'tool',
  parts: [{ type: 'result', callId, text, isError }],
})

import { Fault } from '@tollgate/contracts'
import { z } from 'zod'
import type { Message, Turn } from '../../conversation/turn.ts'
import type { Owner, ResponseStore } from '../../stored-responses/store.ts'
import { inputItem } from './input-item.ts'
import { type Given, messagesOf } from './items.ts'
import type { ParsedRequest } from './parse.ts'
import { itemsById, readKept } from './stored-items.ts'

/**
 * The turn with everything that is only named in it: the conversation that it goes on from, as the model saw it, so that
 * its prefix stays what the provider has cached; and items that stand for stored ones (BR-040).
 */
export async function recalled(
  { turn, input, instructions, previous }: ParsedRequest,
  store: ResponseStore,
  owner: Owner,
): Promise<{ turn: Turn; input: Given[] }> {
  const items = await resolved(input, store, owner)
  if (previous === undefined && items === input) return { turn, input }
  const before = previous === undefined ? { messages: [], characters: 0 } : await history(previous, store, owner)
  const messages = [...instructions, ...restThoughts([...before.messages, ...messagesOf(items)])]
  return { turn: { ...turn, messages, bodyCharacters: turn.bodyCharacters + before.characters }, input: items }
}

/** What the loop added to a turn, as this gateway wrote it. */
const replay = z.array(
  z.custom<Message>((value) => z.object({ role: z.string(), parts: z.array(z.unknown()) }).safeParse(value).success),
)

async function history(id: string, store: ResponseStore, owner: Owner) {
  const turns = await store.conversation(owner, id)
  if (turns === undefined) throw new Fault('invalid_request', `Previous response with id '${shown(id)}' not found.`)
  if (turns === 'too_long')
    throw new Fault(
      'invalid_request',
      "The conversation is too long to be continued by 'previous_response_id': send what matters of it as 'input'.",
    )
  const messages = turns.flatMap((turn): Message[] => [
    ...messagesOf(readKept(turn.input)),
    ...replay.parse(JSON.parse(turn.replay)),
  ])
  const characters = turns.reduce((sum, turn) => sum + turn.input.length + turn.replay.length, 0)
  return { messages, characters }
}

async function resolved(input: Given[], store: ResponseStore, owner: Owner): Promise<Given[]> {
  const named = input.flatMap(({ read }) => (read.form === 'item_reference' ? [read.item.id] : []))
  if (named.length === 0) return input
  const holding = await store.holding(owner, named)
  if (holding === 'too_large')
    throw new Fault('invalid_request', "'input' refers to more than a request may bring: send what matters of it.")
  const items = itemsById(holding)
  return input.map((given) => {
    if (given.read.form !== 'item_reference') return given
    const wire = items.get(given.read.item.id)
    if (wire === undefined)
      throw new Fault(
        'invalid_request',
        `Item with id '${shown(given.read.item.id)}' not found: only items of stored responses can be referred to.`,
      )
    return { read: inputItem.parse(wire), wire }
  })
}

/**
 * Thoughts nobody signed rest once the user speaks again: the servers that have them want them back within a turn of
 * tools alone, and leave them out or refuse them afterwards (BR-017).
 */
function restThoughts(messages: Message[]): Message[] {
  const spoke = messages.findLastIndex(({ role }) => role === 'user')
  return messages.map((message, at) => {
    if (at > spoke || message.raw !== undefined || message.role !== 'assistant') return message
    return {
      ...message,
      parts: message.parts.filter((part) => part.type !== 'thinking' || part.signature !== undefined),
    }
  })
}

/** C-14's way with ids that come from outside. */
export const shown = (id: string): string => id.replace(/[^\x20-\x7e]/g, '').slice(0, 64)

import type { Answer } from '../../conversation/collect.ts'
import type { FinishReason } from '../../conversation/events.ts'
import type { JsonObject, Message } from '../../conversation/turn.ts'
import { issuedBy } from '../../models/issuer.ts'
import { bytesOf, fits, type KeptResponse } from '../../stored-responses/store.ts'
import { type Given, itemsIn } from './items.ts'
import { idsOf, kept } from './stored-items.ts'

export interface ToKeep {
  response: JsonObject
  answer: Answer
  input: Given[]
  previous: string | undefined
  /** What the loop added to the client's messages. */
  added: Message[]
}

/** An answer in the form it is stored in; undefined when it is too large for that. */
export function keepable({ response, answer, input, previous, added }: ToKeep): KeptResponse | undefined {
  const { items, named } = kept(input)
  const output = response.output as JsonObject[]
  const texts = {
    body: JSON.stringify(response),
    input: JSON.stringify(items),
    replay: JSON.stringify(issuedBy(uncut(added, answer.finish.reason), answer.provider)),
  }
  if (!fits(bytesOf(texts))) return undefined
  return { id: String(response.id), previous, ...texts, itemIds: [...named, ...idsOf(output)] }
}

/** Calls that an answer was cut off in have no arguments to go on with. */
function uncut(added: Message[], reason: FinishReason): Message[] {
  const last = added.at(-1)
  if (last === undefined || reason === 'tool_calls') return added
  const parts = last.parts.filter(({ type }) => type !== 'call')
  const items = itemsIn(last).filter(({ type }) => type !== 'function_call')
  const raw = last.raw && { dialect: 'responses' as const, value: { items } }
  return [...added.slice(0, -1), ...(parts.length > 0 ? [{ ...last, parts, ...(raw && { raw }) }] : [])]
}

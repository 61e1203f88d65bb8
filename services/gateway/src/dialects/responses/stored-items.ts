import { z } from 'zod'
import type { JsonObject } from '../../conversation/turn.ts'
import { mint } from './ids.ts'
import { inputItem } from './input-item.ts'
import type { Given } from './items.ts'

/**
 * Items as they are kept: each has an id. `named` are those that got it here; one that a client sends back with its id
 * is found where it was first.
 */
export function kept(items: readonly Given[]): { items: JsonObject[]; named: string[] } {
  const named: string[] = []
  const all = items.map(({ read, wire }) => {
    const { id, ...rest } = wire
    const type = wire.type ?? read.item.type
    if (typeof id === 'string' && id !== '') return { id, ...rest, type }
    const made = mint(read.form === 'message' ? 'message' : 'item')
    named.push(made)
    return { id: made, ...rest, type }
  })
  return { items: all, named }
}

/** An item as it is listed: words alone become a part, which is the form that clients expect. */
export function listed(item: JsonObject): JsonObject {
  if (item.type !== 'message' || typeof item.content !== 'string') return item
  const type = item.role === 'assistant' ? 'output_text' : 'input_text'
  return { ...item, content: [{ type, text: item.content, ...(type === 'output_text' && { annotations: [] }) }] }
}

export const idsOf = (items: readonly JsonObject[]): string[] =>
  items.flatMap(({ id }) => (typeof id === 'string' ? [id] : []))

const wireItems = z.array(z.looseObject({}))

/** What was kept, read as an input is. */
export function readKept(text: string): Given[] {
  const wires = wireItems.parse(JSON.parse(text)) as JsonObject[]
  return wires.map((wire) => ({ read: inputItem.parse(wire), wire }))
}

const answered = z.looseObject({ output: wireItems })

/** Every item of a stored response by its id: those it was asked with, and those it answered. */
export function itemsById(stored: readonly { body: string; input: string }[]): Map<string, JsonObject> {
  const items = stored.flatMap(({ body, input }) => [
    ...wireItems.parse(JSON.parse(input)),
    ...answered.parse(JSON.parse(body)).output,
  ]) as JsonObject[]
  return new Map(items.flatMap((item) => (typeof item.id === 'string' ? [[item.id, item] as const] : [])))
}

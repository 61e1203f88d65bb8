import { isObject } from '../../conversation/json.ts'
import type { JsonObject, Message } from '../../conversation/turn.ts'

/** The items a message came in, where it came in items; undefined for any other message. */
export function itemsOf({ raw }: Message): JsonObject[] | undefined {
  const items = raw?.dialect === 'responses' ? raw.value.items : undefined
  return Array.isArray(items) ? items.filter(isObject) : undefined
}

/**
 * Items as a provider that stores nothing can take them: reasoning that it cannot read again goes (BR-040). What followed
 * it in the same turn of the model then loses its id, by which the provider would miss the reasoning.
 */
export function readable(items: readonly JsonObject[]): JsonObject[] {
  let bereft = false
  return items.flatMap((item) => {
    if (item.type === 'reasoning' && !item.encrypted_content) {
      bereft = true
      return []
    }
    if (!bereft || item.id === undefined) return [item]
    const { id: _known, ...rest } = item
    return [rest]
  })
}

import type { JsonObject } from '../../conversation/turn.ts'

/**
 * Where the items stand that a provider of this dialect runs by itself, from their announcement to their end. Providers
 * count anew in every round, so that an id tells of the item that was announced last under it.
 */
export function nativeItems() {
  const places = new Map<unknown, number>()
  return {
    begins(item: JsonObject, outputIndex: number): void {
      places.set(item.id, outputIndex)
    },
    /** An event of such an item, where its item stands here; none of an item that nobody announced. */
    place(event: JsonObject): JsonObject[] {
      const output_index = places.get(event.item_id)
      return output_index === undefined ? [] : [{ ...event, output_index }]
    },
    /** The place of an item that has ended; undefined for one that was never announced. */
    ends({ id }: JsonObject): number | undefined {
      const at = places.get(id)
      places.delete(id)
      return at
    },
  }
}

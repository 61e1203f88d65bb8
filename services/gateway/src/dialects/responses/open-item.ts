import type { JsonObject } from '../../conversation/turn.ts'

/** Where an item stands, as its inner events say it. */
export interface Place {
  item_id: string
  output_index: number
}

/** `incomplete`: the answer was cut off while the item was being said. */
export type ItemEnd = 'completed' | 'incomplete'

/** An item that is being said, as events without their numbers. */
export interface OpenItem {
  readonly place: Place
  /** The item as it is announced. */
  begun(): JsonObject
  /** The item as it stands. */
  whole(end: ItemEnd): JsonObject
  say(text: string): JsonObject[]
  /** What there is to say of its last piece, when nothing more is added to it. */
  settle(): JsonObject[]
  /** Its provider, which speaks this dialect, ended it so. */
  ended(item: JsonObject): void
}

/** An item as its provider ended it, under the id it is known by here, and cut off where the answer was. */
export const asEnded = (item: JsonObject, { item_id: id }: Place, end: ItemEnd): JsonObject => ({
  ...item,
  id,
  ...(end === 'incomplete' && { status: end }),
})

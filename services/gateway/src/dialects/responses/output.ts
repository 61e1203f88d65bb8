import type { AnswerEvent, BlockStart, ModelEvent } from '../../conversation/events.ts'
import type { JsonObject } from '../../conversation/turn.ts'
import { issuerOf } from '../../models/issuer.ts'
import { callItem } from './call-item.ts'
import { citation } from './citations.ts'
import { type GatewayItems, gatewayItem } from './gateway-items.ts'
import { mint } from './ids.ts'
import { type MessageItem, messageItem } from './message-item.ts'
import { nativeItems } from './native-items.ts'
import type { ItemEnd, OpenItem, Place } from './open-item.ts'
import { type ReasoningItem, reasoningItem } from './reasoning-item.ts'

/** `output`, as it comes to be. */
export interface Output {
  /** What a stream says of the event: events without their numbers. */
  push(event: AnswerEvent): JsonObject[]
  /** Ends what is still open; `incomplete` when the answer was cut off. */
  end(end: ItemEnd): JsonObject[]
  /** Items in their order; those still open are left out. */
  items(): JsonObject[]
}

interface Slot {
  open: OpenItem
  /** Blocks of the item that are still being said. */
  blocks: number
}

/**
 * Puts items together from an answer's events. An item stays open until another follows it or the answer ends, so that
 * the last one can still be told to be cut off. `ids` is shared by everything that shows one answer, by place.
 */
export function openOutput(shows: GatewayItems, ids: string[]): Output {
  const items: (JsonObject | undefined)[] = []
  const slots = new Map<number, Slot>()
  const blocks = new Map<number, Slot>()
  /** Where words are added to; undefined once something came between. */
  let message: { item: MessageItem; slot: Slot } | undefined
  let issuer: string | undefined
  const natives = nativeItems()

  /** A provider's own item keeps its id. */
  function place(kind: Parameters<typeof mint>[0], head?: JsonObject): Place {
    const output_index = items.push(undefined) - 1
    const own = typeof head?.id === 'string' && head.id !== '' ? head.id : undefined
    const item_id = own ?? ids[output_index] ?? mint(kind)
    ids[output_index] = item_id
    return { item_id, output_index }
  }

  function begin(open: OpenItem, block: number): { slot: Slot; events: JsonObject[] } {
    const slot = { open, blocks: 1 }
    slots.set(open.place.output_index, slot)
    blocks.set(block, slot)
    return { slot, events: [added(open.place.output_index, open.begun())] }
  }

  function finish({ open }: Slot, end: ItemEnd): JsonObject[] {
    const { output_index } = open.place
    const inner = open.settle()
    const whole = open.whole(end)
    slots.delete(output_index)
    items[output_index] = whole
    return [...inner, done(output_index, whole)]
  }

  /** Something follows: whatever is said to its end is over. */
  const finishIdle = (): JsonObject[] =>
    Array.from(slots.values()).flatMap((slot) => (slot.blocks === 0 ? finish(slot, 'completed') : []))

  /** An item that is said in one piece; one of another's keeps its own id. */
  function whole(members: JsonObject, kind: Parameters<typeof mint>[0]): JsonObject[] {
    message = undefined
    const before = finishIdle()
    const { item_id, output_index } = place(kind, members)
    const item = { ...members, id: item_id }
    items[output_index] = item
    return [...before, added(output_index, item), done(output_index, item)]
  }

  /** An item of a provider's own: what was announced of it before goes with it. */
  function native(item: JsonObject): JsonObject[] {
    const at = natives.ends(item)
    if (at === undefined) return whole(item, 'item')
    items[at] = { ...item, id: ids[at] ?? null }
    return [done(at, items[at])]
  }

  /** What a provider tells of an item of its own on the way. */
  function hearNative(value: JsonObject): JsonObject[] {
    if (value.type !== 'response.output_item.added') return natives.place(value)
    message = undefined
    const before = finishIdle()
    const item = value.item as JsonObject
    const { item_id, output_index } = place('item', item)
    natives.begins(item, output_index)
    return [...before, added(output_index, { ...item, id: item_id })]
  }

  function open({ index, block, raw }: ModelEvent & { type: 'open' }): JsonObject[] {
    const head = raw?.dialect === 'responses' ? raw.value : undefined
    if (block.kind === 'text' || block.kind === 'refusal') return words(index, block.kind, head)
    const item = itemOf(block, head)
    if (item === undefined) return block.kind === 'other' && block.dialect === 'responses' ? native(block.value) : []
    message = undefined
    const before = finishIdle()
    return [...before, ...begin(item(), index).events]
  }

  function words(index: number, kind: 'text' | 'refusal', head: JsonObject | undefined): JsonObject[] {
    const events: JsonObject[] = []
    if (message === undefined || message.item.own !== head?.id) {
      message = undefined
      events.push(...finishIdle())
      const item = messageItem(place('message', head), head)
      const begun = begin(item, index)
      message = { item, slot: begun.slot }
      events.push(...begun.events)
    } else {
      message.slot.blocks += 1
      blocks.set(index, message.slot)
    }
    return [...events, ...message.item.begin(kind)]
  }

  function itemOf(block: BlockStart, head: JsonObject | undefined): (() => OpenItem) | undefined {
    switch (block.kind) {
      case 'call':
        return () => callItem(place('functionCall', head), block, head)
      case 'thinking':
        return () => reasoningItem(place('reasoning', head), head)
      case 'redacted_thinking':
        return () => {
          const item = reasoningItem(place('reasoning'))
          if (issuer !== undefined) item.sign({ issuer, redacted: block.data })
          return item
        }
      case 'text':
      case 'refusal':
      case 'other':
        return undefined
      default:
        return block satisfies never
    }
  }

  function sign({ index, signature }: ModelEvent & { type: 'signature' }): JsonObject[] {
    const item = blocks.get(index)?.open
    if (item && issuer !== undefined && isReasoning(item)) item.sign({ issuer, signature })
    return []
  }

  function close({ index, raw }: ModelEvent & { type: 'close' }): JsonObject[] {
    const slot = blocks.get(index)
    if (slot === undefined) return []
    if (raw?.dialect === 'responses') {
      slot.open.ended(raw.value)
      // what is said next is another item
      if (slot === message?.slot) message = undefined
    }
    blocks.delete(index)
    slot.blocks -= 1
    // words may go on in the item; anything else is over, and only the last item's end is not known yet
    const last = slot.open.place.output_index === items.length - 1
    return slot.blocks === 0 && !last && slot !== message?.slot ? finish(slot, 'completed') : []
  }

  return {
    push(event) {
      switch (event.type) {
        case 'start':
          issuer = event.provider === undefined ? undefined : issuerOf(event.provider)
          return []
        case 'open':
          return open(event)
        case 'delta':
          return blocks.get(event.index)?.open.say(event.text) ?? []
        case 'signature':
          return sign(event)
        case 'close':
          return close(event)
        case 'extra': {
          const cites = citation(event)
          if (cites) return message?.item.annotate(cites) ?? []
          return event.dialect === 'responses' ? hearNative(event.value) : []
        }
        case 'tool': {
          if (event.phase === 'started') return []
          const item = gatewayItem(event, shows)
          if (item) return whole(item.members, item.kind)
          // what the model says next is another message, though nothing shows between them
          message = undefined
          return finishIdle()
        }
        case 'container':
          shows.hold(event.container.id)
          return []
        case 'usage':
        case 'finish':
          return []
        default:
          return event satisfies never
      }
    },
    end: (end) => {
      const open = Array.from(slots.values()).sort(
        (one, other) => one.open.place.output_index - other.open.place.output_index,
      )
      return open.flatMap((slot) => finish(slot, slot === open.at(-1) ? end : 'completed'))
    },
    items: () => items.filter((item) => item !== undefined),
  }
}

const isReasoning = (item: OpenItem): item is ReasoningItem => 'sign' in item

const added = (output_index: number, item: JsonObject): JsonObject => ({
  type: 'response.output_item.added',
  output_index,
  item,
})
const done = (output_index: number, item: JsonObject): JsonObject => ({
  type: 'response.output_item.done',
  output_index,
  item,
})

import type { JsonObject } from '../../conversation/turn.ts'
import { asEnded, type ItemEnd, type OpenItem, type Place } from './open-item.ts'

/**
 * `function_call`: a call of a function of the client's own, its id, name and arguments as the model gave them.
 * `head` is the item as a provider of this dialect began it.
 */
export function callItem(place: Place, { id, name }: { id: string; name: string }, head: JsonObject = {}): OpenItem {
  let text = ''
  let whole: JsonObject | undefined
  const item = (status: ItemEnd | 'in_progress'): JsonObject => ({
    ...head,
    id: place.item_id,
    type: 'function_call',
    status,
    call_id: id,
    name,
    arguments: text,
  })
  return {
    place,
    begun: () => item('in_progress'),
    whole: (end) => (whole ? asEnded(whole, place, end) : item(end)),
    ended(item) {
      whole = item
    },
    say(delta) {
      text += delta
      return [{ type: 'response.function_call_arguments.delta', ...place, delta }]
    },
    settle: () => [{ type: 'response.function_call_arguments.done', ...place, name, arguments: text }],
  }
}

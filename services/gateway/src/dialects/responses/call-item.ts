import type { JsonObject } from '../../conversation/turn.ts'
import type { ItemEnd, OpenItem, Place } from './open-item.ts'

/** `function_call`: a call of a function of the client's own, its id, name and arguments as the model gave them. */
export function callItem(place: Place, { id, name }: { id: string; name: string }): OpenItem {
  let text = ''
  const item = (status: ItemEnd | 'in_progress'): JsonObject => ({
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
    whole: item,
    say(delta) {
      text += delta
      return [{ type: 'response.function_call_arguments.delta', ...place, delta }]
    },
    settle: () => [{ type: 'response.function_call_arguments.done', ...place, name, arguments: text }],
  }
}

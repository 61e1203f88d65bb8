import type { JsonObject } from '../../conversation/turn.ts'
import { asEnded, type OpenItem, type Place } from './open-item.ts'
import { type Seal, sealed } from './reasoning.ts'

export interface ReasoningItem extends OpenItem {
  sign(what: Seal): void
}

/**
 * `reasoning`: what the model thought, as a summary, which is the form that clients show. `head` is the item as a provider
 * of this dialect began it.
 */
export function reasoningItem(place: Place, head: JsonObject = {}): ReasoningItem {
  let whole: JsonObject | undefined
  let text: string | undefined
  let encrypted: string | undefined

  const item = (): JsonObject => ({
    ...head,
    id: place.item_id,
    type: 'reasoning',
    summary: text === undefined ? [] : [{ type: 'summary_text', text }],
    ...(encrypted !== undefined && { encrypted_content: encrypted }),
  })
  const at = { ...place, summary_index: 0 }

  return {
    place,
    begun: item,
    // it has no status of its own to be cut off
    whole: () => (whole ? asEnded(whole, place, 'completed') : item()),
    ended(item) {
      whole = item
    },
    say(delta) {
      const first = text === undefined
      text = (text ?? '') + delta
      const said = { type: 'response.reasoning_summary_text.delta', ...at, delta }
      return first
        ? [{ type: 'response.reasoning_summary_part.added', ...at, part: { type: 'summary_text', text: '' } }, said]
        : [said]
    },
    settle() {
      if (text === undefined) return []
      return [
        { type: 'response.reasoning_summary_text.done', ...at, text },
        { type: 'response.reasoning_summary_part.done', ...at, part: { type: 'summary_text', text } },
      ]
    },
    sign(what) {
      encrypted = sealed(what)
    },
  }
}

import type { JsonObject } from '../../conversation/turn.ts'
import { asEnded, type ItemEnd, type OpenItem, type Place } from './open-item.ts'

interface ContentPart {
  kind: 'text' | 'refusal'
  text: string
  annotations: JsonObject[]
}

export interface MessageItem extends OpenItem {
  /** The id that its provider gave it. */
  readonly own: unknown
  /** A block of words begins; blocks of one kind in a row are one part of the content, unless they are parts of a provider's. */
  begin(kind: ContentPart['kind']): JsonObject[]
  /** Cites something for the block that was said last. */
  annotate(annotation: (start: number, end: number) => JsonObject): JsonObject[]
}

/**
 * `message`: the words of the model, with the whole life of each part (BR-014). `head` is the item as a provider of this
 * dialect began it.
 */
export function messageItem(place: Place, head?: JsonObject): MessageItem {
  const parts: ContentPart[] = []
  let whole: JsonObject | undefined
  let settled = true
  let blockStart = 0

  const at = () => ({ ...place, content_index: parts.length - 1 })

  function settle(): JsonObject[] {
    const part = parts.at(-1)
    if (part === undefined || settled) return []
    settled = true
    const said =
      part.kind === 'text'
        ? { type: 'response.output_text.done', ...at(), text: part.text }
        : { type: 'response.refusal.done', ...at(), refusal: part.text }
    return [said, { type: 'response.content_part.done', ...at(), part: shown(part) }]
  }

  return {
    place,
    own: head?.id,
    begun: () => item('in_progress', []),
    whole: (end) => (whole ? asEnded(whole, place, end) : item(end, parts.map(shown))),
    ended(item) {
      whole = item
    },
    begin(kind) {
      const last = parts.at(-1)
      const goesOn = last?.kind === kind && head === undefined
      blockStart = goesOn ? last.text.length : 0
      if (goesOn && !settled) return []
      const before = settle()
      const part: ContentPart = { kind, text: '', annotations: [] }
      parts.push(part)
      settled = false
      blockStart = 0
      return [...before, { type: 'response.content_part.added', ...at(), part: shown(part) }]
    },
    say(delta) {
      const part = parts.at(-1)
      if (part === undefined) return []
      part.text += delta
      const type = part.kind === 'text' ? 'response.output_text.delta' : 'response.refusal.delta'
      const { item_id, output_index } = place
      return [{ type, item_id, output_index, content_index: parts.length - 1, delta }]
    },
    annotate(annotation) {
      const part = parts.at(-1)
      if (part?.kind !== 'text' || settled) return []
      const made = annotation(blockStart, part.text.length)
      const annotation_index = part.annotations.push(made) - 1
      return [{ type: 'response.output_text.annotation.added', ...at(), annotation_index, annotation: made }]
    },
    settle,
  }

  function item(status: ItemEnd | 'in_progress', content: JsonObject[]): JsonObject {
    return { ...head, id: place.item_id, type: 'message', role: 'assistant', status, content }
  }
}

const shown = ({ kind, text, annotations }: ContentPart): JsonObject =>
  kind === 'text' ? { type: 'output_text', text, annotations: [...annotations] } : { type: 'refusal', refusal: text }

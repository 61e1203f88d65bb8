import type { BlockStart, Raw } from '../../conversation/events.ts'
import type { Json, JsonObject } from '../../conversation/turn.ts'

/** False for a block that only clients of another dialect could read. */
export const isKnown = (block: BlockStart): boolean => block.kind !== 'other' || block.dialect === 'messages'

/** A block as `content_block_start` has it, its upstream's own members kept where that spoke this dialect. */
export function startOf(block: BlockStart, raw: Raw | undefined): JsonObject {
  const more = raw?.dialect === 'messages' ? raw.value : {}
  switch (block.kind) {
    case 'text':
    case 'refusal':
      return { type: 'text', text: '', ...more }
    case 'thinking':
      return { type: 'thinking', thinking: '', signature: '', ...more }
    case 'redacted_thinking':
      return { type: 'redacted_thinking', data: block.data, ...more }
    case 'call':
      return { type: 'tool_use', id: block.id, name: block.name, input: {}, ...more }
    case 'other':
      return block.value
    default:
      return block satisfies never
  }
}

/** What `text` of a block is called in its deltas; undefined for blocks that come whole. */
export function deltaOf(kind: BlockStart['kind'], text: string): JsonObject | undefined {
  switch (kind) {
    case 'text':
    case 'refusal':
      return { type: 'text_delta', text }
    case 'thinking':
      return { type: 'thinking_delta', thinking: text }
    case 'call':
      return { type: 'input_json_delta', partial_json: text }
    case 'redacted_thinking':
    case 'other':
      return undefined
    default:
      return kind satisfies never
  }
}

/** Arguments that are no JSON object cannot be shown as one: a call that was cut off has none (L-15). */
export function inputOf(text: string): JsonObject {
  try {
    const input: Json = JSON.parse(text)
    return input !== null && typeof input === 'object' && !Array.isArray(input) ? input : {}
  } catch {
    return {}
  }
}

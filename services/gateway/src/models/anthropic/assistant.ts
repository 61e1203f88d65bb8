import { Fault } from '@tollgate/contracts'
import { isObject } from '../../conversation/json.ts'
import type { Json, JsonObject, Message, Part } from '../../conversation/turn.ts'
import { isRecord } from '../signatures.ts'

/**
 * What the model said, in its own order, thinking with its signature (L-18, BR-003, BR-015). Unsigned thinking is given
 * back only to an upstream that has just sent it and may want it (BR-017): such a message has no wire form of its own.
 */
export function assistantBlocks({ parts, raw }: Message, ids: string[], replayUnsigned: boolean): JsonObject[] {
  const free = [...ids]
  return parts.flatMap((part): JsonObject[] => {
    switch (part.type) {
      case 'text':
        return part.text.trim() === '' ? [] : [{ type: 'text', text: part.text }]
      case 'thinking':
        if (isRecord(part.signature)) return [] // another provider's
        if (part.signature !== undefined) return [{ type: 'thinking', thinking: part.text, signature: part.signature }]
        return replayUnsigned && raw === undefined ? [{ type: 'thinking', thinking: part.text }] : []
      case 'redacted_thinking':
        return [{ type: 'redacted_thinking', data: part.data }]
      case 'call':
        return [{ type: 'tool_use', id: free.shift() ?? part.id, name: part.name, input: inputOf(part.arguments) }]
      case 'other':
        if (part.dialect === 'messages' && isObject(part.raw)) return [part.raw]
        throw new Fault('invalid_request', `'${part.kind}' cannot be sent to this model's provider`)
      case 'image':
      case 'file':
      case 'result':
        throw new Fault('invalid_request', `an assistant message cannot hold '${part.type}'`)
      default:
        return part satisfies never
    }
  })
}

/**
 * Ids of a message's calls, as the vendor takes them: letters, digits, `_` and `-`, no two alike in a conversation.
 * Other vendors count their calls anew in every turn, or put the function's name in.
 */
export function uniqueIds(): (parts: readonly Part[]) => string[] {
  const taken = new Set<string>()
  /** From which number on an id may be free: a history may use one id in every turn. */
  const next = new Map<string, number>()
  return (parts) =>
    parts.flatMap((part) => {
      if (part.type !== 'call') return []
      const plain = part.id.replace(/[^\w-]/g, '_') || 'call'
      let id = plain
      let n = next.get(plain) ?? 2
      while (taken.has(id)) id = `${plain}_${n++}`
      next.set(plain, n)
      taken.add(id)
      return [id]
    })
}

/** Arguments that are no JSON object become an empty one (L-15). */
function inputOf(text: string): JsonObject {
  try {
    const input: Json = JSON.parse(text)
    return isObject(input) ? input : {}
  } catch {
    return {}
  }
}

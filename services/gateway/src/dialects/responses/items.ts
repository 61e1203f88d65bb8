import type { JsonObject, Message, Part } from '../../conversation/turn.ts'
import { contentParts, own, textOf } from './content.ts'
import { codeText, wireForm } from './echo.ts'
import { isGatewaySearch } from './ids.ts'
import type { InputItem } from './input-item.ts'
import { reasoningParts } from './reasoning.ts'

/** An item and its wire form, as the client sent it. */
export interface Given {
  read: InputItem
  wire: JsonObject
}

/**
 * Items as messages: what the model said in one turn is one message, whatever number of items it came in, and everything
 * else is a message each. The wire forms are kept, in order, less what only this gateway's clients send back.
 */
export function messagesOf(items: readonly Given[]): Message[] {
  const messages: Message[] = []
  for (const { read, wire } of items) {
    const said = meaningOf(read, wire)
    const kept = wireForm(read, wire)
    if (said.parts.length === 0 && kept === undefined) continue
    const last = messages.at(-1)
    if (said.role === 'assistant' && last?.role === 'assistant') {
      // one by one: a call has no room for as many arguments as a message may have parts
      for (const part of said.parts) last.parts.push(part)
      if (kept) itemsIn(last).push(kept)
    } else {
      messages.push({ ...said, raw: { dialect: 'responses', value: { items: kept ? [kept] : [] } } })
    }
  }
  return messages
}

/** The wire forms in a message of this dialect; a message that stands for `instructions` has none. */
export function itemsIn({ raw }: Message): JsonObject[] {
  const items = raw?.dialect === 'responses' ? raw.value.items : undefined
  return Array.isArray(items) ? (items as JsonObject[]) : []
}

function meaningOf(read: InputItem, wire: JsonObject): Message {
  switch (read.form) {
    case 'message': {
      const { role, content } = read.item
      return { role: role === 'developer' ? 'system' : role, parts: contentParts(content) }
    }
    case 'function_call': {
      const { call_id: id, name, arguments: text } = read.item
      return { role: 'assistant', parts: [{ type: 'call', id, name, arguments: text }] }
    }
    case 'custom_tool_call': {
      const { call_id: id, name, input } = read.item
      return { role: 'assistant', parts: [{ type: 'call', id, name, arguments: JSON.stringify({ input }) }] }
    }
    case 'function_call_output':
    case 'custom_tool_call_output':
      return { role: 'tool', parts: resultParts(read.item.call_id, contentParts(read.item.output)) }
    case 'reasoning':
      return { role: 'assistant', parts: reasoningParts(read.item) }
    case 'code_interpreter_call':
      return { role: 'assistant', parts: [{ type: 'text', text: codeText(read.item) }] }
    case 'item_reference':
      // what it names has taken its place already where it is known
      return { role: 'user', parts: [own('item_reference', wire)] }
    case 'other':
      return { role: sideOf(read.item.type), parts: otherParts(read.item.type, wire) }
    default:
      return read satisfies never
  }
}

function resultParts(callId: string, parts: Part[]): Part[] {
  return [
    { type: 'result', callId, text: textOf(parts), isError: false },
    ...parts.filter(({ type }) => type !== 'text'),
  ]
}

/** Records of what a provider did by itself, which say nothing that the answer after them does not. */
const RECORDS = new Set(['web_search_call', 'file_search_call', 'mcp_list_tools'])

const otherParts = (type: string, wire: JsonObject): Part[] =>
  RECORDS.has(type) || isGatewaySearch(wire.id) ? [] : [own(type, wire)]

const sideOf = (type: string): Message['role'] =>
  type.endsWith('_output') ? 'tool' : type.endsWith('_call') || RECORDS.has(type) ? 'assistant' : 'user'

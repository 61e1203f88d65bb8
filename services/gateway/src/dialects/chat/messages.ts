import type { Json, JsonObject, Message, Part } from '../../conversation/turn.ts'
import { chatFileId } from '../../files/attachments.ts'
import type { ChatMessage, ChatPart } from './request.ts'

type Assistant = ChatMessage & { role: 'assistant' }

/** A message of a Chat body, with its wire form less what only a client of this gateway sends back. */
export function readMessage(message: ChatMessage, wire: JsonObject): Message {
  const raw = { dialect: 'chat', value: withoutReports(wire) } as const
  switch (message.role) {
    case 'system':
    case 'developer':
      return { role: 'system', parts: contentParts(message.content), raw }
    case 'user':
      return { role: 'user', parts: contentParts(message.content), raw }
    case 'assistant':
      return { role: 'assistant', parts: assistantParts(message), raw }
    case 'tool':
      return { role: 'tool', parts: resultParts(message), raw }
    case 'function':
      return { role: 'tool', parts: [own('function', wire)], raw }
    default:
      return message satisfies never
  }
}

function withoutReports(wire: JsonObject): JsonObject {
  if (!Object.hasOwn(wire, 'otari_tool_calls') && !Object.hasOwn(wire, 'otari_tool_activity')) return wire
  const { otari_tool_calls: _calls, otari_tool_activity: _activity, ...rest } = wire
  return rest
}

function contentParts(content: string | ChatPart[]): Part[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  return content.map((part): Part => {
    if (isText(part)) return { type: 'text', text: part.text }
    if (isImage(part)) return imagePart(part.image_url)
    const file = chatFileId(part)
    if (file !== undefined) return { type: 'file', id: file }
    return own(part.type, part as JsonObject)
  })
}

/** In the order in which a model says it: thinking, words, calls. */
function assistantParts(message: Assistant): Part[] {
  const parts = contentParts(message.content ?? '').map(spoken)
  if (message.reasoning_content) parts.unshift({ type: 'thinking', text: message.reasoning_content })
  if (message.refusal) parts.push({ type: 'text', text: message.refusal })
  for (const call of message.tool_calls ?? []) {
    if (isFunction(call))
      parts.push({
        type: 'call',
        id: call.id,
        name: call.function.name,
        arguments: call.function.arguments,
        ...(call.type === 'builtin_function' && { builtin: true as const }),
      })
    else parts.push(own('custom', call as JsonObject))
  }
  if (message.function_call) parts.push(own('function_call', message.function_call as JsonObject))
  if (message.audio) parts.push(own('audio', message.audio as JsonObject))
  return parts
}

/** A refusal, said as a content part, is words like any others to another model. */
function spoken(part: Part): Part {
  if (part.type !== 'other' || part.kind !== 'refusal') return part
  const { refusal } = part.raw as JsonObject
  return typeof refusal === 'string' ? { type: 'text', text: refusal } : part
}

function resultParts({ tool_call_id: callId, name, content }: ChatMessage & { role: 'tool' }): Part[] {
  const parts = contentParts(content)
  const text = parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
  const named = typeof name === 'string' && { name }
  return [{ type: 'result', callId, text, isError: false, ...named }, ...parts.filter(({ type }) => type !== 'text')]
}

const own = (kind: string, raw: Json): Part => ({ type: 'other', dialect: 'chat', kind, raw })

const isText = (part: ChatPart): part is ChatPart & { text: string } => part.type === 'text'
const isImage = (part: ChatPart): part is ChatPart & { image_url: { url: string; detail?: unknown } } =>
  part.type === 'image_url'

const imagePart = ({ url, detail }: { url: string; detail?: unknown }): Part => ({
  type: 'image',
  url,
  ...(typeof detail === 'string' && { detail }),
})

type Call = NonNullable<Assistant['tool_calls']>[number]
const isFunction = (call: Call): call is Call & { type?: string; function: { name: string; arguments: string } } =>
  call.type !== 'custom'

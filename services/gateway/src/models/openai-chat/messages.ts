import { Fault } from '@tollgate/contracts'
import { isObject } from '../../conversation/json.ts'
import type { Dialect, Json, JsonObject, Message, Part } from '../../conversation/turn.ts'
import { pairResults } from '../history.ts'

/**
 * Messages as the Chat wire has them: what came in Chat goes out as it came, everything else is rendered (T-26, L-18),
 * each call with its result (BR-050).
 */
export function chatMessages(messages: readonly Message[], dialect: Dialect): JsonObject[] {
  const history = dialect === 'chat' ? messages : pairResults(messages)
  return history.flatMap((message) => (message.raw?.dialect === 'chat' ? [message.raw.value] : render(message)))
}

function render(message: Message): JsonObject[] {
  switch (message.role) {
    case 'system':
      return [{ role: 'system', content: systemText(message.parts) }]
    case 'assistant':
      // reasoning that was sent back alone is nothing that this wire has a message for
      return message.raw !== undefined && message.parts.every(isThinking) ? [] : [renderAssistant(message)]
    case 'user':
    case 'tool':
      return renderUser(message.parts)
    default:
      return message.role satisfies never
  }
}

/** Results come first, one message each; what else a user said follows them. */
function renderUser(parts: readonly Part[]): JsonObject[] {
  const results: JsonObject[] = []
  const content: JsonObject[] = []
  for (const part of parts) {
    switch (part.type) {
      case 'result':
        results.push({
          role: 'tool',
          tool_call_id: part.callId,
          ...(part.name !== undefined && { name: part.name }),
          content: resultText(part),
        })
        break
      case 'text':
        content.push({ type: 'text', text: part.text })
        break
      case 'image':
        content.push({
          type: 'image_url',
          image_url: { url: part.url, ...(part.detail !== undefined && { detail: part.detail }) },
        })
        break
      case 'other':
        content.push(own(part))
        break
      case 'thinking':
      case 'redacted_thinking':
      case 'call':
      case 'file':
        throw new Fault('invalid_request', `a user message cannot hold a ${part.type} block`)
      default:
        part satisfies never
    }
  }
  if (content.length === 0) return results
  const onlyText = content.every((part) => part.type === 'text')
  const text = content.length === 1 && onlyText ? content[0]?.text : undefined
  return [...results, { role: 'user', content: text ?? content }]
}

/**
 * Thinking is replayed only where this gateway has just received it from the same upstream, which is where a message has
 * no wire form of its own; thinking out of another dialect's history means nothing here (BR-017).
 */
function renderAssistant({ parts, raw }: Message): JsonObject {
  const message: JsonObject = { role: 'assistant' }
  const text = textOf(parts)
  if (text) message.content = text
  const thinking = parts.flatMap((part) => (part.type === 'thinking' ? part.text : [])).join('')
  if (thinking && raw === undefined) message.reasoning_content = thinking
  const calls = parts.flatMap((part): JsonObject[] => {
    if (part.type === 'call')
      return [{ id: part.id, type: callType(part), function: { name: part.name, arguments: part.arguments } }]
    return part.type === 'other' && part.dialect !== 'messages' ? [own(part)] : []
  })
  if (calls.length > 0) message.tool_calls = calls
  else message.content ??= ''
  return message
}

const textOf = (parts: readonly Part[]): string =>
  parts.flatMap((part) => (part.type === 'text' ? part.text : [])).join('')

const callType = ({ builtin }: Part & { type: 'call' }) => (builtin ? 'builtin_function' : 'function')

const isThinking = ({ type }: Part): boolean => type === 'thinking' || type === 'redacted_thinking'

/** What was said in several parts, such as hints before instructions, is told apart. */
const systemText = (parts: readonly Part[]): string =>
  parts.flatMap((part) => (part.type === 'text' ? part.text : [])).join('\n\n')

/** Chat has no flag for a failed result, so its text says it (BR-008); what the gateway's own tools say already does. */
function resultText({ text, isError }: { text: string; isError: boolean }): string {
  return isError && !text.startsWith('[tool error]') ? `Error: ${text}` : text
}

function own({ dialect, kind, raw }: { dialect: string; kind: string; raw: Json }): JsonObject {
  if (dialect !== 'chat' || !isObject(raw))
    throw new Fault('invalid_request', `this model's provider cannot be sent '${kind}'`)
  return raw
}

import { Fault } from '@tollgate/contracts'
import { z } from 'zod'
import type { JsonObject, Message, Part } from '../../conversation/turn.ts'
import { NO_RESULT } from '../history.ts'
import { itemsOf, readable } from './own-items.ts'
import { reasoningItem } from './reasoning.ts'

export interface Transcript {
  instructions: string | undefined
  input: JsonObject[]
}

/**
 * A conversation as the Responses API takes it. What came in items goes out as it came, everything else is rendered (T-26,
 * L-18). System messages at its head are the instructions; each item depends only on those before it, so that a longer
 * conversation begins with the same bytes.
 */
export function transcriptOf(messages: readonly Message[], provider: string): Transcript {
  const told = messages.findIndex((message) => message.role !== 'system' || itemsOf(message) !== undefined)
  const head = told < 0 ? messages : messages.slice(0, told)
  const rest = told < 0 ? [] : messages.slice(told)
  const instructions = head.map(systemText).filter((text) => text !== '')
  return {
    instructions: instructions.length > 0 ? instructions.join('\n\n') : undefined,
    input: paired(rest.map((message) => rendered(message, provider))),
  }
}

/** Instructions of this dialect keep what hints made of their text; others are told by their parts. */
function systemText({ parts, raw }: Message): string {
  if (raw?.dialect === 'responses' && typeof raw.value.content === 'string') return raw.value.content
  return parts.map((part) => (part.type === 'text' ? part.text : refuse(part, 'a system message'))).join('\n\n')
}

function rendered(message: Message, provider: string): JsonObject[] {
  const items = itemsOf(message)
  if (items) return message.role === 'assistant' ? readable(items) : items
  switch (message.role) {
    case 'system':
      return [{ type: 'message', role: 'developer', content: systemText(message) }]
    case 'assistant':
      return assistantItems(message.parts, provider)
    case 'user':
    case 'tool':
      return userItems(message.parts)
    default:
      return message.role satisfies never
  }
}

function assistantItems(parts: readonly Part[], provider: string): JsonObject[] {
  return parts.flatMap((part): JsonObject[] => {
    switch (part.type) {
      case 'text':
        return part.text === '' ? [] : [{ type: 'message', role: 'assistant', content: part.text }]
      case 'thinking':
        return [reasoningItem(part, provider) ?? []].flat()
      case 'redacted_thinking':
        return [] // another vendor's
      case 'call':
        return [{ type: 'function_call', call_id: part.id, name: part.name, arguments: part.arguments }]
      default:
        return refuse(part, 'an assistant message')
    }
  })
}

/** Results first, each its words as they are (BR-013); what else a user said follows them. */
function userItems(parts: readonly Part[]): JsonObject[] {
  const results: JsonObject[] = []
  const content: JsonObject[] = []
  for (const part of parts) {
    if (part.type === 'result')
      results.push({ type: 'function_call_output', call_id: part.callId, output: resultText(part) })
    else content.push(contentPart(part))
  }
  if (content.length === 0) return results
  const [only] = content
  const words = content.length === 1 && only?.type === 'input_text' ? only.text : undefined
  return [...results, { type: 'message', role: 'user', content: words ?? content }]
}

const chatFile = z.object({ file: z.object({ file_data: z.string(), filename: z.string().optional() }) })

function contentPart(part: Part): JsonObject {
  switch (part.type) {
    case 'text':
      return { type: 'input_text', text: part.text }
    case 'image':
      return { type: 'input_image', image_url: part.url, detail: part.detail ?? 'auto' }
    case 'other': {
      const file = part.dialect === 'chat' && part.kind === 'file' ? chatFile.safeParse(part.raw).data?.file : undefined
      if (file) return { type: 'input_file', ...file, filename: file.filename ?? 'file' }
      if (part.dialect === 'responses') return part.raw as JsonObject
      return refuse(part, 'a user message')
    }
    default:
      return refuse(part, 'a user message')
  }
}

function refuse(part: Part, place: string): never {
  if (part.type === 'other')
    throw new Fault('invalid_request', `'${part.kind}' cannot be sent to this model's provider`)
  throw new Fault('invalid_request', `${place} cannot hold '${part.type}' for this model's provider`)
}

/** The wire has no flag for a failed result, so its text says it (BR-008); what the gateway's own tools say already does. */
const resultText = ({ text, isError }: Part & { type: 'result' }): string =>
  isError && !text.startsWith('[tool error]') ? `Error: ${text}` : text

const OUTPUT_OF: ReadonlyMap<unknown, string> = new Map([
  ['function_call', 'function_call_output'],
  ['custom_tool_call', 'custom_tool_call_output'],
])
const OUTPUTS: ReadonlySet<unknown> = new Set(OUTPUT_OF.values())

/**
 * Every call with its output, and no output without its call, as the vendor demands (BR-050): a call whose output never
 * came gets one that says so, right behind its turn.
 */
function paired(turns: readonly JsonObject[][]): JsonObject[] {
  const answered = new Set(turns.flat().flatMap(({ type, call_id }) => (OUTPUTS.has(type) ? [call_id] : [])))
  const called = new Set<unknown>()
  return turns.flatMap((items) => {
    const kept = items.filter(({ type, call_id }) => {
      if (OUTPUT_OF.has(type)) called.add(call_id)
      // an output is taken once
      return !OUTPUTS.has(type) || called.delete(call_id)
    })
    const missing = items.flatMap(({ type, call_id }) => {
      const output = OUTPUT_OF.get(type)
      return output === undefined || answered.has(call_id)
        ? []
        : [{ type: output, call_id: call_id ?? null, output: NO_RESULT }]
    })
    return [...kept, ...missing]
  })
}

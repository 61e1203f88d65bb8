import { isObject } from '../../conversation/json.ts'
import type { Json, JsonObject, Message, Part } from '../../conversation/turn.ts'
import { filePartOf } from './files.ts'

/** A message of a Messages body, which has the form that `messagesRequest` asks. */
export function readMessage(wire: JsonObject): Message {
  const raw = { dialect: 'messages', value: wire } as const
  const blocks = blocksIn(wire.content)
  switch (wire.role) {
    case 'assistant':
      return { role: 'assistant', parts: blocks.flatMap(spoken), raw }
    case 'system':
      return { role: 'system', parts: blocks.flatMap(shown), raw }
    default: {
      const onlyResults = blocks.length > 0 && blocks.every(({ type }) => type === 'tool_result')
      return { role: onlyResults ? 'tool' : 'user', parts: blocks.flatMap(shown), raw }
    }
  }
}

const blocksIn = (content: Json | undefined): JsonObject[] => {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  return Array.isArray(content) ? content.filter(isObject) : []
}

function spoken(block: JsonObject): Part[] {
  switch (block.type) {
    case 'text':
      return [{ type: 'text', text: String(block.text) }]
    case 'thinking': {
      const { thinking, signature } = block
      return [{ type: 'thinking', text: String(thinking), ...(signature ? { signature: String(signature) } : {}) }]
    }
    case 'redacted_thinking':
      return [{ type: 'redacted_thinking', data: String(block.data) }]
    case 'tool_use':
      return [{ type: 'call', id: String(block.id), name: String(block.name), arguments: JSON.stringify(block.input) }]
    default:
      return [own(block)]
  }
}

/** What is shown to the model; of a result that holds more than text the rest follows it. */
function shown(block: JsonObject): Part[] {
  switch (block.type) {
    case 'text':
      return [{ type: 'text', text: String(block.text) }]
    case 'image':
      return [image(block)]
    case 'document':
      return document(block)
    case 'tool_reference':
      return [{ type: 'text', text: `The tool '${String(block.tool_name)}' was found.\n` }]
    case 'search_result':
      return [searchResult(block)]
    case 'container_upload':
      return [filePartOf(block) ?? own(block)]
    case 'tool_result': {
      const parts = blocksIn(block.content).flatMap(shown)
      const text = parts.flatMap((part) => (part.type === 'text' ? part.text : [])).join('')
      const result: Part = { type: 'result', callId: String(block.tool_use_id), text, isError: block.is_error === true }
      return [result, ...parts.filter(({ type }) => type !== 'text')]
    }
    default:
      return [own(block)]
  }
}

function image(block: JsonObject): Part {
  const source = block.source as JsonObject
  if (source.type === 'url') return { type: 'image', url: String(source.url) }
  if (source.type !== 'base64') return filePartOf(block) ?? own(block)
  const mediaType = String(source.media_type)
  return { type: 'image', url: `data:${mediaType};base64,${String(source.data)}`, mediaType }
}

/** A document of plain text is text to any model; one by its bytes has the form in which every wire knows files. */
function document(block: JsonObject): Part[] {
  const { source, title, context } = block
  if (!isObject(source)) return [own(block)]
  const head = [title, context].filter((line) => typeof line === 'string' && line !== '').join('\n')
  const above: Part[] = head === '' ? [] : [{ type: 'text', text: `${head}\n\n` }]
  if (source.type === 'text') return [...above, { type: 'text', text: String(source.data) }]
  if (source.type === 'content') return [...above, ...blocksIn(source.content).flatMap(shown)]
  if (source.type !== 'base64') return [filePartOf(block) ?? own(block)]
  const attached = {
    filename: typeof title === 'string' && title !== '' ? title : 'document.pdf',
    file_data: `data:${String(source.media_type)};base64,${String(source.data)}`,
  }
  return [{ type: 'other', dialect: 'chat', kind: 'file', raw: { type: 'file', file: attached } }]
}

function searchResult({ title, source, content }: JsonObject): Part {
  const text = blocksIn(content).map((block) => String(block.text ?? ''))
  return { type: 'text', text: [title, source, ...text].filter((line) => typeof line === 'string').join('\n') }
}

const own = (block: JsonObject): Part => ({
  type: 'other',
  dialect: 'messages',
  kind: String(block.type),
  raw: block,
})

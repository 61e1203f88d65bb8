import { Fault } from '@tollgate/contracts'
import { z } from 'zod'
import { isObject } from '../../conversation/json.ts'
import type { Json, JsonObject, Part } from '../../conversation/turn.ts'

/** What a user said and what tools gave back. `ids` are those of the calls before it, which its results follow in order. */
export function userBlocks(parts: readonly Part[], ids: readonly string[]): JsonObject[] {
  const free = [...ids]
  const results: JsonObject[] = []
  const content: JsonObject[] = []
  for (const part of parts) {
    switch (part.type) {
      case 'result':
        results.push({
          type: 'tool_result',
          tool_use_id: free.shift() ?? part.callId,
          ...(part.text !== '' && { content: part.text }),
          ...(part.isError && { is_error: true }),
        })
        break
      case 'text':
        if (part.text.trim() !== '') content.push({ type: 'text', text: part.text })
        break
      case 'image':
        content.push({ type: 'image', source: sourceOf(part.url, 'image', imageTypes) })
        break
      case 'other':
        content.push(otherBlock(part))
        break
      case 'thinking':
      case 'redacted_thinking':
      case 'call':
      case 'file':
        throw new Fault('invalid_request', `a user message cannot hold '${part.type}'`)
      default:
        part satisfies never
    }
  }
  return [...results, ...content]
}

const imageTypes = ['image/jpeg', 'image/png', 'image/gif', 'image/webp']

/** A `data:` URL becomes base64, any other is left to the vendor to fetch. */
function sourceOf(url: string, what: string, mediaTypes: readonly string[]): JsonObject {
  if (!url.startsWith('data:')) {
    if (/^https?:\/\//i.test(url)) return { type: 'url', url }
    throw new Fault('invalid_request', `the URL of an ${what} must begin with https:// or data:`)
  }
  const read = /^data:([\w.+-]+\/[\w.+-]+)(?:;[^,;]+)*;base64,(.*)$/s.exec(url)
  const mediaType = read?.[1]?.toLowerCase() ?? ''
  if (!read || !mediaTypes.includes(mediaType))
    throw new Fault('invalid_request', `an ${what} must be base64 of ${mediaTypes.join(', ')}`)
  return { type: 'base64', media_type: mediaType, data: read[2] ?? '' }
}

const chatFile = z.object({
  file: z.object({ file_data: z.string(), filename: z.string().optional() }),
})

/** Chat's `file` with its bytes is the vendor's `document`; an id of another vendor's store means nothing there. */
function otherBlock({ dialect, kind, raw }: { dialect: string; kind: string; raw: Json }): JsonObject {
  if (dialect === 'messages' && isObject(raw)) return raw
  const read = dialect === 'chat' && kind === 'file' ? chatFile.safeParse(raw).data : undefined
  if (!read) throw new Fault('invalid_request', `'${kind}' cannot be sent to this model's provider`)
  const { file_data: data, filename } = read.file
  const source = data.startsWith('data:text/plain')
    ? { type: 'text', media_type: 'text/plain', data: textOf(data) }
    : sourceOf(data, 'attached file', ['application/pdf'])
  return { type: 'document', source, ...(filename !== undefined && { title: filename }) }
}

function textOf(dataUrl: string): string {
  const comma = dataUrl.indexOf(',')
  const body = dataUrl.slice(comma + 1)
  if (dataUrl.slice(0, comma).endsWith(';base64')) return Buffer.from(body, 'base64').toString('utf8')
  try {
    return decodeURIComponent(body)
  } catch (error) {
    throw new Fault('invalid_request', 'an attached file is no valid data: URL', { cause: error })
  }
}

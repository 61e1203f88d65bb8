import { z } from 'zod'
import type { Json, JsonObject, Part } from '../../conversation/turn.ts'
import type { ContentPart } from './input-item.ts'

/** What a message or a tool's output says, in no dialect's terms. */
export function contentParts(content: string | ContentPart[]): Part[] {
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }]
  return content.map((part): Part => {
    if (isText(part)) return { type: 'text', text: part.text }
    // a refusal is words like any others to another model
    if (isRefusal(part)) return { type: 'text', text: part.refusal }
    if (isImage(part))
      return { type: 'image', url: part.image_url, ...(part.detail != null && { detail: part.detail }) }
    return filePart(part as JsonObject) ?? own(part.type, part as JsonObject)
  })
}

export const own = (kind: string, raw: Json): Part => ({ type: 'other', dialect: 'responses', kind, raw })

export const textOf = (parts: readonly Part[]): string =>
  parts.map((part) => (part.type === 'text' ? part.text : '')).join('')

const withBytes = z.object({
  type: z.literal('input_file'),
  file_data: z.string().min(1),
  filename: z.string().nullish(),
})
const withId = z.object({ type: z.enum(['input_file', 'input_image']), file_id: z.string().min(1).max(256) })

/** A file of this gateway's store (FI-11), or one with its bytes, in the form of Chat's: the other wires know that one. */
function filePart(part: JsonObject): Part | undefined {
  const { file_data, filename } = withBytes.safeParse(part).data ?? {}
  if (file_data !== undefined) {
    const raw = { type: 'file', file: { file_data, ...(filename != null && { filename }) } }
    return { type: 'other', dialect: 'chat', kind: 'file', raw }
  }
  const stored = withId.safeParse(part).data
  return stored && { type: 'file', id: stored.file_id }
}

const isText = (part: ContentPart): part is ContentPart & { text: string } =>
  part.type === 'input_text' || part.type === 'output_text' || part.type === 'text'
const isRefusal = (part: ContentPart): part is ContentPart & { refusal: string } => part.type === 'refusal'
const isImage = (part: ContentPart): part is ContentPart & { image_url: string; detail?: string | null } =>
  part.type === 'input_image' && typeof part.image_url === 'string' && part.image_url !== ''

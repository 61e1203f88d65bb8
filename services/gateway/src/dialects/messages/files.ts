import { isObject } from '../../conversation/json.ts'
import type { Json, JsonObject, Part } from '../../conversation/turn.ts'
import { userBlocks } from '../../models/anthropic/user.ts'

type FilePart = Part & { type: 'file' }

/** The file of this gateway's store that a block names (FI-11); an upload is for code alone (FI-14). */
export function filePartOf({ type, file_id: uploaded, source }: JsonObject): FilePart | undefined {
  if (type === 'container_upload')
    return typeof uploaded === 'string' ? { type: 'file', id: uploaded, forCode: true } : undefined
  if ((type !== 'document' && type !== 'image') || !isObject(source) || source.type !== 'file') return undefined
  return typeof source.file_id === 'string' ? { type: 'file', id: source.file_id } : undefined
}

/** A message with the contents of files in place of what names them, within results as well; all else stays as it was. */
export function filledMessage(value: JsonObject, contentOf: (part: FilePart) => Part[]): JsonObject {
  const { content } = value
  if (!Array.isArray(content)) return value
  return {
    ...value,
    content: content.flatMap((block): Json[] => (isObject(block) ? filledBlock(block, contentOf) : [block])),
  }
}

function filledBlock(block: JsonObject, contentOf: (part: FilePart) => Part[]): JsonObject[] {
  if (block.type === 'tool_result') return [filledMessage(block, contentOf)]
  const part = filePartOf(block)
  if (part === undefined) return [block]
  const blocks = userBlocks(contentOf(part), [])
  // what is to be cached up to here still is
  const { cache_control } = block
  return cache_control === undefined
    ? blocks
    : blocks.map((shown, at) => (at === blocks.length - 1 ? { ...shown, cache_control } : shown))
}

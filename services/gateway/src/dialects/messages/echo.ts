import { isObject } from '../../conversation/json.ts'
import type { Json, JsonObject } from '../../conversation/turn.ts'

/** Ids that only this gateway gives out: by them alone it knows again what it has shown. */
export const SERVER_TOOL_ID = 'otari_srvtoolu_'
export const MCP_TOOL_ID = 'otari_mcptoolu_'

/**
 * A history without the blocks that this gateway put into it, which no provider has run: a code pair becomes the words
 * that tell of it, other pairs go, and a message with nothing left goes with them. A text without text, as
 * some models stream it, would be refused when it came back, and goes as well.
 */
export function withoutEchoes(messages: JsonObject[]): JsonObject[] {
  return messages.flatMap((message) => {
    const { content } = message
    if (!Array.isArray(content) || content.length === 0) return [message]
    const blocks = content.filter(isObject)
    const ours = blocks.some((block) => isOurs(block) || isEmptyText(block) || hasOurCitation(block))
    if (!ours) return [message]
    const results = new Map<Json | undefined, JsonObject>()
    for (const block of blocks) if (!results.has(block.tool_use_id)) results.set(block.tool_use_id, block)
    const left = blocks.flatMap((block) => seenFromOutside(block, results))
    return left.length === 0 ? [] : [{ ...message, content: left }]
  })
}

const idOf = ({ id, tool_use_id: of }: JsonObject): string =>
  typeof of === 'string' ? of : typeof id === 'string' ? id : ''

const isOurs = (block: JsonObject): boolean =>
  block.type !== 'tool_use' &&
  block.type !== 'tool_result' &&
  (idOf(block).startsWith(SERVER_TOOL_ID) || idOf(block).startsWith(MCP_TOOL_ID))

const isEmptyText = ({ type, text }: JsonObject): boolean => type === 'text' && text === ''

/** A citation that this gateway made of another provider's: no vendor has its page, and the real one would say so. */
const isOurCitation = (citation: Json): boolean =>
  isObject(citation) && citation.type === 'web_search_result_location' && citation.encrypted_index === ''

const hasOurCitation = ({ type, citations }: JsonObject): boolean =>
  type === 'text' && Array.isArray(citations) && citations.some(isOurCitation)

function withoutOurCitations(block: JsonObject): JsonObject {
  if (!hasOurCitation(block)) return block
  const { citations, ...rest } = block
  const left = Array.isArray(citations) ? citations.filter((citation) => !isOurCitation(citation)) : []
  return left.length > 0 ? { ...rest, citations: left } : rest
}

function seenFromOutside(block: JsonObject, results: ReadonlyMap<Json | undefined, JsonObject>): JsonObject[] {
  if (isEmptyText(block)) return []
  if (!isOurs(block)) return [withoutOurCitations(block)]
  if (block.type !== 'server_tool_use' || block.name !== 'code_execution') return []
  return [{ type: 'text', text: codeText(block.input, results.get(block.id)?.content) }]
}

function codeText(input: Json | undefined, result: Json | undefined): string {
  const code = isObject(input) && typeof input.code === 'string' ? input.code : ''
  const fence = code.includes('```') ? '`````' : '```'
  return `I ran this code:\n${fence}python\n${code}\n${fence}\n${outputText(result)}`
}

function outputText(result: Json | undefined): string {
  if (!isObject(result)) return ''
  if (typeof result.error_code === 'string') return `It failed: ${result.error_code}\n`
  const { stdout, stderr, return_code: code } = result
  const sections = [
    ...(stdout ? [`stdout:\n${String(stdout)}`] : []),
    ...(stderr ? [`stderr:\n${String(stderr)}`] : []),
    ...(code ? [`exit code: ${String(code)}`] : []),
  ]
  return sections.join('\n')
}

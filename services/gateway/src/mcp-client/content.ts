import { clipBytes, TOOL_RESULT_BYTES, toolError } from '@tollgate/contracts'
import { z } from 'zod'

const text = z.looseObject({ type: z.literal('text'), text: z.string() })
const image = z.looseObject({ type: z.literal('image'), data: z.string(), mimeType: z.string().max(256) })
const resource = z.looseObject({ type: z.literal('resource'), resource: z.looseObject({ uri: z.string().max(8_192) }) })
const other = z.looseObject({ type: z.string().max(256) })

/** What a tool gives back. An older server's `toolResult`, which has no content, is none. */
export const callResult = z.looseObject({
  content: z.array(z.union([text, image, resource, other])).default([]),
  structuredContent: z.record(z.string(), z.unknown()).optional(),
  isError: z.boolean().optional(),
})
export type CallResult = z.output<typeof callResult>
type Content = CallResult['content'][number]

export const FAILED = 'MCP tool execution failed'
const CUT = '\n[Text truncated.]'

/** A result as the model reads it (M-06): text as it is, of anything else what it is. */
export function readResult({ content, structuredContent, isError }: CallResult): string {
  const said = content.map(told).join('\n').toWellFormed()
  if (isError) return toolError(said.trim() === '' ? FAILED : said)
  return content.length === 0 && structuredContent ? JSON.stringify(structuredContent).toWellFormed() : said
}

/** The same for a client that follows along (M-21): of a failure no word of the server's, of a resource no address. */
export function shownResult(result: CallResult): string {
  if (result.isError) return FAILED
  const said = result.content.map((part) => (is(resource, part) ? '[resource]' : told(part))).join('\n')
  return clipBytes(said, TOOL_RESULT_BYTES, CUT)
}

function told(part: Content): string {
  if (is(text, part)) return part.text
  if (is(image, part)) return `[image type=${part.mimeType} bytes_b64=${part.data.length}]`
  if (is(resource, part)) return `[resource uri=${part.resource.uri}]`
  return `[content type=${part.type}]`
}

/** A part of a known type that lacks what belongs to it is told by its type alone. */
const is = <T extends z.ZodType>(schema: T, part: Content): part is z.output<T> & Content =>
  schema.safeParse(part).success

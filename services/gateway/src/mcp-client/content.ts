import { clipBytes, TOOL_RESULT_BYTES, toolError } from '@tollgate/contracts'
import { z } from 'zod'
import { ServerFailure } from './failure.ts'

const text = z.looseObject({ type: z.literal('text'), text: z.string() })
const image = z.looseObject({ type: z.literal('image'), data: z.string(), mimeType: z.string().max(256) })
const resource = z.looseObject({ type: z.literal('resource'), resource: z.looseObject({ uri: z.string().max(8_192) }) })
const other = z.looseObject({ type: z.string().max(256) })

/** Parts of a result that are read; of more the model is told how many they are. */
const MOST_PARTS = 1_000

/** What a tool gives back. An older server's `toolResult`, which has no content, is none. */
export const callResult = z.looseObject({
  // read one by one, and so many of them at most: to check a hundred thousand would be work of the server's choosing
  content: z.array(z.unknown()).default([]),
  structuredContent: z.record(z.string(), z.unknown()).optional(),
  isError: z.boolean().optional(),
})
export type CallResult = z.output<typeof callResult>

export const FAILED = 'MCP tool execution failed'
const CUT = '\n[Text truncated.]'

/** A result as the model reads it (M-06): text as it is, of anything else what it is. */
export function readResult({ content, structuredContent, isError }: CallResult): string {
  const said = partsIn(content).join('\n').toWellFormed()
  if (isError) return toolError(said.trim() === '' ? FAILED : said)
  return content.length === 0 && structuredContent ? JSON.stringify(structuredContent).toWellFormed() : said
}

/** The same for a client that follows along (M-21): of a failure no word of the server's, of a resource no address. */
export function shownResult(result: CallResult): string {
  if (result.isError) return FAILED
  const said = partsIn(result.content, true).join('\n')
  return clipBytes(said, TOOL_RESULT_BYTES, CUT)
}

function partsIn(content: readonly unknown[], hidesAddresses = false): string[] {
  const parts = content.slice(0, MOST_PARTS).map((part) => told(part, hidesAddresses))
  return content.length > MOST_PARTS ? [...parts, `[${content.length - MOST_PARTS} more parts left out]`] : parts
}

/** A part of a known type that lacks what belongs to it is told by its type alone. */
function told(part: unknown, hidesAddresses: boolean): string {
  const { data: typed } = other.safeParse(part)
  if (typed === undefined) throw new ServerFailure('not_understood')
  switch (typed.type) {
    case 'text': {
      const { data } = text.safeParse(part)
      if (data) return data.text
      break
    }
    case 'image': {
      const { data } = image.safeParse(part)
      if (data) return `[image type=${data.mimeType} bytes_b64=${data.data.length}]`
      break
    }
    case 'resource': {
      const { data } = resource.safeParse(part)
      if (data) return hidesAddresses ? '[resource]' : `[resource uri=${data.resource.uri}]`
      break
    }
  }
  return `[content type=${typed.type}]`
}

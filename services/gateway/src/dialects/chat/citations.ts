import { z } from 'zod'
import type { JsonObject } from '../../conversation/turn.ts'

/** A citation of a web page, as a Messages upstream gives it beside the block that rests on it. */
const webCitation = z.object({
  type: z.literal('citation'),
  citation: z.object({ type: z.literal('web_search_result_location'), url: z.string(), title: z.string().nullish() }),
})

/** True for a citation of a page, as a Messages upstream gives it for the text it has just said. */
export const citesPage = (value: JsonObject): boolean => webCitation.safeParse(value).success

/** The same as Chat's `annotations` entry: the cited text is that of the whole block, by its place in the content (BR-048). */
export function annotation(value: JsonObject, start: number, end: number): JsonObject {
  const { url, title } = webCitation.parse(value).citation
  return { type: 'url_citation', url_citation: { url, title: title ?? '', start_index: start, end_index: end } }
}

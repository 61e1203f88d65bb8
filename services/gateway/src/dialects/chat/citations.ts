import { z } from 'zod'
import type { JsonObject } from '../../conversation/turn.ts'

/** A citation of a web page, as a Messages upstream gives it beside the block that rests on it. */
const ofMessages = z.object({
  type: z.literal('citation'),
  citation: z.object({ type: z.literal('web_search_result_location'), url: z.string(), title: z.string().nullish() }),
})

/** The same as a Responses upstream gives it, with the place of the cited words in their part. */
const ofResponses = z.object({
  type: z.literal('response.output_text.annotation.added'),
  annotation: z.object({
    type: z.literal('url_citation'),
    url: z.string(),
    title: z.string().nullish(),
    start_index: z.int().nonnegative(),
    end_index: z.int().nonnegative(),
  }),
})
const webCitation = z.union([ofMessages, ofResponses])

/** True for a citation of a page, as an upstream of another dialect gives it for the text it has just said. */
export const citesPage = (value: JsonObject): boolean => webCitation.safeParse(value).success

/**
 * The same as Chat's `annotations` entry, by its place in the content (BR-048): where its upstream says no place, the cited
 * text is that of the whole block, from `start` to `end`.
 */
export function annotation(value: JsonObject, start: number, end: number): JsonObject {
  const read = webCitation.parse(value)
  const { url, title } = 'citation' in read ? read.citation : read.annotation
  const cited =
    'citation' in read ? [start, end] : [start + read.annotation.start_index, start + read.annotation.end_index]
  const [start_index = start, end_index = end] = cited
  return { type: 'url_citation', url_citation: { url, title: title ?? '', start_index, end_index } }
}

import { z } from 'zod'
import type { ModelEvent } from '../../conversation/events.ts'
import type { JsonObject } from '../../conversation/turn.ts'

/** A citation of a web page, as a Messages upstream gives it beside the block that rests on it. */
const ofMessages = z.object({
  type: z.literal('citation'),
  citation: z.object({ type: z.literal('web_search_result_location'), url: z.string(), title: z.string().nullish() }),
})

/** The same as an upstream of this dialect gives it. */
const ofResponses = z.object({
  type: z.literal('response.output_text.annotation.added'),
  annotation: z.record(z.string(), z.unknown()),
})

/**
 * The annotation that an upstream's citation of a page becomes, made from where the cited words begin and end (BR-048); one
 * of this dialect stays as it came. Undefined for anything else that only an upstream's own dialect has a place for.
 */
export function citation({ dialect, value }: ModelEvent & { type: 'extra' }) {
  const own = dialect === 'responses' ? ofResponses.safeParse(value).data?.annotation : undefined
  if (own !== undefined) return () => own as JsonObject
  const cited = dialect === 'messages' ? ofMessages.safeParse(value).data?.citation : undefined
  if (cited === undefined) return undefined
  const { url, title } = cited
  return (start_index: number, end_index: number): JsonObject => ({
    type: 'url_citation',
    url,
    title: title ?? '',
    start_index,
    end_index,
  })
}

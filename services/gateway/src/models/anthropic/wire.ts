import { z } from 'zod'

const index = z.int().nonnegative()
const text = z.string().nullish()

/** A block as it starts, or whole. Types nobody here knows keep every member. */
const block = z.looseObject({
  type: z.string(),
  id: text,
  name: text,
  text,
  thinking: text,
  signature: text,
  data: text,
  input: z.unknown().optional(),
})
export type Block = z.infer<typeof block>

const delta = z.looseObject({
  type: z.string(),
  text,
  thinking: text,
  partial_json: text,
  signature: text,
  citation: z.unknown().optional(),
})

const ending = z.looseObject({ stop_reason: text })

/** `Message`, whole in an answer that is not streamed and without content at the start of one that is. */
export const message = z.looseObject({
  id: text,
  model: text,
  content: z.array(block).nullish(),
  stop_reason: text,
  usage: z.unknown().optional(),
})

/** Events of a stream. Those nobody here knows are passed over: the vendor reserves the right to add some. */
export const streamEvent = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('message_start'), message }),
  z.looseObject({ type: z.literal('content_block_start'), index, content_block: block }),
  z.looseObject({ type: z.literal('content_block_delta'), index, delta }),
  z.looseObject({ type: z.literal('content_block_stop'), index }),
  z.looseObject({ type: z.literal('message_delta'), delta: ending, usage: z.unknown().optional() }),
  z.looseObject({ type: z.literal('message_stop') }),
])
export type StreamEvent = z.infer<typeof streamEvent>

/** An answer that is not streamed, as the events of one that is. */
export function eventsOf(whole: z.infer<typeof message>): StreamEvent[] {
  const { content, ...head } = whole
  const blocks = (content ?? []).flatMap((content_block, index): StreamEvent[] => [
    { type: 'content_block_start', index, content_block },
    { type: 'content_block_stop', index },
  ])
  const { stop_reason, stop_sequence, stop_details } = whole
  const ending = {
    stop_reason,
    ...(stop_sequence != null && { stop_sequence }),
    ...(stop_details != null && { stop_details }),
  }
  return [
    { type: 'message_start', message: { ...head, content: [] } },
    ...blocks,
    { type: 'message_delta', delta: ending, usage: whole.usage },
    { type: 'message_stop' },
  ]
}

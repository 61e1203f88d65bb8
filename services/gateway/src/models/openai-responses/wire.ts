import { z } from 'zod'

const text = z.string().nullish().catch(undefined)
const place = z.int().nonnegative().nullish().catch(undefined)

/** An item of the output: its kind is told by its type, and every member is kept. */
export const outputItem = z.looseObject({ type: z.string().min(1), id: text })
export type OutputItem = z.infer<typeof outputItem>

/** `response`, whole in an answer that is not streamed and as far as it has come in the events of one that is. */
export const responseObject = z.looseObject({
  id: text,
  created_at: z.number().nullish().catch(undefined),
  model: text,
  status: text,
  output: z.array(outputItem).nullish(),
  error: z.looseObject({ code: text, message: text }).nullish().catch(undefined),
  incomplete_details: z.looseObject({ reason: text }).nullish().catch(undefined),
  usage: z.unknown().optional(),
})
export type ResponseObject = z.infer<typeof responseObject>

/** An event of a stream, as far as any kind of event is read here. */
export const streamEvent = z.looseObject({
  type: z.string(),
  output_index: place,
  item_id: text,
  content_index: place,
  summary_index: place,
  delta: text,
  text,
  refusal: text,
  arguments: text,
  name: text,
  annotation: z.unknown().optional(),
  item: outputItem.optional(),
  response: responseObject.optional(),
})
export type StreamEvent = z.infer<typeof streamEvent>

/** A part of a message, and of what a model thought. */
export const contentPart = z.looseObject({
  type: z.string(),
  text,
  refusal: text,
  annotations: z.array(z.unknown()).nullish(),
})
export const contentOf = (value: unknown): z.infer<typeof contentPart>[] => z.array(contentPart).catch([]).parse(value)

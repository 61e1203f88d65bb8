import { z } from 'zod'

const text = z.string().nullish()

/** Arguments are JSON text; some servers send the object itself. */
const argumentsText = z.union([
  z.string(),
  z.record(z.string(), z.unknown()).transform((value) => JSON.stringify(value)),
])

const toolCall = z.looseObject({
  index: z.int().nullish(),
  id: text,
  type: text,
  function: z.looseObject({ name: text, arguments: argumentsText.nullish() }).nullish(),
  custom: z.looseObject({ name: text, input: text }).nullish(),
})
export type ToolCallDelta = z.infer<typeof toolCall>

/** Content as parts: servers of reasoning models put thinking there. */
const contentPart = z.union([
  z.looseObject({ type: z.literal('text'), text: z.string() }),
  z.looseObject({ type: z.literal('thinking'), thinking: z.union([z.string(), z.array(z.looseObject({ text }))]) }),
])

/** A chunk's `delta` and a whole answer's `message` differ in nothing that is read here. */
const delta = z.looseObject({
  role: text,
  content: z.union([z.string(), z.array(contentPart)]).nullish(),
  refusal: text,
  reasoning_content: text,
  reasoning: text,
  tool_calls: z.array(toolCall).nullish(),
})
export type ChatDelta = z.infer<typeof delta>

const choice = z.looseObject({
  index: z.int().nullish(),
  delta: delta.nullish(),
  message: delta.nullish(),
  finish_reason: text,
})
export type ChatChoice = z.infer<typeof choice>

/** `chat.completion.chunk` and `chat.completion` alike, as leniently as servers in the field need it. */
export const chatChunk = z.looseObject({
  id: text,
  created: z.number().nullish(),
  model: text,
  choices: z.array(choice).nullish(),
  usage: z.unknown().optional(),
})
export type ChatChunk = z.infer<typeof chatChunk>

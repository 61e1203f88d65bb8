import { z } from 'zod'
import { serverMembers } from '../../mcp-client/declared.ts'
import { list } from '../../validation.ts'

const text = z.string()
const optionalText = z.string().nullish()
const flag = z.boolean().nullish()

const known: ReadonlySet<string> = new Set(['text', 'image_url', 'file'])
const part = z.union(
  [
    z.looseObject({ type: z.literal('text'), text }),
    z.looseObject({ type: z.literal('image_url'), image_url: z.looseObject({ url: text.min(1) }) }),
    z.looseObject({
      type: z.literal('file'),
      file: z.union([z.looseObject({ file_id: text.min(1).max(256) }), z.looseObject({ file_data: text.min(1) })]),
    }),
    z.looseObject({ type: text }).refine(({ type }) => !known.has(type), 'lacks what a part of its type must have'),
  ],
  { error: 'must be a content part: an object with a type and what belongs to it' },
)
const content = z.union([text, list(part)], { error: 'must be a string or a list of content parts' })

const toolCall = z.union(
  [
    z.looseObject({
      id: text.min(1),
      type: z.literal(['function', 'builtin_function']).optional(),
      function: z.looseObject({ name: text.min(1), arguments: text }),
    }),
    z.looseObject({ id: text.min(1), type: z.literal('custom') }),
  ],
  { error: 'must be a tool call with an id and a function that has a name and arguments as text' },
)

const message = z.discriminatedUnion('role', [
  z.looseObject({ role: z.literal(['system', 'developer']), content }),
  z.looseObject({ role: z.literal('user'), content }),
  z.looseObject({
    role: z.literal('assistant'),
    content: content.nullish(),
    refusal: optionalText,
    reasoning_content: optionalText,
    tool_calls: list(toolCall).nullish(),
    function_call: z.looseObject({ name: text }).nullish(),
    audio: z.looseObject({}).nullish(),
  }),
  z.looseObject({ role: z.literal('tool'), content, tool_call_id: text.min(1) }),
  z.looseObject({ role: z.literal('function'), content: text.nullish(), name: text }),
])
export type ChatMessage = z.infer<typeof message>
export type ChatPart = z.infer<typeof part>

const tool = z
  .looseObject({
    type: text.min(1).optional(),
    function: z
      .looseObject({ name: text.min(1), description: optionalText, parameters: z.unknown().optional() })
      .optional(),
    code_execution: z.unknown().optional(),
  })
  .refine(({ type, code_execution: bare }) => type !== undefined || bare !== undefined, {
    path: ['type'],
    error: 'is required',
  })
  .refine((entry) => entry.type !== 'function' || entry.function !== undefined, {
    path: ['function'],
    error: 'is required for a tool of type function',
  })
export type ChatTool = z.infer<typeof tool>

const toolChoice = z.union(
  [
    z.enum(['auto', 'none', 'required']),
    z.looseObject({ type: z.literal('function'), function: z.looseObject({ name: text.min(1) }) }),
    z.looseObject({ type: text.refine((type) => type !== 'function' && type !== '') }),
  ],
  { error: 'must be auto, none, required, or an object that names a tool' },
)

/** The body of `POST /chat/completions`, as far as anything here reads it; members not named here pass (T-26). */
export const chatRequest = z.looseObject({
  model: text.min(1).max(512),
  messages: list(message, 1),
  stream: flag,
  stream_options: z.looseObject({ include_usage: flag }).nullish(),
  tools: list(tool).nullish(),
  tool_choice: toolChoice.nullish(),
  parallel_tool_calls: flag,
  max_tokens: z.int().positive().nullish(),
  max_completion_tokens: z.int().positive().nullish(),
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  n: z.int().positive().nullish(),
  stop: z.union([text, list(text)], { error: 'must be a string or a list of strings' }).nullish(),
  user: optionalText,
  max_tool_iterations: z.int().min(1).max(25).nullish(),
  tools_header: z.string().max(4_000).nullish(),
  ...serverMembers,
})
export type ChatRequest = z.infer<typeof chatRequest>

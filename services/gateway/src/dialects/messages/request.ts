import { z } from 'zod'
import { serverMembers } from '../../mcp-client/declared.ts'
import { list } from '../../validation.ts'

const text = z.string()
const optionalText = z.string().nullish()
const flag = z.boolean().nullish()

/** What a block of a type that is read here must have; of any other type only the name is asked. */
const blocks: Record<string, z.ZodType> = {
  text: z.looseObject({ text }),
  thinking: z.looseObject({ thinking: text, signature: optionalText }),
  redacted_thinking: z.looseObject({ data: text }),
  tool_use: z.looseObject({ id: text.min(1), name: text.min(1), input: z.record(text, z.unknown()) }),
  tool_result: z.looseObject({
    tool_use_id: text.min(1),
    content: z
      .union([text, z.array(z.looseObject({ type: text.min(1) }))], { error: 'must be a string or a list of blocks' })
      .nullish(),
    is_error: flag,
  }),
  image: z.looseObject({ source: z.looseObject({ type: text }) }),
  document: z.looseObject({ source: z.looseObject({ type: text }) }),
}

const block = z.looseObject({ type: text.min(1) }).superRefine((value, context) => {
  const known = Object.hasOwn(blocks, value.type) ? blocks[value.type] : undefined
  for (const { path, message } of known?.safeParse(value).error?.issues ?? [])
    context.addIssue({ code: 'custom', path, message })
})
const content = z.union([text, list(block)], { error: 'must be a string or a list of content blocks' })

const message = z.looseObject({ role: z.enum(['user', 'assistant', 'system']), content })

const tool = z
  .looseObject({
    type: text.min(1).nullish(),
    name: text.min(1).optional(),
    description: optionalText,
    input_schema: z.record(text, z.unknown()).optional(),
    code_execution: z.unknown().optional(),
  })
  .superRefine(({ type, name, input_schema: schema, code_execution: bare }, context) => {
    if ((type != null && type !== 'custom') || (name === undefined && bare !== undefined)) return
    for (const [member, value] of Object.entries({ name, input_schema: schema }))
      if (value === undefined)
        context.addIssue({ code: 'custom', path: [member], message: 'is required for a tool of the client’s own' })
  })
export type MessagesTool = z.infer<typeof tool>

const toolChoice = z.union(
  [
    z.looseObject({ type: z.enum(['auto', 'any', 'none']), disable_parallel_tool_use: flag }),
    z.looseObject({ type: z.literal('tool'), name: text.min(1), disable_parallel_tool_use: flag }),
    z.looseObject({ type: text.refine((type) => !['auto', 'any', 'none', 'tool', ''].includes(type)) }),
  ],
  { error: 'must be an object of type auto, any, none or tool, or one that names a tool' },
)
export type MessagesToolChoice = z.infer<typeof toolChoice>

/** What both routes read; members not named here pass (T-26). */
const conversation = {
  model: text.min(1).max(512),
  messages: list(message, 1),
  system: z.union([text, list(block)], { error: 'must be a string or a list of text blocks' }).nullish(),
  tools: list(tool).nullish(),
  tool_choice: toolChoice.nullish(),
  metadata: z.looseObject({ user_id: optionalText }).nullish(),
  ...serverMembers,
  betas: z.array(text).max(100).nullish(),
}

/** The body of `POST /messages`, as far as anything here reads it. */
export const messagesRequest = z.looseObject({
  ...conversation,
  max_tokens: z.int().positive(),
  stream: flag,
  temperature: z.number().nullish(),
  top_p: z.number().nullish(),
  stop_sequences: list(text).nullish(),
  max_tool_iterations: z.int().min(1).max(25).nullish(),
  tools_header: z.string().max(4_000).nullish(),
})

/** The body of `POST /messages/count_tokens`. */
export const countTokensRequest = z.looseObject(conversation)

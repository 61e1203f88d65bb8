import { z } from 'zod'
import { serverMembers } from '../../mcp-client/declared.ts'
import { list } from '../../validation.ts'
import { inputItem } from './input-item.ts'

const text = z.string()
const optionalText = z.string().nullish()
const flag = z.boolean().nullish()

const tool = z
  .looseObject({
    type: text.min(1).optional(),
    name: optionalText,
    description: optionalText,
    parameters: z.unknown().optional(),
    code_execution: z.unknown().optional(),
  })
  .refine(({ type, code_execution: bare }) => type !== undefined || bare !== undefined, {
    path: ['type'],
    error: 'is required',
  })
  .refine(({ type, name }) => type !== 'function' || (typeof name === 'string' && name !== ''), {
    path: ['name'],
    error: 'is required for a tool of type function',
  })
export type ResponsesTool = z.infer<typeof tool>

const toolChoice = z.union(
  [
    z.enum(['auto', 'none', 'required']),
    z.looseObject({ type: z.literal('function'), name: text.min(1) }),
    z.looseObject({ type: text.refine((type) => type !== 'function' && type !== '') }),
  ],
  { error: 'must be auto, none, required, or an object that names a tool' },
)

/** The body of `POST /responses`, as far as anything here reads it; members not named here pass (T-26). */
export const responsesRequest = z
  .looseObject({
    model: text.min(1).max(512),
    input: z.union([text, list(inputItem)], { error: 'must be a string or a list of items' }).nullish(),
    instructions: optionalText,
    previous_response_id: z.string().min(1).max(128).nullish(),
    store: flag,
    stream: flag,
    tools: list(tool).nullish(),
    tool_choice: toolChoice.nullish(),
    parallel_tool_calls: flag,
    max_tool_calls: z.int().positive().nullish(),
    max_output_tokens: z.int().positive().nullish(),
    temperature: z.number().nullish(),
    top_p: z.number().nullish(),
    include: list(text).nullish(),
    text: z.looseObject({ format: z.looseObject({ type: text }).nullish(), verbosity: optionalText }).nullish(),
    reasoning: z.looseObject({ effort: optionalText, summary: optionalText }).nullish(),
    truncation: z.enum(['auto', 'disabled']).nullish(),
    metadata: z.record(z.string(), z.string()).nullish(),
    user: optionalText,
    background: flag,
    conversation: z.unknown().optional(),
    prompt: z.unknown().optional(),
    max_tool_iterations: z.int().min(1).max(25).nullish(),
    tools_header: z.string().max(4_000).nullish(),
    ...serverMembers,
  })
  .refine(({ input, previous_response_id: previous }) => (input ?? previous) != null, {
    path: ['input'],
    error: 'is required without a previous_response_id',
  })
export type ResponsesRequest = z.infer<typeof responsesRequest>

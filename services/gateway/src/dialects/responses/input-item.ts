import { z } from 'zod'
import { list } from '../../validation.ts'

const text = z.string()
const id = z.string().min(1)

const part = z.union(
  [
    z.looseObject({ type: z.literal(['input_text', 'output_text', 'text']), text }),
    z.looseObject({ type: z.literal('refusal'), refusal: text }),
    z.looseObject({
      type: z.literal('input_image'),
      image_url: text.nullish(),
      file_id: text.nullish(),
      detail: text.nullish(),
    }),
    z
      .looseObject({ type: text.min(1) })
      .refine(({ type }) => !ownForms.has(type), 'lacks what a part of its type must have'),
  ],
  { error: 'must be a content part: an object with a type and what belongs to it' },
)
const ownForms: ReadonlySet<string> = new Set(['input_text', 'output_text', 'text', 'refusal', 'input_image'])
export type ContentPart = z.infer<typeof part>

const content = z.union([text, list(part)], { error: 'must be a string or a list of content parts' })

const message = z.looseObject({
  type: z.literal('message').default('message'),
  role: z.enum(['user', 'assistant', 'system', 'developer']),
  content,
})
const functionCall = z.looseObject({ type: z.literal('function_call'), call_id: id, name: id, arguments: text })
const functionCallOutput = z.looseObject({ type: z.literal('function_call_output'), call_id: id, output: content })
const customToolCall = z.looseObject({ type: z.literal('custom_tool_call'), call_id: id, name: id, input: text })
const customToolCallOutput = z.looseObject({ type: z.literal('custom_tool_call_output'), call_id: id, output: content })
const reasoning = z.looseObject({
  type: z.literal('reasoning'),
  summary: z.array(z.looseObject({ text: text.optional() })).default([]),
  encrypted_content: text.nullish(),
})
const reference = z.looseObject({ type: z.literal('item_reference').default('item_reference'), id })
const codeInterpreterCall = z.looseObject({
  type: z.literal('code_interpreter_call'),
  id: text.nullish(),
  code: text.nullish(),
  outputs: z.array(z.looseObject({ type: text, logs: text.optional() })).nullish(),
})
/** An item whose form only a provider of this dialect knows. */
const other = z.looseObject({ type: id })

const forms = {
  message,
  function_call: functionCall,
  function_call_output: functionCallOutput,
  custom_tool_call: customToolCall,
  custom_tool_call_output: customToolCallOutput,
  reasoning,
  item_reference: reference,
  code_interpreter_call: codeInterpreterCall,
}
type Forms = typeof forms
type Known = { [F in keyof Forms]: { form: F; item: z.output<Forms[F]> } }[keyof Forms]

export type InputItem = Known | { form: 'other'; item: z.output<typeof other> }
export type ItemOf<F extends InputItem['form']> = Extract<InputItem, { form: F }>['item']

/** An item of `input`: told by its type alone, so that what is wrong with it is told of the form that was meant. */
export const inputItem = z
  .looseObject({ type: text.nullish(), role: z.unknown().optional() }, 'must be an item: an object with a type')
  .transform((given, context): InputItem => {
    const { type: _absent, ...rest } = given
    const type = given.type ?? (given.role === undefined ? 'item_reference' : 'message')
    const form = Object.hasOwn(forms, type) ? (type as keyof Forms) : 'other'
    const read = (form === 'other' ? other : forms[form]).safeParse({ ...rest, type })
    if (read.success) return { form, item: read.data } as InputItem
    for (const issue of read.error.issues) {
      context.issues.push({ ...issue, input: undefined, continue: true } as z.core.$ZodRawIssue)
    }
    return z.NEVER
  })

import { Fault } from '@tollgate/contracts'
import { z } from 'zod'
import type { Json, JsonObject } from '../conversation/turn.ts'

/** Members that the turn itself holds, that this gateway acts on, or that steer another vendor's bookkeeping alone. */
const HELD = new Set([
  'background',
  // what a coding agent tells the vendor of itself
  'client_metadata',
  'conversation',
  'include',
  'input',
  'instructions',
  'max_output_tokens',
  'max_tool_calls',
  'metadata',
  'model',
  'parallel_tool_calls',
  'prompt',
  'store',
  'stream',
  'stream_options',
  'temperature',
  'tool_choice',
  'tools',
  'top_p',
  // what `auto` leaves out of a history is for the provider of such a thing to choose; nothing here is left out
  'truncation',
  'user',
])

/** Members without an equivalent on any other wire. */
const OWN = new Set(['context_management', 'moderation', 'multi_agent'])

const textMember = z.looseObject({
  format: z
    .discriminatedUnion('type', [
      z.looseObject({ type: z.literal('text') }),
      z.looseObject({ type: z.literal('json_object') }),
      z.looseObject({ type: z.literal('json_schema'), name: z.string() }),
    ])
    .nullish(),
  verbosity: z.string().nullish(),
})

/** How members of Chat that an error may name are called here. */
export const responsesNames: ReadonlyMap<string, string> = new Map([
  ['response_format', 'text.format'],
  ['reasoning_effort', 'reasoning.effort'],
  ['verbosity', 'text.verbosity'],
])

/**
 * The top-level members of a Responses body as Chat has them, beside those the turn holds. What has no equivalent is a
 * 400 that names it; what nobody here knows passes under its own name, for the wire to judge.
 */
export function chatMembersOf(body: JsonObject): JsonObject {
  const members: JsonObject = {}
  for (const [name, value] of Object.entries(body)) {
    if (value === null || HELD.has(name)) continue
    if (name === 'text') Object.assign(members, textMembers(value))
    else if (name === 'reasoning') Object.assign(members, reasoningMembers(value))
    else if (OWN.has(name) || (name === 'top_logprobs' && value !== 0)) throw notCarried(name)
    else if (name !== 'top_logprobs') members[name] = value
  }
  if (includes(body.include, 'message.output_text.logprobs')) throw notCarried('message.output_text.logprobs')
  return members
}

function textMembers(value: Json): JsonObject {
  const { format, verbosity } = textMember.safeParse(value).data ?? {}
  if (format === undefined && verbosity === undefined && Object.keys(value as JsonObject).length > 0)
    throw notCarried('text.format')
  return { ...(verbosity != null && { verbosity }), ...(format != null && formatMember(format as JsonObject)) }
}

function formatMember({ type, ...schema }: JsonObject): JsonObject {
  if (type === 'text') return {}
  return { response_format: type === 'json_object' ? { type } : { type: 'json_schema', json_schema: schema } }
}

/** How much is told of the reasoning is the wire's to say; how much of it there is, the client's. */
function reasoningMembers(value: Json): JsonObject {
  const { effort } = z.looseObject({ effort: z.string().nullish() }).parse(value)
  return effort == null ? {} : { reasoning_effort: effort }
}

const includes = (list: Json | undefined, value: string): boolean => Array.isArray(list) && list.includes(value)

const notCarried = (name: string): Fault =>
  new Fault('invalid_request', `'${name}' cannot be sent to this model's provider`)

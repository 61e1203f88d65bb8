import { Fault } from '@tollgate/contracts'
import { z } from 'zod'
import { isObject } from '../conversation/json.ts'
import type { Json, JsonObject } from '../conversation/turn.ts'

/**
 * Members that the turn itself holds, that this gateway acts on, or that change nothing about what is answered: they
 * steer the vendor's cache and its bookkeeping, or configure a beta of its API, which goes with its header.
 */
const HELD = new Set([
  'cache_control',
  'context_management',
  'diagnostics',
  'max_tokens',
  'messages',
  'metadata',
  'model',
  'stop_sequences',
  'stream',
  'system',
  'temperature',
  'tool_choice',
  'tools',
  'top_p',
])

/** Members without an equivalent, accepted while they ask for nothing. */
const ASKS_FOR_NOTHING: Record<string, (value: Json) => boolean> = {
  inference_geo: (value) => value === 'global',
  speed: (value) => value === 'standard',
}

/** Members with an equivalent. */
const TRANSLATED: Record<string, (value: Json) => JsonObject> = {
  output_config: outputMembers,
  output_format: (value) => formatMember('output_format', value),
  service_tier: (value) => {
    if (value === 'auto') return {}
    if (value === 'standard_only') return { service_tier: 'default' }
    throw notCarried('service_tier')
  },
  thinking: thinkingMember,
}

/**
 * The top-level members of a Messages body as Chat has them, beside those the turn holds. The tables above say what
 * becomes of each; one that is in none of them, or cannot be carried with its value, is a 400 that names it.
 */
export function chatMembersOfMessages(body: JsonObject): JsonObject {
  const members: JsonObject = {}
  for (const [name, value] of Object.entries(body)) {
    if (value === null || HELD.has(name)) continue
    const translate = Object.hasOwn(TRANSLATED, name) ? TRANSLATED[name] : undefined
    if (translate) {
      // how much effort is wanted is said more plainly than how many tokens thinking may take
      const translated = translate(value)
      Object.assign(members, name === 'thinking' ? { ...translated, ...members } : translated)
    } else if (!Object.hasOwn(ASKS_FOR_NOTHING, name) || !ASKS_FOR_NOTHING[name]?.(value)) {
      throw notCarried(name)
    }
  }
  return members
}

const outputConfig = z.strictObject({
  effort: z.enum(['low', 'medium', 'high', 'xhigh', 'max']).nullish(),
  format: z.unknown().optional(),
})

function outputMembers(value: Json): JsonObject {
  const read = outputConfig.safeParse(value)
  if (!read.success) throw notCarried(`output_config${read.error.issues[0]?.path[0] === 'effort' ? '.effort' : ''}`)
  const { effort, format } = read.data
  return {
    ...(effort != null && { reasoning_effort: effort === 'max' ? 'xhigh' : effort }),
    ...(format != null && formatMember('output_config.format', format as Json)),
  }
}

const jsonFormat = z.object({ type: z.literal('json_schema'), schema: z.record(z.string(), z.unknown()) })

function formatMember(name: string, value: Json): JsonObject {
  const read = jsonFormat.safeParse(value)
  if (!read.success) throw notCarried(name)
  const schema = read.data.schema as JsonObject
  return {
    response_format: { type: 'json_schema', json_schema: { name: 'answer', schema, strict: isClosed(schema) } },
  }
}

/** Whether the other vendor enforces the schema: it wants every object closed, and every member of it required. */
function isClosed(schema: Json | undefined): boolean {
  if (Array.isArray(schema)) return schema.every(isClosed)
  if (!isObject(schema)) return true
  const { properties, required } = schema
  const names = isObject(properties) ? Object.keys(properties) : []
  const wanted = Array.isArray(required) ? required : []
  if (schema.type === 'object' || isObject(properties)) {
    if (schema.additionalProperties !== false || names.some((name) => !wanted.includes(name))) return false
  }
  return Object.values(schema).every(isClosed)
}

const thinking = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('enabled'), budget_tokens: z.number() }),
  z.looseObject({ type: z.enum(['adaptive', 'disabled', 'between_tools']) }),
])

/**
 * A budget becomes the effort it is about good for. Where the model shall decide by itself, or not think, nothing is
 * said: other vendors' models take no word on thinking unless they are made for it.
 */
function thinkingMember(value: Json): JsonObject {
  const read = thinking.safeParse(value).data
  if (!read) throw notCarried('thinking')
  if (read.type !== 'enabled') return {}
  const { budget_tokens: budget } = read
  return { reasoning_effort: budget < 4_096 ? 'low' : budget < 16_384 ? 'medium' : 'high' }
}

const notCarried = (name: string): Fault =>
  new Fault('invalid_request', `'${name.slice(0, 64)}' cannot be sent to this model's provider`)

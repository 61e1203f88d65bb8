import { z } from 'zod'
import { isObject } from '../../conversation/json.ts'
import type { Json, JsonObject } from '../../conversation/turn.ts'
import { asksForNothing, membersInTheTurn, notCarried } from '../chat-members.ts'

/** Members that change nothing about what is answered, or that are this gateway's to decide. */
const LEFT_OUT = new Set(['prediction', 'seed', 'store'])

/** Members that both APIs of the vendor know under one name. */
const SHARED = new Set([
  'metadata',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'safety_identifier',
  'service_tier',
])

const responseFormat = z.discriminatedUnion('type', [
  z.object({ type: z.literal(['text', 'json_object']) }),
  z.object({ type: z.literal('json_schema'), json_schema: z.looseObject({ name: z.string() }) }),
])

/** Members with an equivalent, each with its share of it. */
const TRANSLATED: Record<string, (value: Json, said: string) => { reasoning?: JsonObject; text?: JsonObject }> = {
  reasoning_effort: (effort) => ({ reasoning: { effort } }),
  verbosity: (verbosity) => ({ text: { verbosity } }),
  response_format: (value, said) => {
    const format = responseFormat.safeParse(value).data
    if (!format) throw notCarried(said)
    if (format.type !== 'json_schema') return { text: { format: { type: format.type } } }
    const strict = format.json_schema.strict ?? false
    return { text: { format: { ...(format.json_schema as JsonObject), type: 'json_schema', strict: strict as Json } } }
  },
}

/**
 * The top-level members of a Chat body beside those the turn holds, as the Responses API has them. What has no equivalent,
 * and what nobody here knows, is a 400 that names it, by what `names` says that the client calls it.
 */
export function carriedMembers(body: JsonObject, names: ReadonlyMap<string, string> = new Map()): JsonObject {
  const carried: JsonObject = {}
  for (const [name, value] of Object.entries(body)) {
    if (value === null || membersInTheTurn.has(name) || LEFT_OUT.has(name)) continue
    const said = names.get(name) ?? name
    const translate = Object.hasOwn(TRANSLATED, name) ? TRANSLATED[name] : undefined
    if (translate) {
      for (const [member, share] of Object.entries(translate(value, said)))
        carried[member] = { ...objectOr(carried[member]), ...share }
    } else if (SHARED.has(name)) {
      carried[name] = value
    } else if (!asksForNothing(name, value)) {
      throw notCarried(said)
    }
  }
  return carried
}

const objectOr = (value: Json | undefined): JsonObject => (isObject(value) ? value : {})

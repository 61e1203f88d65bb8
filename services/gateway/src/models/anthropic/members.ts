import { z } from 'zod'
import type { Json, JsonObject } from '../../conversation/turn.ts'
import { asksForNothing, membersInTheTurn, notCarried } from '../chat-members.ts'
import { outputSchema } from './output-schema.ts'

/**
 * Members that change nothing about what is answered, and are left out: they steer another vendor's bookkeeping, caching
 * or speed. `seed` is a wish that no vendor promises to keep.
 */
const LEFT_OUT = new Set([
  'metadata',
  'prediction',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'safety_identifier',
  'seed',
  'store',
])

/** Members the vendor itself knows under the same name; a Chat client may use them as the vendor documents them. */
const THE_VENDORS_OWN = new Set(['cache_control', 'inference_geo', 'service_tier', 'speed', 'thinking', 'top_k'])

/** Members with an equivalent; the output configuration is shared, so each gives its share of it. */
const TRANSLATED: Record<string, (value: Json, said: string) => { output_config?: JsonObject; thinking?: JsonObject }> =
  {
    reasoning_effort: (value, said) => {
      if (value === 'none') return { thinking: { type: 'disabled' } }
      const effort = value === 'minimal' ? 'low' : value
      if (!['low', 'medium', 'high', 'xhigh', 'max'].includes(String(effort))) throw notCarried(said)
      return { output_config: { effort: String(effort) } }
    },
    response_format: (value, said) => {
      const format = responseFormat.safeParse(value).data
      if (format?.type === 'text') return {}
      if (!format) throw notCarried(said, ' unless it is text, or json_schema with a schema')
      return {
        output_config: { format: { type: 'json_schema', schema: outputSchema(format.json_schema.schema as Json) } },
      }
    },
  }

const responseFormat = z.discriminatedUnion('type', [
  z.object({ type: z.literal('text') }),
  z.object({ type: z.literal('json_schema'), json_schema: z.object({ schema: z.record(z.string(), z.unknown()) }) }),
])

/**
 * The top-level members of a Chat body beside those the turn holds, as the Messages API has them. The tables above say
 * what becomes of each; one that is in none of them, or cannot be carried with its value, is a 400 that names it, by
 * what `names` says that the client calls it.
 */
export function carriedMembers(body: JsonObject, names: ReadonlyMap<string, string> = new Map()): JsonObject {
  const carried: JsonObject = {}
  for (const [name, value] of Object.entries(body)) {
    if (value === null || membersInTheTurn.has(name) || LEFT_OUT.has(name)) continue
    const said = names.get(name) ?? name
    const translate = Object.hasOwn(TRANSLATED, name) ? TRANSLATED[name] : undefined
    if (translate) {
      const { output_config, thinking } = translate(value, said)
      if (output_config)
        carried.output_config = { ...(carried.output_config as JsonObject | undefined), ...output_config }
      if (thinking) carried.thinking ??= thinking
    } else if (THE_VENDORS_OWN.has(name)) {
      carried[name] = name === 'service_tier' ? serviceTier(value) : value
    } else if (!asksForNothing(name, value)) {
      throw notCarried(said)
    }
  }
  return carried
}

function serviceTier(value: Json): Json {
  const tiers: Record<string, string> = { auto: 'auto', default: 'standard_only', standard_only: 'standard_only' }
  const tier = typeof value === 'string' && Object.hasOwn(tiers, value) ? tiers[value] : undefined
  if (tier === undefined) throw notCarried('service_tier', ' unless it is auto or default')
  return tier
}

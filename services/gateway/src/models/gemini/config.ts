import { z } from 'zod'
import { isObject } from '../../conversation/json.ts'
import type { Json, JsonObject, Turn } from '../../conversation/turn.ts'
import { asksForNothing, membersInTheTurn, messagesNames, notCarried } from '../chat-members.ts'
import { chatMembersOfMessages } from '../messages-members.ts'
import { chatMembersOf, responsesNames } from '../responses-members.ts'
import { geminiSchema } from './schema.ts'

/** Members that change nothing about what is answered: they steer another vendor's bookkeeping, caching or speed. */
const LEFT_OUT = new Set([
  'metadata',
  'prediction',
  'prompt_cache_key',
  'prompt_cache_options',
  'prompt_cache_retention',
  'safety_identifier',
  'store',
])

const responseFormat = z.discriminatedUnion('type', [
  z.object({ type: z.literal(['text', 'json_object']) }),
  z.object({ type: z.literal('json_schema'), json_schema: z.object({ schema: z.unknown().optional() }) }),
])

type Translate = (value: Json, said: string, model: string) => JsonObject

/** Members with an equivalent in `generationConfig`. */
const TRANSLATED: Record<string, Translate> = {
  frequency_penalty: (frequencyPenalty) => ({ frequencyPenalty }),
  presence_penalty: (presencePenalty) => ({ presencePenalty }),
  seed: (seed) => ({ seed }),
  reasoning_effort: (effort, said, model) => ({ thinkingConfig: thinkingOf(effort, said, model) }),
  response_format: (value, said) => {
    const format = responseFormat.safeParse(value).data
    if (!format) throw notCarried(said)
    if (format.type === 'text') return {}
    const schema = format.type === 'json_schema' ? (format.json_schema.schema as Json | undefined) : undefined
    return {
      responseMimeType: 'application/json',
      ...(schema !== undefined && { responseJsonSchema: geminiSchema(schema) }),
    }
  },
  service_tier: (value, said) => {
    if (value === 'auto' || value === 'default') return {}
    throw notCarried(said)
  },
}

/** As the vendor itself reads the member: older models take a budget, newer ones a level. */
const BUDGETS: Record<string, number> = {
  none: 0,
  minimal: 1_024,
  low: 1_024,
  medium: 8_192,
  high: 24_576,
  xhigh: 24_576,
}
const LEVELS: Record<string, string> = {
  none: 'MINIMAL',
  minimal: 'MINIMAL',
  low: 'LOW',
  medium: 'MEDIUM',
  high: 'HIGH',
  xhigh: 'HIGH',
}
const takesBudget = (model: string): boolean => /gemini-[12]/.test(model)

function thinkingOf(effort: Json, said: string, model: string): JsonObject {
  const name = String(effort)
  if (!Object.hasOwn(LEVELS, name)) throw notCarried(said)
  const amount = takesBudget(model) ? { thinkingBudget: BUDGETS[name]! } : { thinkingLevel: LEVELS[name]! }
  return { ...amount, includeThoughts: name !== 'none' }
}

/** `generationConfig`; what has no equivalent, and what nobody here knows, is a 400 that names it. */
export function generationConfig(turn: Turn, model: string): JsonObject {
  const { body, names } = chatMembers(turn)
  const config: JsonObject = {}
  for (const [name, value] of Object.entries(body)) {
    if (value === null || membersInTheTurn.has(name) || LEFT_OUT.has(name)) continue
    const said = names.get(name) ?? name
    const translate = Object.hasOwn(TRANSLATED, name) ? TRANSLATED[name] : undefined
    if (translate) Object.assign(config, translate(value, said, model))
    else if (!asksForNothing(name, value)) throw notCarried(said)
  }
  const { maxOutputTokens, temperature, topP, stop } = turn
  return {
    ...config,
    ...thinkingOfMessages(turn, model),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(stop !== undefined && stop.length > 0 && { stopSequences: stop }),
  }
}

/** Every dialect's members by way of Chat's, with the names that its client knows them by. */
function chatMembers({ dialect, raw }: Turn): { body: JsonObject; names: ReadonlyMap<string, string> } {
  switch (dialect) {
    case 'chat':
      return { body: raw, names: new Map() }
    case 'messages':
      return { body: chatMembersOfMessages(raw), names: messagesNames }
    case 'responses':
      return { body: chatMembersOf(raw), names: responsesNames }
    default:
      return dialect satisfies never
  }
}

/** A Messages client says how much its model shall think in tokens, and wants to see it. */
function thinkingOfMessages({ dialect, raw }: Turn, model: string): JsonObject {
  const { thinking } = raw
  if (dialect !== 'messages' || !isObject(thinking)) return {}
  const { type, budget_tokens: budget } = thinking
  if (type === 'disabled') return takesBudget(model) ? { thinkingConfig: { thinkingBudget: 0 } } : {}
  const exact = type === 'enabled' && typeof budget === 'number' && takesBudget(model)
  if (exact) return { thinkingConfig: { thinkingBudget: budget, includeThoughts: true } }
  return type === 'adaptive' ? { thinkingConfig: { includeThoughts: true } } : {}
}

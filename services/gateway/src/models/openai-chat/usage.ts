import type { TokenCounts } from '@tollgate/contracts'
import { z } from 'zod'
import type { JsonObject } from '../../conversation/turn.ts'

const count = z.int().nonnegative().nullish().catch(undefined)

/**
 * Usage as Chat reports it. `prompt_tokens` includes what was read from or written to a cache (BR-147); some servers put
 * the cached share beside it instead of into the details.
 */
const chatUsage = z.object({
  prompt_tokens: count,
  completion_tokens: count,
  prompt_tokens_details: z.object({ cached_tokens: count, cache_write_tokens: count }).nullish().catch(undefined),
  completion_tokens_details: z.object({ reasoning_tokens: count }).nullish().catch(undefined),
  prompt_cache_hit_tokens: count,
  cached_tokens: count,
})

/** Undefined when `value` counts nothing. */
export function readChatUsage(value: unknown): TokenCounts | undefined {
  const read = chatUsage.safeParse(value)
  if (!read.success) return undefined
  const usage = read.data
  if (usage.prompt_tokens == null && usage.completion_tokens == null) return undefined
  const prompt = usage.prompt_tokens ?? 0
  const cached = usage.prompt_tokens_details?.cached_tokens ?? usage.prompt_cache_hit_tokens ?? usage.cached_tokens ?? 0
  const cacheRead = Math.min(prompt, cached)
  const cacheWrite = Math.min(prompt - cacheRead, usage.prompt_tokens_details?.cache_write_tokens ?? 0)
  return {
    input: prompt - cacheRead - cacheWrite,
    output: usage.completion_tokens ?? 0,
    cacheRead,
    cacheWrite,
    reasoning: usage.completion_tokens_details?.reasoning_tokens ?? 0,
  }
}

interface Counting {
  usage?: unknown
  choices?: readonly Record<string, unknown>[] | null | undefined
  x_groq?: unknown
}

/** The usage a chunk or an answer reports; two vendors put it into the choice or under a name of their own. */
export function countedIn({
  usage,
  choices,
  x_groq,
}: Counting): { tokens: TokenCounts; value: JsonObject } | undefined {
  const own = x_groq !== null && typeof x_groq === 'object' && 'usage' in x_groq ? x_groq.usage : undefined
  for (const value of [usage, choices?.[0]?.usage, own]) {
    const tokens = value ? readChatUsage(value) : undefined
    if (tokens) return { tokens, value: value as JsonObject }
  }
  return undefined
}

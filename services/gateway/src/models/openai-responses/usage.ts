import type { TokenCounts } from '@tollgate/contracts'
import { z } from 'zod'
import type { JsonObject } from '../../conversation/turn.ts'

const count = z.int().nonnegative().nullish().catch(undefined)

/** Usage as Responses reports it: `input_tokens` includes what was read from or written to a cache (BR-147). */
const responsesUsage = z.object({
  input_tokens: count,
  output_tokens: count,
  input_tokens_details: z.object({ cached_tokens: count, cache_write_tokens: count }).nullish().catch(undefined),
  output_tokens_details: z.object({ reasoning_tokens: count }).nullish().catch(undefined),
})

/** Undefined when `value` counts nothing. */
export function countedIn(value: unknown): { tokens: TokenCounts; value: JsonObject } | undefined {
  const usage = responsesUsage.safeParse(value).data
  if (usage === undefined || (usage.input_tokens == null && usage.output_tokens == null)) return undefined
  const input = usage.input_tokens ?? 0
  const cacheRead = Math.min(input, usage.input_tokens_details?.cached_tokens ?? 0)
  const cacheWrite = Math.min(input - cacheRead, usage.input_tokens_details?.cache_write_tokens ?? 0)
  return {
    tokens: {
      input: input - cacheRead - cacheWrite,
      output: usage.output_tokens ?? 0,
      cacheRead,
      cacheWrite,
      reasoning: usage.output_tokens_details?.reasoning_tokens ?? 0,
    },
    value: value as JsonObject,
  }
}

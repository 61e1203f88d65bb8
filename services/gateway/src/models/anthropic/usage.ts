import type { TokenCounts } from '@tollgate/contracts'
import { z } from 'zod'
import type { JsonObject } from '../../conversation/turn.ts'

const count = z.int().nonnegative().nullish().catch(undefined)

/** Usage as Messages reports it: `input_tokens` excludes what was read from or written to a cache (BR-147). */
const messagesUsage = z.looseObject({
  input_tokens: count,
  output_tokens: count,
  cache_read_input_tokens: count,
  cache_creation_input_tokens: count,
  output_tokens_details: z.looseObject({ thinking_tokens: count }).nullish().catch(undefined),
})

/** Gathers usage over a stream: the counts are cumulative, and what a later event leaves out or null stands as it was. */
export function messagesUsageReader() {
  let value: JsonObject | undefined
  return {
    read(usage: unknown): void {
      const read = messagesUsage.safeParse(usage)
      if (!read.success) return
      const said = Object.entries(read.data).filter(([, count]) => count != null)
      value = { ...value, ...(Object.fromEntries(said) as JsonObject) }
    },
    /** Undefined when nothing was counted. */
    total(): { tokens: TokenCounts; value: JsonObject } | undefined {
      if (value === undefined || (value.input_tokens === undefined && value.output_tokens === undefined))
        return undefined
      const read = messagesUsage.parse(value)
      return {
        tokens: {
          input: read.input_tokens ?? 0,
          output: read.output_tokens ?? 0,
          cacheRead: read.cache_read_input_tokens ?? 0,
          cacheWrite: read.cache_creation_input_tokens ?? 0,
          reasoning: read.output_tokens_details?.thinking_tokens ?? 0,
        },
        value,
      }
    },
  }
}

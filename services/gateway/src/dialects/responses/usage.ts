import type { TokenCounts } from '@tollgate/contracts'
import type { Answer } from '../../conversation/collect.ts'
import type { JsonObject } from '../../conversation/turn.ts'

/** Usage as a Responses client reads it: an upstream's own words where it speaks this dialect, else counted its way. */
export const responsesUsage = ({ tokens, raw }: NonNullable<Answer['usage']>): JsonObject =>
  raw?.dialect === 'responses' ? raw.value : counted(tokens)

/** Cached tokens count inside the input (BR-147). */
function counted({ input, output, cacheRead, cacheWrite, reasoning }: TokenCounts): JsonObject {
  const all = input + cacheRead + cacheWrite
  return {
    input_tokens: all,
    input_tokens_details: { cached_tokens: cacheRead, cache_write_tokens: cacheWrite },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: all + output,
  }
}

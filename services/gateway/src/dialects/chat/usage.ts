import type { TokenCounts } from '@tollgate/contracts'
import type { Answer } from '../../conversation/collect.ts'
import type { JsonObject } from '../../conversation/turn.ts'

/** Usage as a Chat client reads it: an upstream's own words where it speaks this dialect, else counted its way. */
export const chatUsage = ({ tokens, raw }: NonNullable<Answer['usage']>): JsonObject =>
  raw?.dialect === 'chat' ? raw.value : counted(tokens)

/** Chat counts cached tokens inside the prompt (BR-147). */
function counted({ input, output, cacheRead, cacheWrite, reasoning }: TokenCounts): JsonObject {
  const prompt = input + cacheRead + cacheWrite
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
    ...(cacheRead + cacheWrite > 0 && {
      prompt_tokens_details: { cached_tokens: cacheRead, ...(cacheWrite > 0 && { cache_write_tokens: cacheWrite }) },
    }),
    ...(reasoning > 0 && { completion_tokens_details: { reasoning_tokens: reasoning } }),
  }
}

import type { TokenCounts } from '@tollgate/contracts'
import type { Answer } from '../../conversation/collect.ts'
import type { JsonObject } from '../../conversation/turn.ts'

/** Usage as a Messages client reads it: an upstream's own words where it speaks this dialect, else counted its way. */
export function messagesUsage(usage: Answer['usage']): JsonObject {
  if (usage === undefined) return { input_tokens: 0, output_tokens: 0 }
  return usage.raw?.dialect === 'messages' ? usage.raw.value : counted(usage.tokens)
}

/** This dialect counts cached tokens beside the input (BR-147). */
const counted = ({ input, output, cacheRead, cacheWrite, reasoning }: TokenCounts): JsonObject => ({
  input_tokens: input,
  ...(cacheWrite > 0 && { cache_creation_input_tokens: cacheWrite }),
  ...(cacheRead > 0 && { cache_read_input_tokens: cacheRead }),
  output_tokens: output,
  ...(reasoning > 0 && { output_tokens_details: { thinking_tokens: reasoning } }),
})

import type { TokenCounts } from '@tollgate/contracts'
import type { Answer } from '../../conversation/collect.ts'
import type { ToolActivity } from '../../conversation/events.ts'
import type { JsonObject } from '../../conversation/turn.ts'

/** Usage as a Messages client reads it: an upstream's own words where it speaks this dialect, else counted its way. */
export function messagesUsage(usage: Answer['usage'], searches = 0): JsonObject {
  const own = usage?.raw?.dialect === 'messages' ? usage.raw.value : usage && counted(usage.tokens)
  const told = own ?? { input_tokens: 0, output_tokens: 0 }
  return searches === 0 ? told : { ...told, server_tool_use: { web_search_requests: searches } }
}

/** Searches that the model's backend made, which show in nothing else (PE-63). */
export const isProviderSearch = ({ phase, outcome }: ToolActivity): boolean =>
  phase === 'finished' && outcome?.shown.kind === 'provider_tool' && outcome.shown.search

/** This dialect counts cached tokens beside the input (BR-147). */
const counted = ({ input, output, cacheRead, cacheWrite, reasoning }: TokenCounts): JsonObject => ({
  input_tokens: input,
  ...(cacheWrite > 0 && { cache_creation_input_tokens: cacheWrite }),
  ...(cacheRead > 0 && { cache_read_input_tokens: cacheRead }),
  output_tokens: output,
  ...(reasoning > 0 && { output_tokens_details: { thinking_tokens: reasoning } }),
})

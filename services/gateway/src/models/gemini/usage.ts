import type { TokenCounts } from '@tollgate/contracts'
import { z } from 'zod'

const count = z.int().nonnegative().nullish().catch(undefined)

/**
 * Usage as Gemini reports it: what was read from a cache is inside the prompt (BR-147), what a tool of its own brought in
 * is beside it, and thoughts are beside the answer.
 */
const usageMetadata = z.object({
  promptTokenCount: count,
  cachedContentTokenCount: count,
  toolUsePromptTokenCount: count,
  candidatesTokenCount: count,
  thoughtsTokenCount: count,
})

/** Undefined when `value` counts nothing. */
export function countedIn(value: unknown): TokenCounts | undefined {
  const usage = usageMetadata.safeParse(value).data
  if (usage === undefined || (usage.promptTokenCount == null && usage.candidatesTokenCount == null)) return undefined
  const prompt = usage.promptTokenCount ?? 0
  const cacheRead = Math.min(prompt, usage.cachedContentTokenCount ?? 0)
  const reasoning = usage.thoughtsTokenCount ?? 0
  return {
    input: prompt - cacheRead + (usage.toolUsePromptTokenCount ?? 0),
    output: (usage.candidatesTokenCount ?? 0) + reasoning,
    cacheRead,
    cacheWrite: 0,
    reasoning,
  }
}

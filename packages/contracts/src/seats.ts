import { z } from 'zod'

const decimal = z.union([z.number().nonnegative(), z.string().regex(/^\d+(\.\d+)?$/, 'must be a non-negative number')])
/** Goes to the backend as it is written, so it is checked and never put right (PE-02). */
const toolName = z
  .string()
  .max(64)
  .refine((name) => name.trim() !== '', 'must name a tool of the backend')

/** What a seat's backend runs by itself, and on which terms: the same fields wherever a seat is set up (PE-70). */
export const seatFields = {
  provider_executed_tools: z
    .array(toolName)
    .max(16)
    .refine((names) => new Set(names).size === names.length, 'must name each tool once'),
  delegated_search: toolName,
  /** Dollars a call, by the tool's name. */
  provider_tool_fees: z.record(toolName, decimal),
  provider_tool_max_calls: z.int().min(1).max(100),
  /** Tokens that the result of one call may have. */
  provider_tool_max_result_tokens: z.int().positive(),
  /** Tokens of question and answer together; results that would not fit are not asked for. */
  context_window: z.int().positive(),
  /** Whether a client's `web_search` keyword that does not run here is served by the backend's search tool. */
  web_search_keyword: z.enum(['otari', 'provider_tool']),
}

/** A configured model: one model of one provider instance, with what its backend runs by itself. */
export const seatSettings = z.strictObject({
  /** The instance's name in `providers`. */
  provider: z.string().min(1),
  /** The provider's own name for the model. */
  model: z.string().min(1),
  provider_executed_tools: seatFields.provider_executed_tools.default([]),
  delegated_search: seatFields.delegated_search.optional(),
  provider_tool_fees: seatFields.provider_tool_fees.default({}),
  provider_tool_max_calls: seatFields.provider_tool_max_calls.default(10),
  provider_tool_max_result_tokens: seatFields.provider_tool_max_result_tokens.optional(),
  context_window: seatFields.context_window.optional(),
  web_search_keyword: seatFields.web_search_keyword.default('otari'),
})
export type SeatSettings = z.infer<typeof seatSettings>

/**
 * Why a seat cannot be used, in the one wording of every door by which it may come in (PE-42, PE-70). The two fields are
 * never deduplicated, since the one that was dropped might be the one that was meant (PE-43).
 */
export function seatMistake(
  name: string,
  {
    delegated_search: delegated,
    provider_executed_tools: listed,
  }: Pick<SeatSettings, 'provider_executed_tools'> & {
    delegated_search?: string | undefined
  },
): string | undefined {
  if (delegated === undefined || listed.length === 0) return undefined
  return (
    `agent ${JSON.stringify(name)} sets both \`delegated_search\` (${JSON.stringify(delegated)}) and ` +
    `\`provider_executed_tools\` (${JSON.stringify(listed)}); they are alternatives — declaring both names the tool twice ` +
    'in one array of tools. Clear `provider_executed_tools` to keep the delegated form.'
  )
}

import type { JsonObject } from '../../conversation/turn.ts'

/** What the most tokens to answer are called: the vendor's newer models refuse the old name, others know no other. */
export type TokenLimit = 'max_tokens' | 'max_completion_tokens'

/** How servers of this API differ in what they take. */
export interface ChatQuirks {
  /** The name for turns that came in another dialect. */
  tokenLimit: TokenLimit
  /** Also what a client calls `max_completion_tokens` goes out by its old name. */
  oldTokenLimitOnly: boolean
  /** Whether a stream may be asked to count its tokens. */
  streamOptions: boolean
  /** Whether instructions may come as `developer`; they come as `system` where not. */
  developerRole: boolean
  /** Whether an assistant message may say what the model thought. */
  reasoningContent: boolean
}

/** What a server takes that nothing else is known of. */
export const plainChat: ChatQuirks = {
  tokenLimit: 'max_tokens',
  oldTokenLimitOnly: false,
  streamOptions: true,
  developerRole: true,
  reasoningContent: true,
}

export const openAiItself: ChatQuirks = { ...plainChat, tokenLimit: 'max_completion_tokens' }

/** A message as the server takes it: another role for the same instructions, and no thoughts of another model's. */
export function fittingMessage(message: JsonObject, { developerRole, reasoningContent }: ChatQuirks): JsonObject {
  if (message.role === 'developer' && !developerRole) return { ...message, role: 'system' }
  if (message.role !== 'assistant' || reasoningContent || message.reasoning_content === undefined) return message
  const { reasoning_content: _thoughts, ...rest } = message
  return rest
}

/** The client's own members as the server names them; the old name wins where both stand. */
export function fittingMembers(raw: JsonObject, { oldTokenLimitOnly }: ChatQuirks): JsonObject {
  const { max_completion_tokens: newer, ...rest } = raw
  if (!oldTokenLimitOnly || newer === undefined) return raw
  return { max_tokens: newer, ...rest }
}

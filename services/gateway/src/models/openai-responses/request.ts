import { isObject } from '../../conversation/json.ts'
import type { Json, JsonObject, ModelRequest, Turn } from '../../conversation/turn.ts'
import { messagesNames, notCarried } from '../chat-members.ts'
import { pairResults } from '../history.ts'
import { chatMembersOfMessages } from '../messages-members.ts'
import { transcriptOf } from './input.ts'
import { carriedMembers } from './members.ts'
import { toolMembers } from './tools.ts'

/** Less the vendor does not take. */
const LEAST_OUTPUT_TOKENS = 16
const ENCRYPTED_REASONING = 'reasoning.encrypted_content'

/**
 * The vendor's models that do not reason, and refuse to be asked for it. Compatible servers' names are their own, and what
 * they do not know of `include` they pass over.
 */
const UNREASONING = /^(ft:)?(gpt-3|gpt-4|chatgpt-)|^gpt-5(\.\d+)?-chat/

/**
 * The body for the Responses API. The provider is shown the whole conversation and stores none of it: what is stored, and
 * what `previous_response_id` names, is this gateway's. Reasoning comes back encrypted, so that it survives the rounds.
 */
export function responsesBody(request: ModelRequest, provider: string): JsonObject {
  const { turn, model, stream } = request
  const own = turn.dialect === 'responses'
  const messages = own ? request.messages : pairResults(request.messages)
  const body: Record<string, Json | undefined> = {
    ...(own ? turn.raw : carriedFrom(turn)),
    model,
    ...transcriptOf(messages, provider),
    ...toolMembers(request),
    store: false,
    include: included(own ? turn.raw.include : undefined, model),
    stream: stream || (own && turn.raw.stream !== undefined ? false : undefined),
  }
  return Object.fromEntries(Object.entries(body).filter((member): member is [string, Json] => member[1] !== undefined))
}

function included(asked: Json | undefined, model: string): Json | undefined {
  const list = Array.isArray(asked) ? asked : []
  if (UNREASONING.test(model) || list.includes(ENCRYPTED_REASONING)) return asked
  return [...list, ENCRYPTED_REASONING]
}

/** What every dialect knows, and a Messages body by way of Chat's members, under the names that its client knows. */
function carriedFrom(turn: Turn): JsonObject {
  if (turn.stop !== undefined && turn.stop.length > 0)
    throw notCarried(turn.dialect === 'messages' ? 'stop_sequences' : 'stop')
  const { maxOutputTokens: most, temperature, topP, user } = turn
  return {
    ...(turn.dialect === 'chat' ? carriedMembers(turn.raw) : carriedFromMessages(turn.raw)),
    ...(most !== undefined && { max_output_tokens: Math.max(LEAST_OUTPUT_TOKENS, most) }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { top_p: topP }),
    ...(user !== undefined && { user }),
  }
}

/** A Messages client that has its model think is shown the thoughts; of those of this API, that is their summary. */
function carriedFromMessages(raw: JsonObject): JsonObject {
  const carried = carriedMembers(chatMembersOfMessages(raw), messagesNames)
  return isObject(carried.reasoning) ? { ...carried, reasoning: { ...carried.reasoning, summary: 'auto' } } : carried
}

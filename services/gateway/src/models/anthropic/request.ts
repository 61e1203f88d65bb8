import { Fault } from '@tollgate/contracts'
import { isObject } from '../../conversation/json.ts'
import type { Json, JsonObject, ModelRequest, Turn } from '../../conversation/turn.ts'
import { carriedMembers } from './members.ts'
import { type Transcript, transcriptOf } from './messages.ts'
import { toolMembers } from './tools.ts'

export interface MessagesSettings {
  /** `max_tokens` of a request that names none; the vendor demands one. */
  defaultMaxTokens: number
  /** Gives unsigned thinking back to the upstream that sent it: some compatible servers want it, the vendor refuses it (BR-017). */
  replayUnsigned: boolean
}

/** The body for the Messages API, of a turn in another dialect. What cannot be carried is a 400 that names it. */
export function messagesBody(request: ModelRequest, settings: MessagesSettings): JsonObject {
  const { turn } = request
  const transcript = transcriptOf(request.messages, settings.replayUnsigned)
  const carried = turn.dialect === 'chat' ? carriedMembers(turn.raw) : {}
  const thinking = thinkingFor(transcript, carried.thinking)
  const body: Record<string, Json | undefined> = {
    model: request.model,
    max_tokens: maxTokens(turn, thinking, settings),
    system: transcript.system.length > 0 ? transcript.system : undefined,
    ...toolMembers(request, transcript),
    messages: transcript.messages,
    ...carried,
    thinking,
    // the other vendor's scale goes to 2, and this one caps what is over its own
    temperature: turn.temperature === undefined ? undefined : Math.min(1, turn.temperature),
    top_p: turn.topP,
    stop_sequences: stopSequences(turn),
    metadata: turn.user === undefined ? undefined : { user_id: turn.user },
    stream: request.stream || undefined,
  }
  return Object.fromEntries(Object.entries(body).filter((member): member is [string, Json] => member[1] !== undefined))
}

/**
 * With manual thinking the vendor wants a last turn that calls tools to begin with its thinking. A Chat history has lost
 * it, so thinking rests until the tool turn is over.
 */
function thinkingFor({ messages }: Transcript, thinking: Json | undefined): Json | undefined {
  const last = messages.findLast(({ role }) => role === 'assistant')?.content ?? []
  const unthought = last.some(({ type }) => type === 'tool_use') && !/thinking$/.test(String(last[0]?.type))
  return unthought && budgetOf(thinking) > 0 ? undefined : thinking
}

function maxTokens(turn: Turn, thinking: Json | undefined, { defaultMaxTokens }: MessagesSettings): number {
  return turn.maxOutputTokens ?? budgetOf(thinking) + defaultMaxTokens
}

const budgetOf = (thinking: Json | undefined): number =>
  isObject(thinking) && typeof thinking.budget_tokens === 'number' ? thinking.budget_tokens : 0

function stopSequences({ stop }: Turn): string[] | undefined {
  if (stop?.some((sequence) => sequence.trim() === ''))
    throw new Fault('invalid_request', "'stop' cannot hold white space alone for this model's provider")
  return stop
}

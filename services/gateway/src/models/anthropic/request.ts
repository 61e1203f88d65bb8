import { Fault } from '@tollgate/contracts'
import type { Json, JsonObject, ModelRequest, Turn } from '../../conversation/turn.ts'
import { chatMembersOf, responsesNames } from '../responses-members.ts'
import { carriedMembers } from './members.ts'
import { transcriptOf } from './messages.ts'
import { ownBody } from './own-body.ts'
import { budgetOf, thinkingFor } from './thinking.ts'
import { toolMembers } from './tools.ts'

export interface MessagesSettings {
  /** `max_tokens` of a request that names none; the vendor demands one. */
  defaultMaxTokens: number
  /** Gives unsigned thinking back to the upstream that sent it: some compatible servers want it, the vendor refuses it (BR-017). */
  replayUnsigned: boolean
  /** Code that it runs reads files of its own store; what compatible servers have is not known. */
  hasFiles?: boolean
}

/** The body for the Messages API. What cannot be carried out of another dialect is a 400 that names it. */
export function messagesBody(request: ModelRequest, settings: MessagesSettings): JsonObject {
  const { turn } = request
  if (turn.dialect === 'messages') return ownBody(request, settings.replayUnsigned)
  const transcript = transcriptOf(request.messages, settings.replayUnsigned)
  const carried = carriedFrom(turn)
  const thinking = thinkingFor(transcript.messages, carried.thinking)
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

/** A Responses body by way of Chat's members, under the names that its client knows. */
const carriedFrom = ({ dialect, raw }: Turn): JsonObject =>
  dialect === 'responses' ? carriedMembers(chatMembersOf(raw), responsesNames) : carriedMembers(raw)

function maxTokens(turn: Turn, thinking: Json | undefined, { defaultMaxTokens }: MessagesSettings): number {
  return turn.maxOutputTokens ?? budgetOf(thinking) + defaultMaxTokens
}

function stopSequences({ stop }: Turn): string[] | undefined {
  if (stop?.some((sequence) => sequence.trim() === ''))
    throw new Fault('invalid_request', "'stop' cannot hold white space alone for this model's provider")
  return stop
}

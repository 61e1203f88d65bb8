import type { Json, JsonObject, Message, ModelRequest } from '../../conversation/turn.ts'
import { ownHistory } from './own-history.ts'
import { thinkingFor } from './thinking.ts'
import { choiceMember } from './tools.ts'

/**
 * The body for a client that speaks the Messages API itself: every member it sent, also those nobody here knows, in its
 * own order; only what the plan decides is put in its place (T-26, T-33).
 */
export function ownBody(request: ModelRequest, replayUnsigned: boolean): JsonObject {
  const { turn, messages: all } = request
  const { system, messages: said } = splitSystem(all, turn.raw.system !== undefined && turn.raw.system !== null)
  const messages = ownHistory(said, replayUnsigned)
  const planned: Record<string, Json | undefined> = {
    model: request.model,
    system: system ?? turn.raw.system,
    messages,
    ...ownTools(request),
    thinking: thinkingFor(messages, turn.raw.thinking),
    stream: request.stream || (turn.raw.stream === undefined ? undefined : false),
  }
  // planned members take the place of the client's, wherever those stand; an undefined one takes it away
  return Object.fromEntries(
    Object.entries({ ...turn.raw, ...planned }).filter((member): member is [string, Json] => member[1] !== undefined),
  )
}

/**
 * What the client put into `system` stands first among the messages, grown by hints; what the gateway itself tells a
 * model (it has no wire form) is added to it. A system message within the conversation is the client's and stays there.
 */
function splitSystem(all: readonly Message[], hasSystem: boolean): { system: Json | undefined; messages: Message[] } {
  const first = hasSystem ? all[0] : undefined
  const ours = all.filter((message) => message.role === 'system' && message.raw === undefined)
  const messages = all.filter((message) => message !== first && !ours.includes(message))
  const texts = ours.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'text' ? part.text : [])))
  const own = first?.raw?.value.content
  if (texts.length === 0) return { system: own, messages }
  if (Array.isArray(own)) return { system: [...own, ...texts.map((text) => ({ type: 'text', text }))], messages }
  return { system: [...(typeof own === 'string' && own !== '' ? [own] : []), ...texts].join('\n\n'), messages }
}

/** A turn without tools keeps what it says about them; in any other the choice falls with the last tool (L-08). */
function ownTools(request: ModelRequest): Record<string, Json | undefined> {
  const { turn, tools, toolChoice, parallelToolCalls } = request
  if (tools.length === 0) return turn.tools.length === 0 ? {} : { tools: undefined, tool_choice: undefined }
  const unchanged = toolChoice === turn.toolChoice && parallelToolCalls === turn.parallelToolCalls
  return {
    tools: tools.map(({ raw }) => raw),
    tool_choice: unchanged ? turn.raw.tool_choice : choiceMember(toolChoice, parallelToolCalls),
  }
}

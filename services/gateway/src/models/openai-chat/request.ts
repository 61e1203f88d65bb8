import { Fault } from '@tollgate/contracts'
import { isObject } from '../../conversation/json.ts'
import type { Json, JsonObject, ModelRequest, ToolChoice, ToolEntry, Turn } from '../../conversation/turn.ts'
import { chatMembersOfMessages } from '../messages-members.ts'
import { chatMembersOf } from '../responses-members.ts'
import { chatMessages } from './messages.ts'
import { type ChatQuirks, fittingMembers, fittingMessage, plainChat, type TokenLimit } from './quirks.ts'

/**
 * The body to send. A Chat client's own body keeps every member, also those nobody here knows, and their order; only
 * what the plan decides is put in its place (T-26, T-33). Usage is always asked for: the client's wish decides later
 * what it is shown.
 */
export function chatBody(request: ModelRequest, quirks: ChatQuirks = plainChat): JsonObject {
  const { turn } = request
  const raw = turn.dialect === 'chat' ? fittingMembers(turn.raw, quirks) : neutralMembers(turn, quirks.tokenLimit)
  const planned: Record<string, Json | undefined> = {
    model: request.model,
    messages: chatMessages(request.messages, turn.dialect).map((message) => fittingMessage(message, quirks)),
    stream: request.stream || (raw.stream === undefined ? undefined : false),
    stream_options:
      request.stream && quirks.streamOptions ? { ...objectOr(raw.stream_options), include_usage: true } : undefined,
    ...toolMembers(request),
  }
  // planned members take the place of the client's, wherever those stand; an undefined one takes it away
  return Object.fromEntries(
    Object.entries({ ...raw, ...planned }).filter((member): member is [string, Json] => member[1] !== undefined),
  )
}

/** A turn without tools keeps what it says about them; in any other, choice and parallelism fall with the last tool (L-08). */
function toolMembers({ turn, tools, toolChoice, parallelToolCalls }: ModelRequest): Record<string, Json | undefined> {
  if (tools.length === 0)
    return turn.tools.length === 0 ? {} : { tools: undefined, tool_choice: undefined, parallel_tool_calls: undefined }
  return {
    tools: tools.map((tool) => toolEntry(tool, turn)),
    tool_choice: chosenTool(toolChoice, turn),
    parallel_tool_calls: parallelToolCalls,
  }
}

/** Several answers at once cannot be read as one stream of events; only the fast lane carries them. */
export function refuseSeveralAnswers({ turn }: ModelRequest): void {
  const n = turn.raw.n
  if (turn.dialect === 'chat' && typeof n === 'number' && n > 1)
    throw new Fault('invalid_request', "'n' must be 1 for a request with tools that this gateway runs")
}

/** What every dialect knows, for a turn that came in another one. */
function neutralMembers(turn: Turn, limit: TokenLimit): JsonObject {
  const members = {
    [limit]: turn.maxOutputTokens,
    temperature: turn.temperature,
    top_p: turn.topP,
    stop: turn.stop,
    user: turn.user,
  }
  const body = turn.dialect === 'responses' ? chatMembersOf(turn.raw) : chatMembersOfMessages(turn.raw)
  for (const [name, value] of Object.entries(members)) if (value !== undefined) body[name] = value
  return body
}

function toolEntry(tool: ToolEntry, turn: Turn): JsonObject {
  switch (tool.kind) {
    case 'function': {
      const { raw, name, description, parameters } = tool
      if (turn.dialect === 'chat' && raw.type === 'function' && raw.function) return raw
      const described: JsonObject = { name }
      if (description !== undefined) described.description = description
      if (parameters !== undefined) described.parameters = parameters
      if (turn.dialect === 'responses' && raw.strict === true) described.strict = true
      return { type: 'function', function: described }
    }
    case 'typed':
      if (turn.dialect === 'chat' || tool.wire === 'openai-chat') return tool.raw
      throw new Fault('invalid_request', `this model's provider has no tool of type '${tool.type}'`)
    default:
      return tool satisfies never
  }
}

function chosenTool(choice: ToolChoice | undefined, turn: Turn): Json | undefined {
  if (choice === undefined) return undefined
  switch (choice.type) {
    case 'auto':
    case 'none':
    case 'required':
      return choice.type
    case 'function':
      return { type: 'function', function: { name: choice.name } }
    case 'typed':
      if (turn.dialect === 'chat') return choice.raw
      throw new Fault('invalid_request', `this model's provider cannot be made to choose '${choice.name}'`)
    default:
      return choice satisfies never
  }
}

const objectOr = (value: Json | undefined): JsonObject => (isObject(value) ? value : {})

import { Fault } from '@tollgate/contracts'
import type { JsonObject, Message, ToolChoice, ToolEntry, Turn } from '../../conversation/turn.ts'
import { declaredServers } from '../../mcp-client/declared.ts'
import { Invalid, problemsOf } from '../../validation.ts'
import { type Given, messagesOf } from './items.ts'
import { type ResponsesRequest, type ResponsesTool, responsesRequest } from './request.ts'

const DEFAULT_ITERATIONS = 10

/** Members that are this gateway's own and never go upstream (T-26); a container is judged where the plan is made. */
const OURS = new Set([
  'mcp_servers',
  'mcp_server_ids',
  'guardrails',
  'tools_header',
  'max_tool_iterations',
  'session_label',
  'previous_response_id',
])

/** A Responses body as it was read: the turn, and what the dialect itself has to know of it. */
export interface ParsedRequest {
  turn: Turn
  /** Items of `input`; a text is one message. */
  input: Given[]
  /** What the history goes before. */
  instructions: Message[]
  previous: string | undefined
  store: boolean
  include: ReadonlySet<string>
}

/**
 * A Responses body as a turn. What has the wrong form is a 422 with every place that is wrong; what nobody here knows
 * passes. `body` is parsed JSON, `bodyCharacters` the length of its text.
 */
export function parseResponses(body: unknown, bodyCharacters: number): ParsedRequest {
  const read = responsesRequest.safeParse(body)
  if (!read.success) throw new Invalid(problemsOf(read.error, 'body'))
  const request = read.data
  refuseUnserved(request)
  const mcpServers = declaredServers(request)
  // what zod returns has its members in another order; what goes upstream keeps the client's
  const raw = body as { input?: string | JsonObject[] | null; tools?: JsonObject[] | null } & JsonObject
  const input = givenItems(request, raw.input ?? [])
  const instructions = instructionsOf(request)
  return {
    input,
    instructions,
    previous: request.previous_response_id ?? undefined,
    store: request.store ?? true,
    include: new Set(request.include ?? []),
    turn: {
      dialect: 'responses',
      model: request.model,
      stream: request.stream ?? false,
      includeUsage: true,
      messages: [...instructions, ...messagesOf(input)],
      tools: (request.tools ?? []).map((tool, at) => readTool(tool, raw.tools?.[at] ?? {})),
      toolChoice: readChoice(request.tool_choice ?? undefined),
      parallelToolCalls: request.parallel_tool_calls ?? undefined,
      maxOutputTokens: request.max_output_tokens ?? undefined,
      temperature: request.temperature ?? undefined,
      topP: request.top_p ?? undefined,
      stop: undefined,
      user: request.user ?? undefined,
      maxToolIterations: request.max_tool_iterations ?? DEFAULT_ITERATIONS,
      ...(request.max_tool_calls != null && { maxToolCalls: request.max_tool_calls }),
      toolsHeader: request.tools_header ?? undefined,
      ...(mcpServers && { mcpServers }),
      raw: Object.fromEntries(Object.entries(raw).filter(([name]) => !OURS.has(name))),
      bodyCharacters,
    },
  }
}

/** What this gateway has no part for is told before anything is paid for. */
function refuseUnserved({ background, conversation, prompt }: ResponsesRequest): void {
  if (background)
    throw new Fault('invalid_request', "'background' is not served: remove it, and read the answer as it comes")
  if (conversation != null)
    throw new Fault('invalid_request', "'conversation' is not served: continue one with 'previous_response_id'")
  if (prompt != null)
    throw new Fault('invalid_request', "'prompt' is not served: send its text as 'instructions' and 'input'")
}

function givenItems({ input }: ResponsesRequest, wire: string | JsonObject[]): Given[] {
  if (typeof wire === 'string') {
    const item = { type: 'message', role: 'user', content: wire } as const
    return [{ read: { form: 'message', item }, wire: item }]
  }
  return (Array.isArray(input) ? input : []).map((read, at) => ({ read, wire: wire[at] ?? {} }))
}

/** Stands before everything, in a form that hints can be put before (T-29). */
function instructionsOf({ instructions }: ResponsesRequest): Message[] {
  if (!instructions) return []
  const value = { role: 'system', content: instructions }
  return [{ role: 'system', parts: [{ type: 'text', text: instructions }], raw: { dialect: 'responses', value } }]
}

function readTool(tool: ResponsesTool, raw: JsonObject): ToolEntry {
  if (tool.type === 'function') {
    return {
      kind: 'function',
      name: tool.name ?? '',
      description: tool.description ?? undefined,
      parameters: tool.parameters as JsonObject | undefined,
      raw,
    }
  }
  // the bare object is a keyword of its own
  return { kind: 'typed', type: tool.type ?? 'code_execution', raw }
}

function readChoice(choice: ResponsesRequest['tool_choice'] | undefined): ToolChoice | undefined {
  if (choice == null) return undefined
  if (typeof choice === 'string') return { type: choice }
  if (isNamed(choice)) return { type: 'function', name: choice.name }
  return { type: 'typed', name: choice.type, raw: choice as JsonObject }
}

type Choice = Exclude<NonNullable<ResponsesRequest['tool_choice']>, string>
const isNamed = (choice: Choice): choice is Choice & { name: string } => choice.type === 'function'

import type { JsonObject, ToolChoice, ToolEntry, Turn } from '../../conversation/turn.ts'
import { declaredServers } from '../../mcp-client/declared.ts'
import { Invalid, problemsOf } from '../../validation.ts'
import { readMessage } from './messages.ts'
import { type ChatRequest, type ChatTool, chatRequest } from './request.ts'

const DEFAULT_ITERATIONS = 10

/** Members that are this gateway's own and never go upstream (T-26); a container is judged where the plan is made. */
const OURS = new Set([
  'mcp_servers',
  'mcp_server_ids',
  'guardrails',
  'tools_header',
  'max_tool_iterations',
  'session_label',
])

/**
 * A Chat Completions body as a turn. What has the wrong form is a 422 with every place that is wrong; what nobody here
 * knows passes. `body` is parsed JSON, `bodyCharacters` the length of its text.
 */
export function parseChat(body: unknown, bodyCharacters: number): Turn {
  const read = chatRequest.safeParse(body)
  if (!read.success) throw new Invalid(problemsOf(read.error, 'body'))
  const request = read.data
  const mcpServers = declaredServers(request)
  // what zod returns has its members in another order; what goes upstream keeps the client's
  const raw = body as { messages: JsonObject[]; tools?: JsonObject[] | null } & JsonObject
  return {
    dialect: 'chat',
    model: request.model,
    stream: request.stream ?? false,
    includeUsage: request.stream_options?.include_usage ?? false,
    messages: request.messages.map((message, at) => readMessage(message, raw.messages[at] ?? {})),
    tools: (request.tools ?? []).map((tool, at) => readTool(tool, raw.tools?.[at] ?? {})),
    toolChoice: readChoice(request.tool_choice ?? undefined),
    parallelToolCalls: request.parallel_tool_calls ?? undefined,
    maxOutputTokens: request.max_completion_tokens ?? request.max_tokens ?? undefined,
    temperature: request.temperature ?? undefined,
    topP: request.top_p ?? undefined,
    stop: typeof request.stop === 'string' ? [request.stop] : (request.stop ?? undefined),
    user: request.user ?? undefined,
    maxToolIterations: request.max_tool_iterations ?? DEFAULT_ITERATIONS,
    toolsHeader: request.tools_header ?? undefined,
    ...(mcpServers && { mcpServers }),
    raw: Object.fromEntries(Object.entries(raw).filter(([name]) => !OURS.has(name))),
    bodyCharacters,
  }
}

function readTool(tool: ChatTool, raw: JsonObject): ToolEntry {
  if (tool.type === 'function' && tool.function) {
    const { name, description, parameters } = tool.function
    return {
      kind: 'function',
      name,
      description: description ?? undefined,
      parameters: parameters as JsonObject | undefined,
      raw,
    }
  }
  // the bare object is a keyword of its own
  return { kind: 'typed', type: tool.type ?? 'code_execution', raw }
}

function readChoice(choice: ChatRequest['tool_choice'] | undefined): ToolChoice | undefined {
  if (choice == null) return undefined
  if (typeof choice === 'string') return { type: choice }
  if (isNamed(choice)) return { type: 'function', name: choice.function.name }
  return { type: 'typed', name: choice.type, raw: choice as JsonObject }
}

type Choice = Exclude<NonNullable<ChatRequest['tool_choice']>, string>
const isNamed = (choice: Choice): choice is Choice & { function: { name: string } } => choice.type === 'function'

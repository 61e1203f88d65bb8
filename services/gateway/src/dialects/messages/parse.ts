import type { IncomingHttpHeaders } from 'node:http'
import { Fault } from '@tollgate/contracts'
import type { z } from 'zod'
import type { Json, JsonObject, Message, ToolChoice, ToolEntry, Turn } from '../../conversation/turn.ts'
import { declaredServers, splitProviderServers } from '../../mcp-client/declared.ts'
import { toolSearchOfType } from '../../tools/tool-search.ts'
import { Invalid, problemsOf } from '../../validation.ts'
import { withoutEchoes } from './echo.ts'
import { foundTools } from './found-tools.ts'
import { readMessage } from './messages.ts'
import { countTokensRequest, type MessagesTool, type MessagesToolChoice, messagesRequest } from './request.ts'

const DEFAULT_ITERATIONS = 10

/** Members that are this gateway's own and never go upstream (T-26); a container is judged where the plan is made. */
const OURS = new Set([
  'mcp_servers',
  'mcp_server_ids',
  'guardrails',
  'tools_header',
  'max_tool_iterations',
  'session_label',
  'betas',
])

type Body = { messages: JsonObject[]; system?: Json; tools?: JsonObject[] | null } & JsonObject

/**
 * A Messages body as a turn. What has the wrong form is a 422 with every place that is wrong; what nobody here knows
 * passes. `body` is parsed JSON, `bodyCharacters` the length of its text.
 */
export function parseMessages(body: unknown, bodyCharacters: number, headers: IncomingHttpHeaders): Turn {
  const request = read(messagesRequest, withoutProviderServers(body))
  return {
    ...conversationOf(request, body as Body, headers),
    stream: request.stream ?? false,
    maxOutputTokens: request.max_tokens,
    temperature: request.temperature ?? undefined,
    topP: request.top_p ?? undefined,
    stop: request.stop_sequences ?? undefined,
    maxToolIterations: request.max_tool_iterations ?? DEFAULT_ITERATIONS,
    toolsHeader: request.tools_header ?? undefined,
    bodyCharacters,
  }
}

/** The same for a body whose tokens are to be counted. */
export function parseCountTokens(body: unknown, bodyCharacters: number, headers: IncomingHttpHeaders): Turn {
  const request = read(countTokensRequest, withoutProviderServers(body))
  return {
    ...conversationOf(request, body as Body, headers),
    stream: false,
    maxOutputTokens: undefined,
    temperature: undefined,
    topP: undefined,
    stop: undefined,
    maxToolIterations: 1,
    toolsHeader: undefined,
    bodyCharacters,
  }
}

function read<T extends z.ZodType>(schema: T, body: unknown): z.output<T> {
  const result = schema.safeParse(body)
  if (!result.success) throw new Invalid(problemsOf(result.error, 'body'))
  return result.data
}

// what zod returns has its members in another order; what goes upstream keeps the client's
function conversationOf(request: z.output<typeof countTokensRequest>, body: Body, headers: IncomingHttpHeaders) {
  const choice = request.tool_choice ?? undefined
  const mcpServers = declaredServers(request)
  const { provider } = splitProviderServers(body)
  const messages = withoutEchoes(body.messages)
  const searches = request.tools?.some(({ type }) => toolSearchOfType(type ?? '') !== undefined)
  if (messages.length === 0) throw new Fault('invalid_request', "'messages' holds nothing that a model could answer")
  return {
    dialect: 'messages' as const,
    model: request.model,
    includeUsage: true,
    messages: [...systemOf(body.system), ...messages.map(readMessage)],
    tools: (request.tools ?? []).map((tool, at) => readTool(tool, body.tools?.[at] ?? {})),
    toolChoice: readChoice(choice),
    parallelToolCalls: readParallel(choice),
    user: request.metadata?.user_id ?? undefined,
    ...(searches && { foundTools: foundTools(body.messages) }),
    ...(mcpServers && { mcpServers }),
    raw: {
      ...Object.fromEntries(Object.entries(body).filter(([name]) => !OURS.has(name))),
      ...(provider.length > 0 && { mcp_servers: provider }),
    },
    headers: ownHeaders(headers, request.betas ?? []),
  }
}

/** Those are the provider's to judge. */
const withoutProviderServers = (body: unknown): unknown =>
  typeof body === 'object' && body !== null ? splitProviderServers(body as JsonObject).body : body

/** `system` stands before the conversation, as a message of its own. */
function systemOf(system: Json | undefined): Message[] {
  if (system === undefined || system === null) return []
  return [readMessage({ role: 'system', content: system })]
}

function readTool({ type, name, description, input_schema, code_execution }: MessagesTool, raw: JsonObject): ToolEntry {
  if (type != null && type !== 'custom') return { kind: 'typed', type, raw }
  // the bare object is a keyword of its own
  if (name === undefined && code_execution !== undefined) return { kind: 'typed', type: 'code_execution', raw }
  return {
    kind: 'function',
    name: name ?? '',
    description: description ?? undefined,
    parameters: input_schema as JsonObject | undefined,
    raw,
  }
}

function readChoice(choice: MessagesToolChoice | undefined): ToolChoice | undefined {
  if (choice === undefined) return undefined
  switch (choice.type) {
    case 'auto':
    case 'none':
      return { type: choice.type }
    case 'any':
      return { type: 'required' }
    case 'tool':
      return { type: 'function', name: String(choice.name) }
    default:
      return { type: 'typed', name: choice.type, raw: choice as JsonObject }
  }
}

function readParallel(choice: MessagesToolChoice | undefined): boolean | undefined {
  const alone = choice?.disable_parallel_tool_use
  return typeof alone === 'boolean' ? !alone : undefined
}

/** Headers by which a client of the vendor says which form of the API it speaks. */
const HEADERS = ['anthropic-version', 'anthropic-beta']

/** Betas may be named in the body as well, and go upstream as the header that the vendor reads. */
function ownHeaders(headers: IncomingHttpHeaders, betas: string[]): Record<string, string> {
  return Object.fromEntries(
    HEADERS.flatMap((name) => {
      const values = [headers[name] ?? [], name === 'anthropic-beta' ? betas : []].flat()
      if (values.length === 0 || values.join('') === '') return []
      const text = values.join(',')
      if (!/^[\w\-., ]{1,2048}$/.test(text))
        throw new Fault('invalid_request', `the header ${name} is no list of names`)
      return [[name, text]]
    }),
  )
}

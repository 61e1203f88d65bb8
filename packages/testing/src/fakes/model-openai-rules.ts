import type { FakeJson } from './model-script.ts'

export interface OpenAiRules {
  /** A compatible server: members of its own are taken too, and thinking in the history. */
  compatible?: boolean
}

/** Top-level members of a request, as the vendor's API reference has them. */
const MEMBERS = new Set(
  `audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages metadata
  modalities model moderation n parallel_tool_calls prediction presence_penalty prompt_cache_key prompt_cache_options
  prompt_cache_retention reasoning_effort response_format safety_identifier seed service_tier stop store stream
  stream_options temperature tool_choice tools top_logprobs top_p user verbosity web_search_options`.split(/\s+/),
)
const MESSAGE_MEMBERS: Record<string, string[]> = {
  system: ['content', 'name'],
  developer: ['content', 'name'],
  user: ['content', 'name'],
  assistant: ['content', 'name', 'refusal', 'audio', 'tool_calls', 'function_call'],
  tool: ['content', 'tool_call_id'],
  function: ['content', 'name'],
}

/** What the vendor would answer a 400 for; undefined when the request is in order. */
export function openAiMistake(body: FakeJson, { compatible = false }: OpenAiRules): string | undefined {
  const unknown = Object.keys(body).find((name) => !MEMBERS.has(name))
  if (unknown !== undefined && !compatible) return `Unrecognized request argument supplied: ${unknown}`
  if (typeof body.model !== 'string' || body.model === '') return 'you must provide a model parameter'
  if (body.stream_options !== undefined && body.stream !== true)
    return "The 'stream_options' parameter is only allowed when 'stream' is enabled."
  if (body.max_tokens != null && body.max_completion_tokens != null)
    return "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported."
  return toolMistake(body) ?? messagesMistake(body.messages, compatible)
}

function toolMistake({ tools, tool_choice, parallel_tool_calls }: FakeJson): string | undefined {
  if (tools === undefined) {
    if (tool_choice !== undefined)
      return "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified."
    return parallel_tool_calls === undefined
      ? undefined
      : "Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified."
  }
  if (!Array.isArray(tools) || tools.length === 0) return "Invalid 'tools': empty array."
  const names = new Set<unknown>()
  for (const [i, tool] of (tools as FakeJson[]).entries()) {
    if (tool.type !== 'function' && tool.type !== 'custom')
      return `Invalid value: '${String(tool.type)}'. Supported values are: 'function' and 'custom'.`
    const declared = tool[tool.type] as FakeJson | undefined
    if (typeof declared?.name !== 'string' || !/^[\w-]{1,64}$/.test(declared.name))
      return `Invalid 'tools[${i}].function.name': string does not match pattern.`
    const schema = declared.parameters as FakeJson | undefined
    if (schema !== undefined && schema.type !== 'object')
      return `Invalid schema for function '${declared.name}': schema must be a JSON Schema of 'type: "object"'.`
    names.add(declared.name)
  }
  const named = (tool_choice as FakeJson | undefined)?.function as FakeJson | undefined
  if (named && !names.has(named.name)) return `Tool choice '${String(named.name)}' not found in 'tools' parameter.`
  if (typeof tool_choice === 'string' && !['auto', 'none', 'required'].includes(tool_choice))
    return `Invalid value: '${tool_choice}'.`
  return undefined
}

function messagesMistake(messages: unknown, compatible: boolean): string | undefined {
  if (!Array.isArray(messages) || messages.length === 0) return "Invalid 'messages': empty array."
  let awaited: string[] = []
  for (const [i, message] of (messages as FakeJson[]).entries()) {
    const members = MESSAGE_MEMBERS[String(message.role)]
    if (!members) return `Invalid value: '${String(message.role)}' for 'messages[${i}].role'.`
    const unknown = Object.keys(message).find((name) => name !== 'role' && !members.includes(name))
    if (unknown !== undefined && !(compatible && unknown === 'reasoning_content'))
      return `Additional properties are not allowed ('${unknown}' was unexpected) - 'messages.${i}'`
    if (message.role === 'tool') {
      if (!awaited.includes(String(message.tool_call_id)))
        return "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
      awaited = awaited.filter((id) => id !== message.tool_call_id)
    } else if (awaited.length > 0) {
      return unanswered(awaited)
    }
    const mistake = contentMistake(message, i)
    if (mistake) return mistake
    if (message.role === 'assistant') awaited = ((message.tool_calls ?? []) as FakeJson[]).map(({ id }) => String(id))
  }
  return awaited.length > 0 ? unanswered(awaited) : undefined
}

const unanswered = (ids: string[]): string =>
  `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${ids.join(', ')}`

function contentMistake({ role, content, tool_calls }: FakeJson, i: number): string | undefined {
  if (tool_calls !== undefined) {
    if (!Array.isArray(tool_calls) || tool_calls.length === 0)
      return `Invalid 'messages[${i}].tool_calls': empty array.`
    for (const call of tool_calls as FakeJson[]) {
      const called = call.function as FakeJson | undefined
      if (typeof call.id !== 'string' || call.id === '')
        return `Missing required parameter: 'messages[${i}].tool_calls[0].id'.`
      if (call.type === 'function' && (typeof called?.name !== 'string' || typeof called.arguments !== 'string'))
        return `Missing required parameter: 'messages[${i}].tool_calls[0].function'.`
    }
  }
  if (role === 'assistant' && content == null)
    return tool_calls ? undefined : `Missing required parameter: 'messages[${i}].content'.`
  if (typeof content === 'string') return undefined
  if (!Array.isArray(content) || content.length === 0) return `Invalid type for 'messages[${i}].content'.`
  const odd = (content as FakeJson[]).find(
    ({ type }) => !['text', 'image_url', 'input_audio', 'file', 'refusal'].includes(String(type)),
  )
  return odd && `Invalid value: '${String(odd.type)}' for 'messages[${i}].content[0].type'.`
}

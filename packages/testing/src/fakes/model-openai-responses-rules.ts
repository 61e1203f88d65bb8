import type { FakeFiles } from './model-files.ts'
import { inputMistake, type StoredNowhere } from './model-openai-responses-input.ts'
import type { FakeJson } from './model-script.ts'

/** Top-level members of a request, as the vendor's API reference has them. */
const MEMBERS = new Set(
  `background context_management conversation include input instructions max_output_tokens max_tool_calls metadata model
  moderation parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention
  reasoning safety_identifier service_tier store stream stream_options temperature text tool_choice tools top_logprobs
  top_p truncation user`.split(/\s+/),
)
const TOOLS = new Set(
  `apply_patch code_interpreter computer computer_use_preview custom file_search function image_generation local_shell mcp
  namespace shell tool_search web_search web_search_preview web_search_2025_08_26 web_search_preview_2025_03_11`.split(
    /\s+/,
  ),
)
const INCLUDABLE = new Set(
  `code_interpreter_call.outputs computer_call_output.output.image_url file_search_call.results
  message.input_image.image_url message.output_text.logprobs reasoning.encrypted_content web_search_call.action.sources
  web_search_call.results`.split(/\s+/),
)

/** What the vendor would answer a 400 for; undefined when the request is in order. */
export function openAiResponsesMistake(
  body: FakeJson,
  stored: StoredNowhere & { files: Pick<FakeFiles, 'find' | 'containers'> },
): string | undefined {
  const unknown = Object.keys(body).find((name) => !MEMBERS.has(name))
  if (unknown !== undefined) return `Unknown parameter: '${unknown}'.`
  if (typeof body.model !== 'string' || body.model === '') return "Missing required parameter: 'model'."
  if (body.previous_response_id != null)
    return `Previous response with id '${String(body.previous_response_id)}' not found.`
  if (body.stream_options != null && body.stream !== true)
    return "The 'stream_options' parameter is only allowed when 'stream' is enabled."
  const most = body.max_output_tokens
  if (most != null && !(typeof most === 'number' && most >= 16))
    return `Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got ${String(most)} instead.`
  const odd = ((body.include ?? []) as string[]).find((one) => !INCLUDABLE.has(one))
  if (odd !== undefined) return `Invalid value: '${odd}' for 'include[0]'.`
  if (/^gpt-4/.test(body.model) && (body.include as string[] | undefined)?.includes('reasoning.encrypted_content'))
    return 'Encrypted content is not supported with this model.'
  return (
    formatMistake(body.text as FakeJson | undefined) ??
    toolsMistake(body) ??
    containerMistake(body, stored.files) ??
    inputMistake(body.input, stored)
  )
}

function formatMistake(text: FakeJson | undefined): string | undefined {
  const format = text?.format as FakeJson | undefined
  if (format === undefined || format === null || format.type === 'text' || format.type === 'json_object')
    return undefined
  if (format.type !== 'json_schema') return `Invalid value: '${String(format.type)}' for 'text.format.type'.`
  if (typeof format.name !== 'string') return "Missing required parameter: 'text.format.name'."
  if (format.schema === undefined) return "Missing required parameter: 'text.format.schema'."
  return format.strict === true ? openSchema(format.schema as FakeJson, format.name) : undefined
}

function toolsMistake({ tools, tool_choice }: FakeJson): string | undefined {
  const names = new Set<unknown>()
  for (const [i, tool] of ((tools ?? []) as FakeJson[]).entries()) {
    if (!TOOLS.has(String(tool.type))) return `Invalid value: '${String(tool.type)}' for 'tools[${i}].type'.`
    names.add(tool.name)
    if (tool.type !== 'function') continue
    if (typeof tool.name !== 'string' || !/^[\w-]{1,128}$/.test(tool.name))
      return `Missing required parameter: 'tools[${i}].name'.`
    const schema = tool.parameters as FakeJson | undefined
    if (schema?.type !== 'object')
      return `Invalid schema for function '${tool.name}': schema must be of 'type: "object"'.`
    // a function is strict unless it says otherwise
    const mistake = tool.strict === false ? undefined : openSchema(schema, tool.name)
    if (mistake) return mistake
  }
  if (typeof tool_choice === 'string')
    return ['auto', 'none', 'required'].includes(tool_choice) ? undefined : `Invalid value: '${tool_choice}'.`
  const { type, name } = (tool_choice ?? {}) as FakeJson
  return type === 'function' && !names.has(name)
    ? `Tool choice '${String(name)}' not found in 'tools' parameter.`
    : undefined
}

/** Code runs in a container: a new one with files in it, or one that is there. */
function containerMistake({ tools }: FakeJson, files: Pick<FakeFiles, 'find' | 'containers'>): string | undefined {
  for (const [i, { type, container }] of ((tools ?? []) as FakeJson[]).entries()) {
    if (type !== 'code_interpreter') continue
    if (container === undefined) return `Missing required parameter: 'tools[${i}].container'.`
    if (typeof container === 'string') {
      if (!files.containers.has(container)) return `Container with id '${container}' not found.`
      continue
    }
    const { type: kind, file_ids: ids = [] } = container as { type?: string; file_ids?: string[] }
    if (kind !== 'auto') return `Invalid value: '${String(kind)}' for 'tools[${i}].container.type'.`
    if (ids.length > 50) return `Invalid 'tools[${i}].container.file_ids': array too long.`
    const missing = ids.find((id) => files.find(id) === undefined)
    if (missing !== undefined) return `No such File object: ${missing}`
  }
  return undefined
}

/** A strict schema closes every object and requires every member of it. */
function openSchema(schema: FakeJson, name: string): string | undefined {
  if (schema.type === 'object') {
    const properties = Object.keys((schema.properties ?? {}) as FakeJson)
    const required = (schema.required ?? []) as string[]
    if (schema.additionalProperties !== false)
      return `Invalid schema for '${name}': 'additionalProperties' is required to be supplied and to be false.`
    const missing = properties.find((one) => !required.includes(one))
    if (missing)
      return `Invalid schema for '${name}': 'required' must include every key in properties. Missing '${missing}'.`
  }
  const children = [...Object.values((schema.properties ?? {}) as FakeJson), ...(schema.items ? [schema.items] : [])]
  return children.map((child) => openSchema(child as FakeJson, name)).find((mistake) => mistake !== undefined)
}

import { historyMistake, type ThinkingRules } from './model-anthropic-history.ts'
import type { FakeJson } from './model-script.ts'

/** Top-level members of a request, as the vendor's API reference has them. */
const MEMBERS = new Set(
  `cache_control container context_management diagnostics inference_geo max_tokens mcp_servers messages metadata model
  output_config service_tier speed stop_sequences stream system temperature thinking tool_choice tools top_k top_p`.split(
    /\s+/,
  ),
)

/** What the vendor would answer a 400 for; undefined when the request is in order. */
export function anthropicMistake(body: FakeJson, rules: ThinkingRules): string | undefined {
  const unknown = Object.keys(body).find((name) => !MEMBERS.has(name))
  if (unknown !== undefined) return `${unknown}: Extra inputs are not permitted`
  if (typeof body.model !== 'string' || body.model === '') return 'model: Field required'
  const { max_tokens: most, temperature } = body
  if (typeof most !== 'number' || !Number.isInteger(most) || most < 1) return 'max_tokens: Field required'
  if (temperature !== undefined && !(typeof temperature === 'number' && temperature >= 0 && temperature <= 1))
    return 'temperature: range: 0..1'
  return (
    stopMistake(body) ??
    systemMistake(body.system) ??
    thinkingMistake(body, most) ??
    toolsMistake(body) ??
    outputMistake(body.output_config) ??
    historyMistake(body, rules)
  )
}

function stopMistake({ stop_sequences: stop, metadata }: FakeJson): string | undefined {
  if (stop !== undefined && (!Array.isArray(stop) || stop.some((one) => typeof one !== 'string' || one.trim() === '')))
    return 'stop_sequences: each stop sequence must contain non-whitespace'
  if (metadata === undefined) return undefined
  const other = Object.keys(metadata as FakeJson).find((name) => name !== 'user_id')
  return other && `metadata.${other}: Extra inputs are not permitted`
}

function systemMistake(system: unknown): string | undefined {
  if (system === undefined || typeof system === 'string') return undefined
  if (!Array.isArray(system)) return 'system: Input should be a valid list'
  const bad = (system as FakeJson[]).some(
    ({ type, text }) => type !== 'text' || typeof text !== 'string' || text === '',
  )
  return bad ? 'system: text content blocks must be non-empty' : undefined
}

function thinkingMistake({ thinking, tool_choice }: FakeJson, most: number): string | undefined {
  if (thinking === undefined) return undefined
  const { type, budget_tokens: budget } = thinking as FakeJson
  if (type !== 'enabled') return ['adaptive', 'disabled'].includes(String(type)) ? undefined : 'thinking.type: unknown'
  if (typeof budget !== 'number' || budget < 1024 || budget >= most)
    return 'thinking.budget_tokens: must be at least 1024 and less than max_tokens'
  const forced = ['any', 'tool'].includes(String((tool_choice as FakeJson | undefined)?.type))
  return forced ? 'Thinking may not be enabled when tool_choice forces tool use.' : undefined
}

function toolsMistake({ tools, tool_choice }: FakeJson): string | undefined {
  if (tools === undefined)
    return tool_choice === undefined ? undefined : 'tool_choice: may only be specified while providing tools'
  const names = new Set<unknown>()
  const all = tools as FakeJson[]
  if (all.length > 0 && all.every(({ defer_loading: waits }) => waits === true))
    return 'All tools have defer_loading set. At least one tool must be non-deferred.'
  for (const [i, tool] of all.entries()) {
    if (typeof tool.name !== 'string' || !/^[\w-]{1,128}$/.test(tool.name))
      return `tools.${i}.name: String should match pattern`
    if (names.has(tool.name)) return 'tools: Tool names must be unique.'
    names.add(tool.name)
    if (tool.type !== undefined && tool.type !== 'custom') {
      if (/_\d{8}$/.test(String(tool.type))) continue
      return `tools.${i}: Input tag '${String(tool.type)}' does not match any of the expected tags`
    }
    if ((tool.input_schema as FakeJson | undefined)?.type !== 'object')
      return `tools.${i}.input_schema.type: Field required`
    const odd = Object.keys(tool).find((name) => !TOOL_MEMBERS.has(name))
    if (odd) return `tools.${i}.${odd}: Extra inputs are not permitted`
    if (tool.strict === true) {
      const mistake = schemaMistake(tool.input_schema as FakeJson, `tools.${i}.input_schema`)
      if (mistake) return mistake
    }
  }
  return choiceMistake(tool_choice as FakeJson | undefined, names)
}

const TOOL_MEMBERS = new Set([
  'type',
  'name',
  'description',
  'input_schema',
  'cache_control',
  'strict',
  'input_examples',
  'defer_loading',
])

function choiceMistake(choice: FakeJson | undefined, names: Set<unknown>): string | undefined {
  if (choice === undefined) return undefined
  if (!['auto', 'any', 'tool', 'none'].includes(String(choice.type))) return 'tool_choice: unknown type'
  if (choice.type === 'tool' && !names.has(choice.name))
    return `Tool '${String(choice.name)}' not found in provided tools`
  if (choice.type === 'none' && choice.disable_parallel_tool_use !== undefined)
    return 'tool_choice.none.disable_parallel_tool_use: Extra inputs are not permitted'
  return undefined
}

function outputMistake(config: unknown): string | undefined {
  const { effort, format } = (config ?? {}) as { effort?: string; format?: FakeJson }
  if (effort !== undefined && !['low', 'medium', 'high', 'xhigh', 'max'].includes(effort))
    return 'output_config.effort: unknown'
  if (format === undefined) return undefined
  if (format.type !== 'json_schema') return 'output_config.format.type: unknown'
  return schemaMistake(format.schema as FakeJson, 'output_config.format.schema')
}

const UNSUPPORTED = ['minimum', 'maximum', 'multipleOf', 'minLength', 'maxLength', 'pattern', 'maxItems', 'oneOf']

/** Structured outputs take closed objects and few constraints. */
function schemaMistake(schema: FakeJson, at: string): string | undefined {
  if (schema.type === 'object' && schema.additionalProperties !== false)
    return `${at}: For 'object' type, 'additionalProperties' must be explicitly set to false`
  const bad = UNSUPPORTED.find((keyword) => Object.hasOwn(schema, keyword))
  if (bad) return `${at}: For '${String(schema.type)}' type, property '${bad}' is not supported`
  const children = [...Object.values((schema.properties ?? {}) as FakeJson), ...(schema.items ? [schema.items] : [])]
  for (const child of children) {
    const mistake = schemaMistake(child as FakeJson, at)
    if (mistake) return mistake
  }
  return undefined
}

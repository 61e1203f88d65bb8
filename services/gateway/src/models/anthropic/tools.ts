import { Fault } from '@tollgate/contracts'
import { isObject } from '../../conversation/json.ts'
import type { Json, JsonObject, ModelRequest, ToolChoice, ToolEntry } from '../../conversation/turn.ts'
import type { Transcript } from './messages.ts'
import { outputSchema } from './output-schema.ts'

/**
 * `tools` and `tool_choice`. The vendor refuses a transcript with tool blocks where no tools are declared (L-08), so for
 * one that has none left the called names are declared again and forbidden.
 */
export function toolMembers(request: ModelRequest, { messages }: Transcript): JsonObject {
  if (request.tools.length > 0) {
    const choice = choiceMember(request.toolChoice, request.parallelToolCalls)
    return { tools: request.tools.map(toolEntry), ...(choice && { tool_choice: choice }) }
  }
  const called = new Set(
    messages.flatMap(({ content }) => content.flatMap(({ type, name }) => (type === 'tool_use' ? [String(name)] : []))),
  )
  if (called.size === 0) return {}
  return {
    tools: Array.from(called, (name) => ({ name, input_schema: { type: 'object' } })),
    tool_choice: { type: 'none' },
  }
}

function toolEntry(tool: ToolEntry): JsonObject {
  if (tool.kind === 'typed')
    throw new Fault('invalid_request', `this model's provider has no tool of type '${tool.type}'`)
  const { name, description, parameters, raw } = tool
  const strict = raw.strict === true || (isObject(raw.function) && raw.function.strict === true)
  const schema = inputSchema(parameters)
  return {
    name,
    ...(description !== undefined && { description }),
    input_schema: strict ? outputSchema(schema) : schema,
    ...(strict && { strict }),
  }
}

/** A function without parameters takes an empty object; the vendor wants the type said. */
function inputSchema(parameters: Json | undefined): JsonObject {
  if (parameters === undefined || parameters === null) return { type: 'object', properties: {} }
  if (!isObject(parameters)) throw new Fault('invalid_request', "a function's parameters must be a JSON schema")
  return parameters.type === undefined ? { type: 'object', ...parameters } : parameters
}

/** Chat's `parallel_tool_calls: false` is the vendor's `disable_parallel_tool_use: true` (BR-028). */
export function choiceMember(choice: ToolChoice | undefined, parallel: boolean | undefined): JsonObject | undefined {
  const alone: JsonObject = parallel === false ? { disable_parallel_tool_use: true } : {}
  switch (choice?.type) {
    case undefined:
      return parallel === false ? { type: 'auto', ...alone } : undefined
    case 'auto':
      return { type: 'auto', ...alone }
    case 'required':
      return { type: 'any', ...alone }
    case 'function':
      return { type: 'tool', name: choice.name, ...alone }
    case 'none':
      return { type: 'none' }
    case 'typed':
      throw new Fault('invalid_request', `this model's provider cannot be made to choose '${choice.name}'`)
    default:
      return choice satisfies never
  }
}

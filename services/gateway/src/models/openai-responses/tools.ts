import { Fault } from '@tollgate/contracts'
import { isObject } from '../../conversation/json.ts'
import type { Json, JsonObject, ModelRequest, ToolChoice, ToolEntry, Turn } from '../../conversation/turn.ts'

/** What a request says of tools; a member that is undefined is said by nobody. */
export function toolMembers(request: ModelRequest): Record<string, Json | undefined> {
  const { turn, tools, toolChoice, parallelToolCalls } = request
  // a turn without tools keeps what it says about them; in any other it falls with the last tool (L-08)
  if (tools.length === 0)
    return turn.tools.length === 0 && turn.dialect === 'responses'
      ? {}
      : { tools: undefined, tool_choice: undefined, parallel_tool_calls: undefined }
  return {
    tools: tools.map((tool) => toolEntry(tool, turn)),
    tool_choice: chosen(toolChoice, turn),
    parallel_tool_calls: parallelToolCalls,
  }
}

/** Unless it is told otherwise, this API takes every schema for a strict one. */
function toolEntry(tool: ToolEntry, { dialect }: Turn): JsonObject {
  if (dialect === 'responses') return tool.raw
  if (tool.kind === 'typed')
    throw new Fault('invalid_request', `this model's provider has no tool of type '${tool.type}'`)
  const { name, description, parameters, raw } = tool
  const strict = raw.strict === true || (isObject(raw.function) && raw.function.strict === true)
  return {
    type: 'function',
    name,
    ...(description !== undefined && { description }),
    parameters: parameters ?? { type: 'object', properties: {} },
    strict,
  }
}

function chosen(choice: ToolChoice | undefined, { dialect, toolChoice, raw }: Turn): Json | undefined {
  if (dialect === 'responses' && choice === toolChoice) return raw.tool_choice
  switch (choice?.type) {
    case undefined:
      return undefined
    case 'auto':
    case 'none':
    case 'required':
      return choice.type
    case 'function':
      return { type: 'function', name: choice.name }
    case 'typed':
      if (dialect === 'responses') return choice.raw
      throw new Fault('invalid_request', `this model's provider cannot be made to choose '${choice.name}'`)
    default:
      return choice satisfies never
  }
}

import { isObject } from '../../conversation/json.ts'
import type { Json, JsonObject, ModelRequest, ToolChoice, ToolEntry } from '../../conversation/turn.ts'
import { notCarried } from '../chat-members.ts'
import { geminiSchema } from './schema.ts'

/** `tools` and `toolConfig`; declarations of code that the vendor runs itself become its own form. */
export function toolMembers({ tools, toolChoice, parallelToolCalls, turn }: ModelRequest): JsonObject {
  if (tools.length === 0) return {}
  if (parallelToolCalls === false)
    throw notCarried(turn.dialect === 'messages' ? 'disable_parallel_tool_use' : 'parallel_tool_calls')
  const functions = tools.flatMap((tool) => (tool.kind === 'function' ? [declared(tool)] : []))
  const runsCode = tools.filter((tool) => tool.kind === 'typed' && isCode(tool.type)).length > 0
  const config = functionCallingConfig(toolChoice)
  return {
    tools: [
      ...(functions.length > 0 ? [{ functionDeclarations: functions }] : []),
      ...(runsCode ? [{ codeExecution: {} }] : []),
    ],
    ...(config && { toolConfig: { functionCallingConfig: config } }),
  }
}

function declared({ name, description, parameters }: ToolEntry & { kind: 'function' }): JsonObject {
  return {
    name,
    ...(description !== undefined && { description }),
    ...(hasMembers(parameters) && { parametersJsonSchema: geminiSchema(parameters) }),
  }
}

/** A function without parameters has no schema: the vendor refuses an empty one. */
const hasMembers = (parameters: Json | undefined): parameters is JsonObject =>
  isObject(parameters) && Object.keys(isObject(parameters.properties) ? parameters.properties : {}).length > 0

function isCode(type: string): boolean {
  if (/^code_execution(_\d{8})?$/.test(type)) return true
  throw notCarried(type)
}

function functionCallingConfig(choice: ToolChoice | undefined): JsonObject | undefined {
  switch (choice?.type) {
    case undefined:
    case 'auto':
      return undefined
    case 'none':
      return { mode: 'NONE' }
    case 'required':
      return { mode: 'ANY' }
    case 'function':
      return { mode: 'ANY', allowedFunctionNames: [choice.name] }
    case 'typed':
      throw notCarried(choice.name)
    default:
      return choice satisfies never
  }
}

import type { FakeJson } from './model-script.ts'

export interface StoredNowhere {
  /** Encrypted reasoning this server has given out: nothing else can be read. */
  encrypted: ReadonlySet<string>
}

/** Members of the items that a request is judged by; of any other known type only the type is. */
const MEMBERS: Record<string, string[]> = {
  message: ['role', 'content', 'id', 'status', 'phase'],
  function_call: ['call_id', 'name', 'arguments', 'id', 'status', 'namespace', 'caller'],
  function_call_output: ['call_id', 'output', 'id', 'status', 'caller'],
  custom_tool_call: ['call_id', 'name', 'input', 'id', 'status', 'namespace', 'caller'],
  custom_tool_call_output: ['call_id', 'output', 'id', 'status', 'caller'],
  reasoning: ['id', 'summary', 'content', 'encrypted_content', 'status'],
}
const OTHERS = new Set(
  `additional_tools apply_patch_call apply_patch_call_output code_interpreter_call compaction computer_call
  computer_call_output file_search_call image_generation_call item_reference local_shell_call local_shell_call_output
  mcp_approval_request mcp_approval_response mcp_call mcp_list_tools shell_call shell_call_output tool_search_call
  tool_search_output web_search_call`.split(/\s+/),
)
const CALLS = new Map([
  ['function_call_output', 'function_call'],
  ['custom_tool_call_output', 'custom_tool_call'],
])

/** What the vendor finds wrong with `input`. */
export function inputMistake(input: unknown, stored: StoredNowhere): string | undefined {
  if (typeof input === 'string') return input === '' ? "Missing required parameter: 'input'." : undefined
  if (!Array.isArray(input) || input.length === 0) return "Missing required parameter: 'input'."
  const items = input as FakeJson[]
  for (const [i, item] of items.entries()) {
    const mistake = itemMistake(item, i, stored)
    if (mistake) return mistake
  }
  return pairingMistake(items)
}

function itemMistake(item: FakeJson, i: number, stored: StoredNowhere): string | undefined {
  const type = String(item.type ?? (item.role === undefined ? 'item_reference' : 'message'))
  const members = MEMBERS[type]
  if (!members) {
    if (!OTHERS.has(type)) return `Invalid value: '${type}'. Supported values are: 'message', 'function_call', ...`
    return type === 'item_reference' ? notStored(item.id) : undefined
  }
  const unknown = Object.keys(item).find((name) => name !== 'type' && !members.includes(name))
  if (unknown !== undefined) return `Unknown parameter: 'input[${i}].${unknown}'.`
  if ('id' in item && !/^[\w-]{1,64}$/.test(String(item.id))) return `Invalid 'input[${i}].id': '${String(item.id)}'.`
  if (/_otari_|^otari_/.test(String(item.id))) return notStored(item.id)
  switch (type) {
    case 'message':
      return messageMistake(item, i)
    case 'reasoning':
      return reasoningMistake(item, i, stored)
    default:
      return callMistake(item, type, i)
  }
}

const notStored = (id: unknown): string =>
  `Item with id '${String(id)}' not found. Items are not persisted when \`store\` is set to false.`

function messageMistake({ role, content }: FakeJson, i: number): string | undefined {
  if (!['user', 'assistant', 'system', 'developer'].includes(String(role)))
    return `Invalid value: '${String(role)}' for 'input[${i}].role'.`
  if (typeof content === 'string') return undefined
  if (!Array.isArray(content)) return `Invalid type for 'input[${i}].content'.`
  const parts = role === 'assistant' ? ['output_text', 'refusal'] : ['input_text', 'input_image', 'input_file']
  for (const part of content as FakeJson[]) {
    if (!parts.includes(String(part.type)))
      return `Invalid value: '${String(part.type)}'. Supported values are: ${parts.map((one) => `'${one}'`).join(', ')}.`
    if (/text$/.test(String(part.type)) && typeof part.text !== 'string')
      return `Missing required parameter: 'input[${i}].content[0].text'.`
    if (part.type === 'input_file' && part.file_data !== undefined && part.filename === undefined)
      return `Missing required parameter: 'input[${i}].content[0].filename'.`
  }
  return undefined
}

function reasoningMistake({ id, summary, encrypted_content }: FakeJson, i: number, { encrypted }: StoredNowhere) {
  if (!Array.isArray(summary)) return `Missing required parameter: 'input[${i}].summary'.`
  if (encrypted_content == null) return notStored(id)
  return encrypted.has(String(encrypted_content))
    ? undefined
    : `The encrypted content ${String(encrypted_content)} could not be verified.`
}

function callMistake(item: FakeJson, type: string, i: number): string | undefined {
  const wanted = CALLS.has(type) ? ['call_id'] : ['call_id', 'name', type === 'function_call' ? 'arguments' : 'input']
  const missing = wanted.find((name) => typeof item[name] !== 'string')
  if (missing) return `Missing required parameter: 'input[${i}].${missing}'.`
  if (!CALLS.has(type)) return undefined
  return typeof item.output === 'string' || Array.isArray(item.output)
    ? undefined
    : `Invalid type for 'input[${i}].output': expected a string or a list.`
}

/** Every call is answered once, after it was made, and nothing else is answered. */
function pairingMistake(items: FakeJson[]): string | undefined {
  const open = new Map<string, string>()
  for (const { type, call_id } of items) {
    const called = CALLS.get(String(type))
    if (called === undefined) {
      if (type === 'function_call' || type === 'custom_tool_call') open.set(String(call_id), String(type))
    } else if (open.get(String(call_id)) !== called) {
      return `No tool call found for ${called} output with call_id ${String(call_id)}.`
    } else {
      open.delete(String(call_id))
    }
  }
  const [unanswered] = open.keys()
  return unanswered && `No tool output found for function call ${unanswered}.`
}

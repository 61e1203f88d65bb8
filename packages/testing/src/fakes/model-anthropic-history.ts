import type { FakeJson } from './model-script.ts'

export interface ThinkingRules {
  /** Signatures this server has given out: any other is a forgery. */
  signatures: ReadonlySet<string>
  /** Thinking may come without one. */
  unsigned: boolean
  /** Whether a file is there for a container. */
  hasFile(id: unknown): boolean
}

type Message = { role: string; content: FakeJson[] }

/** What the vendor finds wrong with a conversation. */
export function historyMistake({ messages, tools, thinking }: FakeJson, rules: ThinkingRules): string | undefined {
  if (!Array.isArray(messages) || messages.length === 0) return 'messages: at least one message is required'
  const read = (messages as FakeJson[]).map(readMessage)
  if (read[0]?.role !== 'user') return 'messages: first message must use the "user" role'
  const ids = new Set<string>()
  for (const [i, message] of read.entries()) {
    if (message.role !== 'user' && message.role !== 'assistant')
      return `messages.${i}.role: Input should be 'user' or 'assistant'`
    const last = i === read.length - 1
    if (message.content.length === 0 && !(last && message.role === 'assistant'))
      return `messages.${i}: all messages must have non-empty content except for the optional final assistant message`
    for (const [j, block] of message.content.entries()) {
      const mistake = blockMistake(block, message.role, ids, rules)
      if (mistake) return `messages.${i}.content.${j}: ${mistake}`
    }
    const mistake = pairingMistake(read, i)
    if (mistake) return `messages.${i}: ${mistake}`
  }
  return toolUseMistake(read, tools) ?? uploadMistake(read, tools) ?? endMistake(read, thinking as FakeJson | undefined)
}

const readMessage = ({ role, content }: FakeJson): Message => ({
  role: String(role),
  content: typeof content === 'string' ? [{ type: 'text', text: content }] : ((content ?? []) as FakeJson[]),
})

function blockMistake(block: FakeJson, role: string, ids: Set<string>, rules: ThinkingRules): string | undefined {
  switch (block.type) {
    case 'text':
      if (typeof block.text !== 'string' || block.text === '') return 'text content blocks must be non-empty'
      return block.text.trim() === '' ? 'text content blocks must contain non-whitespace text' : undefined
    case 'thinking':
      if (role !== 'assistant') return 'thinking blocks may only be in assistant messages'
      if (rules.unsigned && block.signature === undefined) return undefined
      return rules.signatures.has(String(block.signature)) ? undefined : 'Invalid `signature` in `thinking` block'
    case 'redacted_thinking':
      return typeof block.data === 'string' ? undefined : 'data: Field required'
    case 'tool_use':
      if (typeof block.id !== 'string' || !/^[\w-]+$/.test(block.id))
        return "tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
      if (ids.has(block.id)) return '`tool_use` ids must be unique'
      ids.add(block.id)
      if (typeof block.input !== 'object' || block.input === null || Array.isArray(block.input))
        return 'tool_use.input: Input should be a valid dictionary'
      return role === 'assistant' ? undefined : 'tool_use blocks can only be in assistant messages'
    case 'tool_result':
      return role === 'user' ? undefined : 'tool_result blocks can only be in user messages'
    case 'image':
    case 'document':
      return sourceMistake(block.source as FakeJson | undefined)
    case 'container_upload':
      if (role !== 'user') return 'container_upload blocks can only be in user messages'
      return rules.hasFile(block.file_id) ? undefined : `File not found: ${String(block.file_id)}`
    case 'server_tool_use':
    case 'web_search_tool_result':
    case 'tool_search_tool_result':
    case 'bash_code_execution_tool_result':
    case 'code_execution_tool_result':
      return undefined
    default:
      return `Input tag '${String(block.type)}' found using 'type' does not match any of the expected tags`
  }
}

function sourceMistake(source: FakeJson | undefined): string | undefined {
  if (source?.type === 'url') return typeof source.url === 'string' ? undefined : 'source.url: Field required'
  if (source?.type === 'text') return typeof source.data === 'string' ? undefined : 'source.data: Field required'
  const known = ['image/jpeg', 'image/png', 'image/gif', 'image/webp', 'application/pdf']
  if (source?.type !== 'base64' || !known.includes(String(source.media_type))) return 'source.media_type: unknown'
  return /^[\w+/]+=*$/.test(String(source.data)) ? undefined : 'source.data: invalid base64'
}

/** Every call is answered in the very next message, before anything else in it, and nothing else is. */
function pairingMistake(messages: Message[], at: number): string | undefined {
  const { role, content } = messages[at]!
  const results = content.filter(({ type }) => type === 'tool_result').map(({ tool_use_id: id }) => String(id))
  const called = callsOf(messages[at - 1])
  const stray = results.find((id) => !called.includes(id))
  if (stray !== undefined)
    return `unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${stray}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`
  if (new Set(results).size !== results.length) return 'each tool_use must have a single result'
  const firstOther = content.findIndex(({ type }) => type !== 'tool_result')
  if (role === 'user' && firstOther >= 0 && content.slice(firstOther).some(({ type }) => type === 'tool_result'))
    return '`tool_result` blocks must come first'
  const open = callsOf(messages[at]).filter((id) => !resultIds(messages[at + 1]).includes(id))
  return open.length > 0
    ? `\`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${open.join(', ')}.`
    : undefined
}

const callsOf = (message: Message | undefined): string[] =>
  message?.role === 'assistant'
    ? message.content.flatMap(({ type, id }) => (type === 'tool_use' ? [String(id)] : []))
    : []

const resultIds = (message: Message | undefined): string[] =>
  (message?.content ?? []).flatMap(({ type, tool_use_id: id }) => (type === 'tool_result' ? [String(id)] : []))

function toolUseMistake(messages: Message[], tools: unknown): string | undefined {
  const uses = messages.some(({ content }) => content.some(({ type }) => type === 'tool_use' || type === 'tool_result'))
  return uses && tools === undefined
    ? 'Requests which include `tool_use` or `tool_result` blocks must define tools.'
    : undefined
}

function uploadMistake(messages: Message[], tools: unknown): string | undefined {
  const uploads = messages.some(({ content }) => content.some(({ type }) => type === 'container_upload'))
  const runs = Array.isArray(tools) && tools.some(({ type }: FakeJson) => /^code_execution_\d{8}$/.test(String(type)))
  return uploads && !runs ? 'container_upload blocks need the code execution tool' : undefined
}

function endMistake(messages: Message[], thinking: FakeJson | undefined): string | undefined {
  const end = messages.at(-1)
  const block = end?.role === 'assistant' ? end.content.at(-1) : undefined
  if (block?.type === 'text' && String(block.text) !== String(block.text).trimEnd())
    return 'final assistant content cannot end with trailing whitespace'
  if (thinking?.type !== 'enabled') return undefined
  const last = messages.findLast(({ role }) => role === 'assistant')?.content ?? []
  const first = String(last[0]?.type)
  return last.some(({ type }) => type === 'tool_use') && !/thinking$/.test(first)
    ? `Expected \`thinking\` or \`redacted_thinking\`, but found \`${first}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block.`
    : undefined
}

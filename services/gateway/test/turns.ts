import type { Dialect, JsonObject, Message, ToolEntry, Turn } from '../src/conversation/turn.ts'

export const userMessage = (text: string): Message => ({
  role: 'user',
  parts: [{ type: 'text', text }],
  raw: { dialect: 'chat', value: { role: 'user', content: text } },
})

/** A turn as a dialect's parser would give it, with these entries of `tools`. */
export function turnOf(tools: JsonObject[], changed: Partial<Turn> = {}): Turn {
  const dialect: Dialect = changed.dialect ?? 'chat'
  const body: JsonObject = { model: 'fake:model', messages: [], tools, ...changed.raw }
  return {
    dialect,
    model: 'fake:model',
    stream: false,
    includeUsage: true,
    messages: [userMessage('Hello')],
    tools: tools.map((raw) => entryOf(raw)),
    toolChoice: undefined,
    parallelToolCalls: undefined,
    maxOutputTokens: undefined,
    temperature: undefined,
    topP: undefined,
    stop: undefined,
    user: undefined,
    maxToolIterations: 10,
    toolsHeader: undefined,
    bodyCharacters: 400,
    ...changed,
    raw: body,
  }
}

function entryOf(raw: JsonObject): ToolEntry {
  const { type } = raw
  const described = (typeof raw.function === 'object' && raw.function !== null ? raw.function : raw) as JsonObject
  return type === 'function' || type === undefined
    ? { kind: 'function', name: String(described.name), description: undefined, parameters: {}, raw }
    : { kind: 'typed', type: String(type), raw }
}

export const chatFunction = (name: string): JsonObject => ({
  type: 'function',
  function: { name, parameters: { type: 'object', properties: {} } },
})

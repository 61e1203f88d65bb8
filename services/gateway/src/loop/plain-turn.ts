import type { ToolEntry, Turn } from '../conversation/turn.ts'

/** One question, with these tools and nothing else said: a completion of the gateway's own. */
export function plainTurn(model: string, text: string, tools: ToolEntry[], maxToolIterations: number): Turn {
  const said = { role: 'user', content: text }
  return {
    dialect: 'chat',
    model,
    stream: false,
    includeUsage: true,
    messages: [{ role: 'user', parts: [{ type: 'text', text }], raw: { dialect: 'chat', value: said } }],
    tools,
    toolChoice: undefined,
    parallelToolCalls: undefined,
    maxOutputTokens: undefined,
    temperature: undefined,
    topP: undefined,
    stop: undefined,
    user: undefined,
    maxToolIterations,
    toolsHeader: undefined,
    raw: { model, messages: [said], tools: tools.map(({ raw }) => raw) },
    bodyCharacters: text.length,
  }
}

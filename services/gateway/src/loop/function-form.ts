import type { Dialect, JsonObject, ToolEntry } from '../conversation/turn.ts'
import type { Tool } from '../tools/tool.ts'

/** A tool of ours as an ordinary function, in the words of the client's dialect (T-26). */
export const functionForm = (tool: Tool, dialect: Dialect): ToolEntry => ({
  kind: 'function',
  name: tool.name,
  description: tool.description,
  parameters: tool.parameters,
  raw: forms[dialect](tool),
})

const forms: Record<Dialect, (tool: Tool) => JsonObject> = {
  chat: ({ name, description, parameters }) => ({ type: 'function', function: { name, description, parameters } }),
  messages: ({ name, description, parameters }) => ({ name, description, input_schema: parameters }),
  // taken for a strict one where it does not say
  responses: ({ name, description, parameters }) => ({
    type: 'function',
    name,
    description,
    parameters,
    strict: false,
  }),
}

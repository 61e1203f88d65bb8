import type { CallToolResult, Tool } from '@modelcontextprotocol/sdk/types.js'
import { z } from 'zod'
import type { RunCall } from './call.ts'

/** A tool of an MCP server: how it is listed, and how one call of it is answered. */
export interface McpTool {
  listed: Tool
  call(given: unknown, run: RunCall): Promise<CallToolResult>
}

interface ToolDefinition<A extends z.ZodObject> {
  name: string
  description: string
  /** Whether it reaches for the network, which tells a client what to ask its user. */
  openWorld: boolean
  arguments: A
  answer(given: z.output<A>, run: RunCall): Promise<CallToolResult>
}

/** Arguments of the wrong form are a result that says so, never a default in silence and never a protocol error (WM-03, WM-05). */
export function mcpTool<A extends z.ZodObject>({ name, description, openWorld, ...tool }: ToolDefinition<A>): McpTool {
  return {
    listed: {
      name,
      description,
      inputSchema: inputSchema(tool.arguments),
      annotations: { readOnlyHint: true, openWorldHint: openWorld },
    },
    async call(given, run) {
      const read = tool.arguments.safeParse(given)
      return read.success ? tool.answer(read.data, run) : errorResult(whatIsWrong(read.error))
    },
  }
}

export const textResult = (text: string): CallToolResult => ({ content: [{ type: 'text', text }] })

/** WM-06 */
export const jsonResult = (value: object): CallToolResult => textResult(JSON.stringify(value))

export const errorResult = (text: string): CallToolResult => ({ ...textResult(text), isError: true })

const MOST_PROBLEMS = 5

/** Names the arguments and what they must be; what was given is not repeated. */
function whatIsWrong({ issues }: z.ZodError): string {
  const problems = issues.slice(0, MOST_PROBLEMS).map(({ path, message }) => `${path.join('.')}: ${message}`)
  return `invalid arguments: ${problems.join('; ')}`
}

function inputSchema(given: z.ZodObject): Tool['inputSchema'] {
  const { $schema: _dialect, ...schema } = z.toJSONSchema(given, { io: 'input', override: withoutSafeBounds })
  return schema as Tool['inputSchema']
}

/** An integer's bounds in JavaScript are nothing a caller has to know. */
function withoutSafeBounds({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
}

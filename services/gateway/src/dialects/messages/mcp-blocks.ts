import { randomBytes } from 'node:crypto'
import type { ToolActivity } from '../../conversation/events.ts'
import type { JsonObject, Turn } from '../../conversation/turn.ts'
import { MCP_TOOL_ID } from './echo.ts'

/** The form of the vendor's own MCP connector from which on its clients know the blocks. */
const FIRST_BETA = '2025-11-20'

/**
 * Shows calls of MCP tools to callers who said that they know the blocks of the vendor's own MCP connector (M-20): each as
 * it starts and as it ends, or at its end alone where nobody heard of the start.
 */
export function mcpBlocks(headers: Turn['headers']): (activity: ToolActivity) => JsonObject[] {
  if (!knowsMcpBlocks(headers)) return () => []
  const started = new Map<string, string>()

  function use({ call }: ToolActivity): { id: string; block: JsonObject } {
    const { tool: name, server: server_name = '', input } = call
    const id = MCP_TOOL_ID + randomBytes(16).toString('hex')
    return { id, block: { type: 'mcp_tool_use', id, name, server_name, input } }
  }

  return (activity) => {
    const { phase, call, outcome } = activity
    if (phase === 'started') {
      const { id, block } = use(activity)
      started.set(call.id, id)
      return [block]
    }
    if (outcome?.shown.kind !== 'mcp') return []
    const begun = started.get(call.id)
    started.delete(call.id)
    const { id, block } = begun === undefined ? use(activity) : { id: begun, block: undefined }
    const content: JsonObject[] = [{ type: 'text', text: outcome.shown.text }]
    const result: JsonObject = { type: 'mcp_tool_result', tool_use_id: id, content, is_error: outcome.isError }
    return block ? [block, result] : [result]
  }
}

function knowsMcpBlocks(headers: Turn['headers']): boolean {
  const betas = headers?.['anthropic-beta']?.split(',') ?? []
  return betas.some((beta) => {
    const since = /^mcp-client-(\d{4}-\d{2}-\d{2})$/.exec(beta.trim())?.[1]
    return since !== undefined && since >= FIRST_BETA
  })
}

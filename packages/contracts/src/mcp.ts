import { z } from 'zod'
import { broadcast } from './rpc.ts'

/**
 * A client of the web MCP server gave up a call. It says so in a request of its own, which may reach another replica than
 * the one that works on the call (WM-09).
 */
export const mcpCancelled = broadcast({
  subject: 'tg.v1.mcp.cancelled',
  event: z.object({
    /** The API key's id: nobody can cancel for somebody else. */
    key: z.string().min(1),
    session: z.string().min(1).max(128),
    /** The JSON-RPC id of the call. */
    call: z.union([z.string().max(256), z.number()]),
  }),
})

import { Fault, otariLabel, otariPriceKeys, toolError } from '@tollgate/contracts'
import type { CallContext, Tool, ToolResult } from '../tools/tool.ts'
import { callResult, FAILED, readResult, shownResult } from './content.ts'
import { ServerFailure } from './failure.ts'
import type { ListedTool } from './listing.ts'
import type { Session } from './session.ts'

/** What a model is told of a call that was not answered. */
const troubles: Partial<Record<ServerFailure['trouble'], string>> = {
  timeout: 'MCP tool did not answer in time',
  too_large: 'MCP tool result is larger than 1 MiB',
}

/** A tool of an MCP server as the loop runs it: a call is one request to the server, and is never made twice. */
export function serverTool(
  server: string,
  listed: ListedTool,
  { session, callMs }: { session: Session; callMs: number },
): Tool {
  const { name, offered, description, parameters } = listed
  const billing = { label: otariLabel(offered), priceKeys: otariPriceKeys(offered) }
  const failed = (text: string, cause: unknown): ToolResult => ({
    outcome: { text: toolError(text), isError: true, shown: { kind: 'mcp', text: FAILED } },
    ...billing,
    cause,
  })

  return {
    name: offered,
    description,
    parameters,
    server,
    priceKeys: () => billing.priceKeys,
    shownInput: (input) => input,
    shownFailure: () => ({ kind: 'mcp', text: FAILED }),
    open: async () => ({
      async run(input, { signal, deadline }: CallContext) {
        const limits = { signal, deadline: Math.min(deadline, Date.now() + callMs) }
        try {
          const result = await session.request('tools/call', { name, arguments: input }, callResult, limits)
          const isError = result.isError === true
          const shown = { kind: 'mcp', text: shownResult(result) } as const
          return { outcome: { text: readResult(result), isError, shown }, ...billing }
        } catch (thrown) {
          signal.throwIfAborted()
          const failure = ServerFailure.from(thrown)
          return failed(troubles[failure.trouble] ?? FAILED, failure)
        }
      },
    }),
  }
}

/** A server that cannot be used, before any model is called (M-04); what was wrong with it is the log's alone. */
export const unusable = (server: string, failure: ServerFailure): Fault =>
  new Fault('upstream', `MCP server '${server}' could not be reached`, { cause: failure })

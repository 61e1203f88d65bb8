import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import {
  CallToolRequestSchema,
  type CallToolResult,
  ErrorCode,
  ListToolsRequestSchema,
  McpError,
  type RequestId,
} from '@modelcontextprotocol/sdk/types.js'
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv'
import type { Bus } from '@tollgate/bus'
import { Fault } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import { z } from 'zod'
import type { RunCall } from './call.ts'
import { fetchImage } from './fetch-image.ts'
import { fetchWebpage } from './fetch-webpage.ts'
import { fetchWebpageRendered } from './fetch-webpage-rendered.ts'
import { formatSearchResults } from './format-search-results.ts'
import type { WebSettings } from './settings.ts'
import { errorResult, type McpTool } from './tool.ts'
import { webSearch } from './web-search.ts'

/** The tools of the web server; made once, and shared by all connections. */
export const webTools = (bus: Bus, settings: WebSettings): readonly McpTool[] => [
  webSearch(bus),
  fetchWebpage(bus, settings),
  fetchImage(bus, settings),
  formatSearchResults,
]

/** Those of the browser server, which is one of its own (WM-01). */
export const browserTools = (bus: Bus, settings: WebSettings): readonly McpTool[] => [
  fetchWebpageRendered(bus, settings),
]

export interface Serving {
  version: string
  log: Log
  /** Who pays for a call, and until when it may run: by the call's JSON-RPC id and the signal of its cancellation. */
  runFor(call: RequestId, cancelled: AbortSignal): RunCall
}

const instructions =
  'Search the web, read pages and look at images. The extractor of a page is called trafilatura when its main content ' +
  'was found, which is done by an extractor of Tollgate’s own, stdlib when the whole page was converted, and none when it ' +
  'is returned as it came.'

/** The MCP server of WM-01 for one connection; the caller connects it to a transport. */
export const webServer = (tools: readonly McpTool[], serving: Serving): Server =>
  toolServer('web-search-tools', instructions, tools, serving)

/** The server beside it, where pages can be shown by a browser. */
export const browserServer = (tools: readonly McpTool[], serving: Serving): Server =>
  toolServer('browser-tools', 'Read pages that need a browser to be seen.', tools, serving)

/** Any call at all: what is wrong with one is then told as wrong parameters, where the protocol's own schema makes it our fault. */
const anyCall = z.object({ method: z.literal('tools/call'), params: z.unknown() })

/** For answers these servers never ask for. Making one costs more than everything else of a connection, so all share it. */
const jsonSchemaValidator = new AjvJsonSchemaValidator()

/** A server of tools alone. What fails is a result; only an unknown tool is a protocol error (WM-05). */
function toolServer(name: string, about: string, tools: readonly McpTool[], { version, log, runFor }: Serving): Server {
  const server = new Server(
    { name, version },
    { capabilities: { tools: {} }, instructions: about, jsonSchemaValidator },
  )
  const byName = new Map(tools.map((tool) => [tool.listed.name, tool]))
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: tools.map(({ listed }) => listed) }))
  server.setRequestHandler(anyCall, async (request, { signal, requestId }) => {
    const { params } = CallToolRequestSchema.parse(request)
    const tool = byName.get(params.name)
    if (tool === undefined) throw new McpError(ErrorCode.InvalidParams, 'unknown tool')
    return tool
      .call(params.arguments ?? {}, runFor(requestId, signal))
      .catch((thrown) => tell(thrown, params.name, log))
  })
  server.onerror = (error) => log.debug({ err: error }, 'an MCP message could not be handled')
  return server
}

/** A refusal is told in its own words; what nobody foresaw is told to the log alone. */
function tell(thrown: unknown, tool: string, log: Log): CallToolResult {
  const fault = Fault.from(thrown)
  if (fault.failure === 'internal') log.error({ tool, err: thrown }, 'a tool failed in a way it does not know')
  return errorResult(`${tool} failed: ${fault.message}`)
}

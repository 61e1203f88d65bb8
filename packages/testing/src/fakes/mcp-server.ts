import { randomUUID } from 'node:crypto'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { MCP_VERSIONS, mcpMistake } from './mcp-server-rules.ts'
import type { FakeJson } from './model-script.ts'

export interface FakeMcpTool {
  name: string
  description?: string
  inputSchema?: unknown
  /** What a call gives back; its text when it is one. */
  run?(input: FakeJson): unknown
}

/** What a server can do instead of answering. */
export type McpMisdeed =
  | { kind: 'status'; status: number; headers?: Record<string, string>; body?: string }
  /** Nothing at all. */
  | { kind: 'hang' }
  /** Notifications without an end, and no answer among them. */
  | { kind: 'endless' }
  /** An answer to something that nobody asked. */
  | { kind: 'wrong_id' }
  /** A result of this size. */
  | { kind: 'huge'; bytes: number }
  /** A stream that ends before its answer. */
  | { kind: 'cut' }
  | { kind: 'garbage' }
  /** A protocol error in these words. */
  | { kind: 'error'; message: string }
  /** The proper answer, once the client has answered these requests of the server's own. */
  | { kind: 'asks_first'; methods: string[] }
  /** Every page names the same next one. */
  | { kind: 'circle' }

export interface McpRequestSeen {
  http: string
  path: string
  headers: IncomingHttpHeaders
  message: FakeJson | undefined
}

export interface FakeMcpServer {
  url: string
  port: number
  tools: FakeMcpTool[]
  requests: McpRequestSeen[]
  /** Why requests were refused that a strict server would refuse; a test of proper ones expects none. */
  refusals: string[]
  /** Names and arguments of calls, in their order. */
  calls: { name: string; arguments: FakeJson }[]
  /** Answers of the client to requests of the server's own. */
  replies: FakeJson[]
  /** JSON-RPC methods in the order they came. */
  methods(): string[]
  /** Sessions that were begun and not ended. */
  sessions(): number
  /** Connections that are open now. */
  connections(): number
  /** What befalls each request of this method, or the next `times` of them. */
  suffers(method: string, misdeed: McpMisdeed, times?: number): void
  /** It forgets every session, as after a restart. */
  restart(): void
  reset(): void
  close(): Promise<void>
}

export interface FakeMcpOptions {
  tools?: FakeMcpTool[]
  /** Whoever does not send it is refused. */
  token?: string
  /** Answers as JSON instead of a stream of one event. */
  json?: boolean
  /** Tools on one page of a listing. */
  pageSize?: number
  tls?: { key: string; cert: string }
}

/** An MCP server over streamable HTTP that holds its client to the protocol (revision 2025-11-25, "Transports"). */
export async function fakeMcpServer(options: FakeMcpOptions = {}): Promise<FakeMcpServer> {
  const { token, json = false, pageSize = 100, tls } = options
  const sessions = new Set<string>()
  const misdeeds = new Map<string, { misdeed: McpMisdeed; left: number }>()
  const waiting: ((reply: FakeJson) => void)[] = []
  const open = new Set<unknown>()

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = []
    for await (const part of request) parts.push(part as Buffer)
    const text = Buffer.concat(parts).toString('utf8')
    const message = text === '' ? undefined : (JSON.parse(text) as FakeJson)
    const { method: http = '', url = '', headers } = request
    fake.requests.push({ http, path: url, headers, message })
    const method = String(message?.method ?? '')
    const misdeed = taken(method)
    const params = (message?.params ?? {}) as FakeJson
    if (method === 'tools/call')
      fake.calls.push({ name: String(params.name), arguments: (params.arguments ?? {}) as FakeJson })
    if (misdeed?.kind === 'status') return end(response, misdeed.status, misdeed.body ?? '', misdeed.headers)
    const known = sessions.has(String(headers['mcp-session-id']))
    const mistake = mcpMistake({ http, headers, message }, { token, known })
    if (mistake) {
      if (mistake.status !== 404) fake.refusals.push(mistake.why)
      return end(response, mistake.status, mistake.why)
    }
    if (http === 'DELETE') {
      sessions.delete(String(headers['mcp-session-id']))
      return end(response, 200, '')
    }
    if (message?.id === undefined || message.method === undefined) {
      if (message?.method === undefined) {
        fake.replies.push(message ?? {})
        waiting.shift()?.(message ?? {})
      }
      return end(response, 202, '')
    }
    if (misdeed) return misbehave(response, message, misdeed)
    await answer(response, message)
  }

  async function answer(response: ServerResponse, { id, method, params = {} }: FakeJson): Promise<void> {
    const asked = params as FakeJson
    switch (method) {
      case 'initialize': {
        const session = randomUUID()
        sessions.add(session)
        const offered = MCP_VERSIONS.includes(String(asked.protocolVersion)) ? asked.protocolVersion : MCP_VERSIONS[0]
        const result = {
          protocolVersion: offered,
          capabilities: { tools: { listChanged: true } },
          serverInfo: { name: 'fake', version: '1' },
        }
        return send(response, { id, result }, { 'mcp-session-id': session })
      }
      case 'tools/list': {
        const from = Number(asked.cursor ?? 0)
        const listed = fake.tools.slice(from, from + pageSize).map(({ run: _run, inputSchema, ...tool }) => ({
          ...tool,
          inputSchema: inputSchema ?? { type: 'object', properties: {} },
        }))
        const more = from + pageSize < fake.tools.length
        return send(response, { id, result: { tools: listed, ...(more && { nextCursor: String(from + pageSize) }) } })
      }
      case 'tools/call': {
        const tool = fake.tools.find(({ name }) => name === asked.name)
        if (!tool)
          return send(response, { id, error: { code: -32602, message: `Unknown tool: ${String(asked.name)}` } })
        const given = await (tool.run?.((asked.arguments ?? {}) as FakeJson) ?? 'ok')
        const result = typeof given === 'string' ? { content: [{ type: 'text', text: given }] } : given
        return send(response, { id, result })
      }
      default:
        return send(response, { id, error: { code: -32601, message: 'Method not found' } })
    }
  }

  async function misbehave(response: ServerResponse, message: FakeJson, misdeed: McpMisdeed): Promise<void> {
    const { id } = message
    switch (misdeed.kind) {
      case 'status':
      case 'hang':
        return
      case 'endless': {
        stream(response)
        const notice = event({
          jsonrpc: '2.0',
          method: 'notifications/message',
          params: { level: 'info', data: 'x'.repeat(8_192) },
        })
        const more = () => {
          while (!response.destroyed && response.write(notice));
        }
        response.on('drain', more)
        return more()
      }
      case 'wrong_id':
        return send(response, { id: 'somebody-elses', result: { tools: [], content: [] } })
      case 'huge':
        return send(response, { id, result: { content: [{ type: 'text', text: 'x'.repeat(misdeed.bytes) }] } })
      case 'cut':
        stream(response)
        response.end(': nothing more\n\n')
        return
      case 'garbage':
        return end(response, 200, '{"jsonrpc": <html>', { 'content-type': 'application/json' })
      case 'error':
        return send(response, { id, error: { code: -32000, message: misdeed.message } })
      case 'circle':
        return send(response, { id, result: { tools: [], nextCursor: 'again' } })
      case 'asks_first':
        stream(response)
        for (const [at, method] of misdeed.methods.entries()) {
          const replied = new Promise((resolve) => waiting.push(resolve))
          response.write(event({ jsonrpc: '2.0', id: `own-${at}`, method, params: {} }))
          await replied
        }
        response.write(event({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' }))
        return answer(response, message)
      default:
        return misdeed satisfies never
    }
  }

  function taken(method: string): McpMisdeed | undefined {
    const found = misdeeds.get(method)
    if (!found) return undefined
    found.left -= 1
    if (found.left <= 0) misdeeds.delete(method)
    return found.misdeed
  }

  function send(response: ServerResponse, body: FakeJson, headers: Record<string, string> = {}): void {
    const message = { jsonrpc: '2.0', ...body }
    if (json && !response.headersSent) {
      end(response, 200, JSON.stringify(message), { 'content-type': 'application/json', ...headers })
      return
    }
    if (!response.headersSent) stream(response, headers)
    response.end(event(message))
  }

  const listener = (request: IncomingMessage, response: ServerResponse) => {
    handle(request, response).catch((error: unknown) => response.destroy(error as Error))
  }
  const server: Server = tls ? createTlsServer(tls, listener) : createServer(listener)
  server.on('connection', (socket) => {
    open.add(socket)
    socket.once('close', () => open.delete(socket))
  })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo

  const fake: FakeMcpServer = {
    url: `${tls ? 'https' : 'http'}://127.0.0.1:${port}/mcp`,
    port,
    tools: options.tools ?? [],
    requests: [],
    refusals: [],
    calls: [],
    replies: [],
    methods: () =>
      fake.requests.flatMap(({ http, message }) => (http === 'POST' ? [String(message?.method ?? 'reply')] : [http])),
    sessions: () => sessions.size,
    connections: () => open.size,
    suffers: (method, misdeed, times = Infinity) => void misdeeds.set(method, { misdeed, left: times }),
    restart: () => sessions.clear(),
    reset() {
      for (const list of [fake.requests, fake.refusals, fake.calls, fake.replies]) list.length = 0
      misdeeds.clear()
    },
    async close() {
      const closed = new Promise((done) => server.close(done))
      server.closeAllConnections()
      await closed
    },
  }
  return fake
}

const event = (message: FakeJson): string => `event: message\ndata: ${JSON.stringify(message)}\n\n`

function stream(response: ServerResponse, headers: Record<string, string> = {}): void {
  response.writeHead(200, { 'content-type': 'text/event-stream', ...headers })
}

function end(response: ServerResponse, status: number, body: string, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'text/plain', ...headers }).end(body)
}

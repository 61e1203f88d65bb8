import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from 'node:net'
import type { TLSSocket } from 'node:tls'

export interface SeenRequest {
  method: string
  /** As it stood in the request line. */
  target: string
  headers: IncomingHttpHeaders
  /** The name the client asked for in TLS; undefined over plain HTTP and when it sent none. */
  serverName: string | undefined
}

export interface FakeSite {
  port: number
  requests: SeenRequest[]
  /** TCP connections taken, whether or not a request came over them. */
  connections: number
  close(): Promise<void>
}

export interface SiteOptions {
  tls?: { key: string; cert: string }
  /** A proxy is asked with absolute targets and may be shown its own credentials. */
  isProxy?: boolean
}

/** What no fetcher may ever send to a site it was led to (F-29, BR-118). */
const forbidden = [
  'cookie',
  'authorization',
  'proxy-authorization',
  'referer',
  'origin',
  'traceparent',
  'tracestate',
  'baggage',
]

/**
 * A public web site on a loopback port. It is strict: a request that carries a header of the list above, is not a GET or
 * names no host gets 400 and never reaches `answer`.
 */
export async function openSite(answer: RequestListener, { tls, isProxy = false }: SiteOptions = {}): Promise<FakeSite> {
  const site = { port: 0, requests: [] as SeenRequest[], connections: 0 }
  const handle = (request: IncomingMessage, response: ServerResponse): void => {
    const serverName = (request.socket as Partial<TLSSocket>).servername
    site.requests.push({
      method: request.method ?? '',
      target: request.url ?? '',
      headers: request.headers,
      serverName: typeof serverName === 'string' && serverName !== '' ? serverName : undefined,
    })
    const leaked = forbidden.find((name) => name in request.headers && !(isProxy && name === 'proxy-authorization'))
    if (leaked || request.method !== 'GET' || !request.headers.host) {
      response.writeHead(400, { 'content-type': 'text/plain' }).end(leaked ? `must not carry ${leaked}` : 'malformed')
    } else answer(request, response)
  }
  const server = tls ? createTlsServer(tls, handle) : createServer(handle)
  const { port, close } = await listen(server, () => site.connections++)
  return Object.assign(site, { port, close })
}

/** A site that speaks bytes: for what no HTTP library would send. */
export async function openRawSite(
  answer: (socket: Socket, firstBytes: Buffer) => void,
): Promise<{ port: number; close(): Promise<void> }> {
  const server = createTcpServer((socket) => {
    socket.on('error', () => {}) // the client may leave at any time
    socket.once('data', (bytes) => answer(socket, bytes))
  })
  return listen(server, () => {})
}

async function listen(server: Server, onConnection: () => void): Promise<{ port: number; close(): Promise<void> }> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket) => {
    onConnection()
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  await new Promise<void>((ready, failed) => server.once('error', failed).listen(0, '127.0.0.1', ready))
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((done) => {
        server.close(() => done())
        for (const socket of sockets) socket.destroy()
      }),
  }
}

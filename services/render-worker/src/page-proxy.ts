import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { type Duplex, PassThrough } from 'node:stream'
import { type DomainPolicy, parseUrl } from '@tollgate/contracts'
import { type Dialer, type Hop, type JudgeHop, openPinned, permitsHost } from '@tollgate/http'

export interface PageProxyNeeds {
  judge: JudgeHop
  dialer: Dialer
  policy: DomainPolicy
  maxBytes: number
  maxRequests: number
  /** Ends everything that is under way. */
  signal: AbortSignal
}

export type Refusal = 'disallowed' | 'domain' | 'unresolvable' | 'unreachable' | 'requests' | 'bytes'

/** The only way to the network for one page. */
export interface PageProxy {
  url: string
  /** Bytes that came from sites. */
  bytes(): number
  /** Resolves when the page has taken more bytes than it may. */
  overLimit: Promise<void>
  /** Why a host was not reached; undefined when it was, or was never asked for. */
  refusal(host: string): Refusal | undefined
  close(): Promise<void>
}

const METHODS = new Set(['GET', 'HEAD', 'POST', 'OPTIONS'])
/** Headers that are between the browser and this proxy, or would have a site answer in ways that are not passed on. */
const HOP_HEADERS = ['proxy-connection', 'proxy-authorization', 'connection', 'keep-alive', 'upgrade', 'te', 'trailer']

/**
 * An HTTP proxy on loopback that judges every request and tunnel, looks each name up once and connects to that address alone
 * (WM-80 to WM-85). TLS goes through it unopened: the browser checks certificates itself.
 */
export async function openPageProxy(needs: PageProxyNeeds): Promise<PageProxy> {
  const sockets = new Set<Duplex>()
  const refusals = new Map<string, Refusal>()
  let [bytes, requests] = [0, 0]
  let tell = () => {}
  const overLimit = new Promise<void>((resolve) => {
    tell = resolve
  })

  const keep = <T extends Duplex>(socket: T): T => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
    socket.on('error', () => socket.destroy())
    return socket
  }
  const end = () => {
    for (const socket of sockets) socket.destroy()
  }
  /** Passes a site's bytes on, to the page's limit. */
  const counted = (host: string): PassThrough => {
    const through = new PassThrough()
    through.on('data', (chunk: Uint8Array) => {
      bytes += chunk.length
      if (bytes <= needs.maxBytes) return
      refusals.set(host, 'bytes')
      tell()
      end()
    })
    return through
  }
  const admit = async (url: string): Promise<{ hop: Hop; socket: Socket } | { refusal: Refusal }> => {
    const host = parseUrl(url)?.hostname ?? ''
    const refuse = (refusal: Refusal) => {
      refusals.set(host, refusal)
      return { refusal }
    }
    if (bytes > needs.maxBytes) return refuse('bytes')
    if (++requests > needs.maxRequests) return refuse('requests')
    const verdict = await needs.judge(url, needs.signal)
    if (!verdict.ok) return refuse(verdict.why)
    if (!permitsHost(needs.policy, verdict.hop.host)) return refuse('domain')
    try {
      return { hop: verdict.hop, socket: keep(await openPinned(verdict.hop, needs.dialer, needs.signal)) }
    } catch {
      return refuse('unreachable') // the browser shows it as a failed request, which is what it is
    }
  }

  const forward = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = request.url ?? ''
    if (!METHODS.has(request.method ?? '') || !/^http:\/\//i.test(url)) return void response.writeHead(403).end()
    const admitted = await admit(url)
    if ('refusal' in admitted) return void response.destroy() // no answer of ours may pass for the site's
    const { hop, socket } = admitted
    const headers: OutgoingHttpHeaders = { ...request.headers, host: hop.url.host }
    for (const name of HOP_HEADERS) delete headers[name]
    // without an agent, which would make a connection of its own
    const outgoing = httpRequest({
      createConnection: () => socket,
      method: request.method,
      path: hop.url.pathname + hop.url.search,
      headers: { ...headers, connection: 'close' },
    })
    outgoing.on('error', () => response.destroy())
    outgoing.on('response', (answer) => {
      const { connection: _, 'keep-alive': __, ...passed } = answer.headers
      response.writeHead(answer.statusCode ?? 502, passed)
      answer.on('error', () => response.destroy())
      answer.pipe(counted(hop.host)).pipe(response)
    })
    response.once('close', () => socket.destroy())
    request.pipe(outgoing)
  }

  const tunnel = async (request: IncomingMessage, client: Duplex, head: Buffer): Promise<void> => {
    keep(client)
    // The scheme only tells the port, and that is there.
    const admitted = await admit(`https://${request.url ?? ''}/`)
    if ('refusal' in admitted) return void client.end('HTTP/1.1 403 Forbidden\r\n\r\n')
    const { hop, socket } = admitted
    client.once('close', () => socket.destroy())
    socket.once('close', () => client.destroy())
    client.write('HTTP/1.1 200 Connection established\r\n\r\n')
    if (head.length > 0) socket.write(head)
    socket.pipe(counted(hop.host)).pipe(client)
    client.pipe(socket)
  }

  const server = createServer({ maxHeaderSize: 64 * 1024 }, (request, response) => {
    void forward(request, response).catch(() => response.destroy()) // only an aborted signal gets here
  })
  server.on('connection', keep)
  server.on('connect', (request, client, head) => {
    void tunnel(request, client, head).catch(() => client.destroy()) // the same
  })
  // a plain upgrade does not go through a proxy
  server.on('upgrade', (_request, client) => client.destroy())
  needs.signal.addEventListener('abort', end, { once: true })
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    bytes: () => bytes,
    overLimit,
    refusal: (host) => refusals.get(host),
    close() {
      needs.signal.removeEventListener('abort', end)
      end()
      return new Promise((closed) => server.close(() => closed()))
    },
  }
}

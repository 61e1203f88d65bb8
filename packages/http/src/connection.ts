import { connect, type Socket } from 'node:net'
import { Client } from 'undici'
import { ConnectFailure, type ConnectStage, type Dialer, openPinned, ready, secure } from './dial.ts'
import type { Hop } from './guard.ts'
import type { ProxyServer } from './proxy.ts'

export interface ConnectionOptions {
  dialer: Dialer
  /** Certificates of authorities trusted beside the built-in ones. */
  ca?: string[]
  proxy?: ProxyServer
  /** Told of each step before it is waited for. */
  onStage?: (stage: ConnectStage) => void
}

/** An HTTP/1.1 connection for one request: never reused, so that no warm socket can stand in for a check (WM-85). */
export interface Connection {
  client: Client
  /** The request target: absolute when a proxy is asked to forward plain HTTP. */
  path: string
  /** What the request must carry because of the way it travels. */
  headers: Record<string, string>
  /** A proxy answers in the site's place: what it says of itself is not the site's word. */
  forwarded: boolean
  /** Bytes the socket has received, whatever they were. */
  received(): number
}

/** Largest response head that is read. */
const MAX_HEADER_BYTES = 64 * 1024

/** Connects to the hop's own address, or to the proxy; a proxy that fails is an error, never a reason to go direct. */
export async function openConnection(hop: Hop, options: ConnectionOptions, signal: AbortSignal): Promise<Connection> {
  const { dialer, ca, proxy, onStage = () => {} } = options
  const isTls = hop.url.protocol === 'https:'
  const target = hop.url.pathname + hop.url.search
  const withTls = async (socket: Socket): Promise<Socket> => {
    if (!isTls) return socket
    onStage('tls')
    return secure(socket, hop.host, ca, signal)
  }
  if (!proxy) {
    onStage('connect')
    const socket = await openPinned(hop, dialer, signal)
    const ready = await withTls(socket)
    const client = overSocket(hop.url.origin, ready)
    return { client, path: target, headers: {}, forwarded: false, received: () => socket.bytesRead }
  }
  onStage('proxy')
  const toProxy = await openToProxy(proxy, ca, signal)
  const received = () => toProxy.bytesRead
  if (!isTls) {
    return {
      client: overSocket(proxy.url.origin, toProxy),
      path: hop.url.origin + target,
      headers: { host: hop.url.host, ...authorization(proxy) },
      forwarded: true,
      received,
    }
  }
  const tunnel = await withTls(await openTunnel(toProxy, proxy, hop, signal))
  return { client: overSocket(hop.url.origin, tunnel), path: target, headers: {}, forwarded: false, received }
}

/** A client that has this one socket and can open no other. */
function overSocket(origin: string, socket: Socket): Client {
  let unused: Socket | undefined = socket
  return new Client(origin, {
    connect: (_options, done) => {
      const given = unused
      unused = undefined
      // Not at once: the client is still in the call that asked, and would miss the answer.
      queueMicrotask(() => (given && !given.destroyed ? done(null, given) : done(new ConnectFailure('connect'), null)))
    },
    maxHeaderSize: MAX_HEADER_BYTES,
    headersTimeout: 0, // the caller's signal bounds every wait
    bodyTimeout: 0,
    pipelining: 0,
  })
}

async function openToProxy(proxy: ProxyServer, ca: string[] | undefined, signal: AbortSignal): Promise<Socket> {
  const socket = connect({ host: proxy.host, port: proxy.port, noDelay: true })
  await ready(socket, 'connect', 'proxy', signal)
  return proxy.url.protocol === 'https:' ? secure(socket, proxy.host, ca, signal) : socket
}

/** Asks by name: the proxy's own rules are about names, and where it may reach is its operator's business. */
async function openTunnel(socket: Socket, proxy: ProxyServer, hop: Hop, signal: AbortSignal): Promise<Socket> {
  const name = hop.host.includes(':') ? `[${hop.host}]` : hop.host
  const client = overSocket(proxy.url.origin, socket)
  const answer = await client
    .connect({ path: `${name}:${hop.port}`, headers: { host: `${name}:${hop.port}`, ...authorization(proxy) }, signal })
    .catch((cause: unknown) => {
      socket.destroy()
      signal.throwIfAborted()
      throw new ConnectFailure('proxy', { cause })
    })
  if (answer.statusCode === 200) return answer.socket as Socket
  answer.socket.destroy()
  throw new ConnectFailure('proxy', { cause: new Error(`the proxy answered ${answer.statusCode}`) })
}

const authorization = ({ authorization }: ProxyServer): Record<string, string> =>
  authorization === undefined ? {} : { 'proxy-authorization': authorization }

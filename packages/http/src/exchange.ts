import { type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { errors } from 'undici'
import { type Connection, openConnection } from './connection.ts'
import { ConnectFailure, type Dialer, systemDialer } from './dial.ts'
import type { DownloadRequest, ResponseHead } from './download.ts'
import type { Hop } from './guard.ts'
import { type LimitedBody, parseCodings, readLimited, UnsupportedEncoding } from './limit.ts'
import type { NetworkStage, Operations } from './operations.ts'
import { type ChooseProxy, noProxies } from './proxy.ts'
import { isRedirect } from './redirects.ts'

export interface ExchangeOptions {
  userAgent: string
  acceptEncoding?: string
  proxies?: ChooseProxy
  ca?: string[]
  dialer?: Dialer
}

export type Answer = { redirect: string } | { head: ResponseHead; body: LimitedBody | undefined }
export type Exchange = (hop: Hop, request: DownloadRequest, operations: Operations) => Promise<Answer>

const tracer = trace.getTracer('@tollgate/http')

/** What a client is ended with: one for all, since an error of its own for each costs more than ending it. */
const over = new Error('the exchange is over')

/** One request on a connection of its own. Its span names the host and nothing else of the URL. */
export function openExchange({
  userAgent,
  acceptEncoding = 'gzip, deflate',
  proxies = noProxies,
  ca,
  dialer = systemDialer,
}: ExchangeOptions): Exchange {
  return (hop, request, operations) => {
    const attributes = { 'http.request.method': 'GET', 'server.address': hop.host, 'server.port': hop.port }
    return tracer.startActiveSpan('GET', { kind: SpanKind.CLIENT, attributes }, async (span) => {
      let connection: Connection | undefined
      let unwatch = () => {}
      try {
        const proxy = request.direct ? undefined : proxies(hop.url)
        const options = { dialer, onStage: operations.begin, ...(ca ? { ca } : {}), ...(proxy ? { proxy } : {}) }
        connection = await openConnection(hop, options, operations.signal)
        const headers = {
          'user-agent': userAgent,
          accept: request.accept,
          'accept-encoding': acceptEncoding,
          ...conditions(hop, request),
        }
        unwatch = watchFlood(connection, request.maxBytes)
        return await ask(connection, hop, headers, request, operations, span)
      } catch (thrown) {
        span.setStatus({ code: SpanStatusCode.ERROR })
        span.setAttribute('error.type', networkStage(thrown, operations.stage) ?? 'timeout')
        throw thrown
      } finally {
        unwatch()
        void connection?.client.destroy(over).catch(() => {}) // the connection is of no further use either way
        span.end()
      }
    })
  }
}

/** What is held of a page is asked about at the place it was found, and nowhere on the way there. */
function conditions(hop: Hop, { known }: DownloadRequest): Record<string, string> {
  if (known?.url !== hop.url.href) return {}
  return {
    ...(known.etag === undefined ? {} : { 'if-none-match': known.etag }),
    ...(known.lastModified === undefined ? {} : { 'if-modified-since': known.lastModified }),
  }
}

async function ask(
  { client, path, headers: own, forwarded }: Connection,
  hop: Hop,
  headers: Record<string, string>,
  request: DownloadRequest,
  operations: Operations,
  span: Span,
): Promise<Answer> {
  operations.begin('headers')
  const { signal } = operations
  const response = await client.request({ method: 'GET', path, headers: { ...headers, ...own }, signal })
  response.body.on('error', () => {}) // whoever reads the body sees it; an unread body has nobody to tell
  span.setAttribute('http.response.status_code', response.statusCode)
  const header = (name: string) => [response.headers[name] ?? []].flat().at(-1)
  const location = header('location')
  if (isRedirect(response.statusCode) && location !== undefined) return { redirect: location }
  if (response.statusCode === 407 && forwarded) throw new ConnectFailure('proxy')
  const head = { status: response.statusCode, url: hop.url, header }
  if (request.wants?.(head) === false) return { head, body: undefined }
  const codings = parseCodings([response.headers['content-encoding'] ?? []].flat().join(','))
  operations.begin('body')
  const body = await readLimited(response.body, codings, request.maxBytes, () => operations.begin('body'))
  return { head, body }
}

class Flood extends Error {}

/** Chunks of one byte make six of it; a head has at most 64 KiB. */
const FRAMING_FACTOR = 8
const FRAMING_SLACK_BYTES = 1024 * 1024
const WATCH_EVERY_MS = 50

/**
 * Ends a connection that brings far more than any body of the wanted size could: chunk extensions, interim answers and
 * trailers come without end, and are neither head nor body (WM-25).
 */
function watchFlood({ client, received }: Connection, maxBytes: number): () => void {
  const most = maxBytes * FRAMING_FACTOR + FRAMING_SLACK_BYTES
  const timer = setInterval(() => {
    if (received() <= most) return
    clearInterval(timer)
    void client.destroy(new Flood('more bytes than any body needs')).catch(() => {}) // the request rejects with it
  }, WATCH_EVERY_MS)
  return () => clearInterval(timer)
}

/** Where a server or the network failed; undefined for what neither can bring about: a mistake of ours, to be seen as such. */
export function networkStage(thrown: unknown, during: NetworkStage): NetworkStage | undefined {
  if (thrown instanceof ConnectFailure) return thrown.stage
  if (thrown instanceof UnsupportedEncoding) return 'encoding'
  if (thrown instanceof errors.HTTPParserError || thrown instanceof Flood) return during
  const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined
  if (typeof code !== 'string' || code === 'UND_ERR_INVALID_ARG') return undefined
  return code.startsWith('Z_') || code.startsWith('ERR_') || code.startsWith('ZSTD_') ? 'encoding' : during
}

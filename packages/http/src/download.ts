import { type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import type { DomainPolicy } from '@tollgate/contracts'
import { errors } from 'undici'
import { type Connection, openConnection } from './connection.ts'
import { openDeadline } from './deadline.ts'
import { ConnectFailure, type Dialer, systemDialer } from './dial.ts'
import { permitsHost } from './domains.ts'
import type { Hop, JudgeHop } from './guard.ts'
import { type LimitedBody, parseCodings, readLimited, UnsupportedEncoding } from './limit.ts'
import { type ChooseProxy, noProxies } from './proxy.ts'
import { isRedirect, openChain, type RedirectRules } from './redirects.ts'

export interface DownloaderOptions {
  userAgent: string
  acceptEncoding?: string
  proxies?: ChooseProxy
  ca?: string[]
  dialer?: Dialer
}

export interface DownloadRequest extends RedirectRules {
  /** The URL's text as it was given: nobody parses it before the guard does. */
  url: string
  judge: JudgeHop
  policy: DomainPolicy
  accept: string
  /** Most bytes of the decoded body; the rest is not read (F-23). */
  maxBytes: number
  /** Epoch milliseconds: look-ups, connects, TLS, redirects and body all end by then (F-21). */
  deadline: number
  signal: AbortSignal
  /** Judges an answer by its head, so that what is not wanted is not read. */
  wants?: (head: ResponseHead) => boolean
}

export interface ResponseHead {
  status: number
  url: URL
  /** A header's last value; the HTTP parser bounded them all. */
  header(name: string): string | undefined
}

/** `stage` says where it failed, for metrics and logs; it tells nothing of the host. */
export type DownloadFailure =
  | { outcome: 'failed'; failure: 'url_disallowed' | 'domain_disallowed' | 'redirect_disallowed' | 'timeout' }
  | { outcome: 'failed'; failure: 'network'; stage: NetworkStage; cause?: unknown }

export type NetworkStage = 'resolve' | 'connect' | 'tls' | 'proxy' | 'exchange' | 'encoding'

export type Downloaded =
  /** `body` is absent when `wants` said no. */
  { outcome: 'answered'; head: ResponseHead; redirected: boolean; body: LimitedBody | undefined } | DownloadFailure

export type Download = (request: DownloadRequest) => Promise<Downloaded>

/**
 * GET without a past: no cookies, credentials or referer, nothing kept between hops or calls (F-29). Every hop is judged,
 * resolved once and pinned anew (WM-80 to WM-85). Throws only when the caller's signal fires.
 */
export function openDownloader(options: DownloaderOptions): Download {
  const exchange = openExchange(options)
  return async (request) => {
    const limit = openDeadline(request.deadline, request.signal)
    try {
      return await follow(request, exchange, limit.signal)
    } catch (thrown) {
      request.signal.throwIfAborted()
      if (limit.expired) return { outcome: 'failed', failure: 'timeout' }
      const stage = networkStage(thrown)
      if (stage === undefined) throw thrown
      return { outcome: 'failed', failure: 'network', stage, cause: thrown }
    } finally {
      limit.end()
    }
  }
}

type Answer = { redirect: string } | { head: ResponseHead; body: LimitedBody | undefined }
type Exchange = (hop: Hop, request: DownloadRequest, limit: AbortSignal) => Promise<Answer>

async function follow(request: DownloadRequest, exchange: Exchange, limit: AbortSignal): Promise<Downloaded> {
  const chain = openChain(request)
  let target = request.url
  for (let redirected = false; ; redirected = true) {
    const verdict = await request.judge(target, limit)
    if (!verdict.ok) {
      if (verdict.why === 'unresolvable') return { outcome: 'failed', failure: 'network', stage: 'resolve' }
      return { outcome: 'failed', failure: redirected ? 'redirect_disallowed' : 'url_disallowed' }
    }
    if (!permitsHost(request.policy, verdict.hop.host)) return { outcome: 'failed', failure: 'domain_disallowed' }
    const answer = await exchange(verdict.hop, request, limit)
    if (!('redirect' in answer)) return { outcome: 'answered', ...answer, redirected }
    const next = chain(verdict.hop.url, answer.redirect)
    if (next === undefined) return { outcome: 'failed', failure: 'redirect_disallowed' }
    target = next
  }
}

const tracer = trace.getTracer('@tollgate/http')

/** One request on a connection of its own. Its span names the host and nothing else of the URL. */
function openExchange({
  userAgent,
  acceptEncoding,
  proxies = noProxies,
  ca,
  dialer = systemDialer,
}: DownloaderOptions): Exchange {
  return (hop, request, limit) => {
    const attributes = { 'http.request.method': 'GET', 'server.address': hop.host, 'server.port': hop.port }
    return tracer.startActiveSpan('GET', { kind: SpanKind.CLIENT, attributes }, async (span) => {
      let connection: Connection | undefined
      try {
        const proxy = proxies(hop.url)
        connection = await openConnection(hop, { dialer, ...(ca ? { ca } : {}), ...(proxy ? { proxy } : {}) }, limit)
        const headers = {
          'user-agent': userAgent,
          accept: request.accept,
          'accept-encoding': acceptEncoding ?? 'gzip, deflate',
        }
        return await ask(connection, hop, { ...headers, ...connection.headers }, request, limit, span)
      } catch (thrown) {
        span.setStatus({ code: SpanStatusCode.ERROR })
        span.setAttribute('error.type', networkStage(thrown) ?? 'timeout')
        throw thrown
      } finally {
        void connection?.client.destroy().catch(() => {}) // the connection is of no further use either way
        span.end()
      }
    })
  }
}

async function ask(
  { client, path }: Connection,
  hop: Hop,
  headers: Record<string, string>,
  request: DownloadRequest,
  limit: AbortSignal,
  span: Span,
): Promise<Answer> {
  const response = await client.request({ method: 'GET', path, headers, signal: limit })
  response.body.on('error', () => {}) // whoever reads the body sees it; an unread body has nobody to tell
  span.setAttribute('http.response.status_code', response.statusCode)
  const header = (name: string) => [response.headers[name] ?? []].flat().at(-1)
  const location = header('location')
  if (isRedirect(response.statusCode) && location !== undefined) return { redirect: location }
  if (response.statusCode === 407) throw new ConnectFailure('proxy')
  const head = { status: response.statusCode, url: hop.url, header }
  if (request.wants?.(head) === false) return { head, body: undefined }
  const codings = parseCodings([response.headers['content-encoding'] ?? []].flat().join(','))
  return { head, body: await readLimited(response.body, codings, request.maxBytes) }
}

/** Undefined for what no server or network can bring about: a mistake of ours, to be seen as such. */
function networkStage(thrown: unknown): NetworkStage | undefined {
  if (thrown instanceof ConnectFailure) return thrown.stage
  if (thrown instanceof UnsupportedEncoding) return 'encoding'
  if (thrown instanceof errors.HTTPParserError) return 'exchange'
  const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined
  if (typeof code !== 'string' || code === 'UND_ERR_INVALID_ARG') return undefined
  return code.startsWith('Z_') || code.startsWith('ERR_') ? 'encoding' : 'exchange'
}

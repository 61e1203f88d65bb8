import type { DomainPolicy } from '@tollgate/contracts'
import { permitsHost } from './domains.ts'
import { type Exchange, type ExchangeOptions, networkStage, openExchange } from './exchange.ts'
import type { Hop, JudgeHop } from './guard.ts'
import type { LimitedBody } from './limit.ts'
import { type NetworkStage, type OperationLimits, type Operations, openOperations } from './operations.ts'
import { openChain, type RedirectRefusal, type RedirectRules } from './redirects.ts'

export type DownloaderOptions = ExchangeOptions

/** Its `deadline` ends look-ups, connects, TLS, redirects and body together (F-21). */
export interface DownloadRequest extends RedirectRules, OperationLimits {
  /** The URL's text as it was given: nobody parses it before the guard does. */
  url: string
  judge: JudgeHop
  policy: DomainPolicy
  accept: string
  /** Most bytes of the decoded body; the rest is not read (F-23). */
  maxBytes: number
  signal: AbortSignal
  /** Judges an answer by its head, so that what is not wanted is not read. */
  wants?: (head: ResponseHead) => boolean
  /** Asked about each hop that passed every other rule, before it is connected to; false: the site does not want us there. */
  admits?: (hop: Hop, signal: AbortSignal) => Promise<boolean>
  /** Never through a proxy (WM-24). */
  direct?: boolean
  /** What is held of a page that was found at `url`: a 304 says that it still stands (RFC 9110 13). */
  known?: { url: string; etag?: string; lastModified?: string }
}

export interface ResponseHead {
  status: number
  url: URL
  /** A header's last value; the HTTP parser bounded them all. */
  header(name: string): string | undefined
}

/** `stage` says where it failed, and tells nothing of the host (WM-26). */
export type DownloadFailure =
  | { outcome: 'failed'; failure: 'url_disallowed' | 'domain_disallowed' | 'robots_disallowed' }
  | { outcome: 'failed'; failure: 'redirect_disallowed'; why: RedirectRefusal }
  | { outcome: 'failed'; failure: 'timeout'; stage: NetworkStage }
  | { outcome: 'failed'; failure: 'network'; stage: NetworkStage; cause?: unknown }

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
    const operations = openOperations(request, request.signal)
    try {
      return await follow(request, exchange, operations)
    } catch (thrown) {
      request.signal.throwIfAborted()
      if (operations.expired) return { outcome: 'failed', failure: 'timeout', stage: operations.stage }
      const stage = networkStage(thrown, operations.stage)
      if (stage === undefined) throw thrown
      return { outcome: 'failed', failure: 'network', stage, cause: thrown }
    } finally {
      operations.end()
    }
  }
}

async function follow(request: DownloadRequest, exchange: Exchange, operations: Operations): Promise<Downloaded> {
  const chain = openChain(request)
  let target = request.url
  for (let redirected = false; ; redirected = true) {
    operations.begin('resolve')
    const verdict = await request.judge(target, operations.signal)
    if (!verdict.ok) {
      if (verdict.why === 'unresolvable') return { outcome: 'failed', failure: 'network', stage: 'resolve' }
      if (redirected) return { outcome: 'failed', failure: 'redirect_disallowed', why: 'not_allowed' }
      return { outcome: 'failed', failure: 'url_disallowed' }
    }
    if (!permitsHost(request.policy, verdict.hop.host)) return { outcome: 'failed', failure: 'domain_disallowed' }
    if ((await request.admits?.(verdict.hop, operations.signal)) === false)
      return { outcome: 'failed', failure: 'robots_disallowed' }
    const answer = await exchange(verdict.hop, request, operations)
    if (!('redirect' in answer)) return { outcome: 'answered', ...answer, redirected }
    const next = chain(verdict.hop.url, answer.redirect)
    if ('refused' in next) return { outcome: 'failed', failure: 'redirect_disallowed', why: next.refused }
    target = next.url
  }
}

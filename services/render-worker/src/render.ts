import { builtinFetchLabel, type FetchFailed, type FetchFailure, type renderPage } from '@tollgate/contracts'
import { type Dialer, type GuardOptions, judgeUrl, openDeadline, openGuard, type Resolve } from '@tollgate/http'
import type { BrowserContext, Response } from 'playwright-core'
import type { z } from 'zod'
import type { BrowserKeeper, Lease } from './browser.ts'
import { documentHtml } from './document-html.ts'
import { type Navigation, watchNavigation } from './navigation.ts'
import { openPageProxy, type PageProxy, type Refusal } from './page-proxy.ts'
import type { RenderLimits } from './settings.ts'

type Input = z.output<(typeof renderPage)['input']>
type Output = z.input<(typeof renderPage)['output']>

export interface RenderNeeds {
  browsers: BrowserKeeper
  resolve: Resolve
  dialer: Dialer
  guard: GuardOptions
  limits: RenderLimits
}

/** Kept of a page's time to take its document out of the browser. */
const TAKE_OUT_MS = 1_500
const CLOSE_MS = 2_000
const MAX_REDIRECTS = 5
/** Shown to nobody: what they carry is no text. */
const BLOCKED_TYPES = new Set(['image', 'media', 'font', 'manifest', 'texttrack', 'ping', 'cspviolationreport'])

/** Shows a page in a context of its own and takes its document. Rejects only when `signal` fires. */
export async function render(input: Input, needs: RenderNeeds, signal: AbortSignal): Promise<Output> {
  const judged = judgeUrl(input.url)
  if (!judged.ok) return failed('url_disallowed')
  const limit = openDeadline(Date.now() + input.timeoutMs, signal)
  const { guard, resolve, dialer, limits } = needs
  const reach = input.allowPrivateHosts ? { reach: { loopback: true, private: true } } : {}
  const allowedHosts = [...(guard.allowedHosts ?? []), ...input.rules.allowedHosts]
  const proxy = await openPageProxy({
    judge: openGuard(resolve, { ...guard, ...reach, allowedHosts }),
    dialer,
    policy: input.policy,
    maxBytes: limits.pageBytes,
    maxRequests: limits.requests,
    signal: limit.signal,
  })
  let lease: Lease | undefined
  try {
    lease = await needs.browsers.take()
    const result = await within(limit.signal, show(judged.url, input, lease, proxy, limits))
    return result
  } catch (thrown) {
    signal.throwIfAborted()
    if (lease?.ended) return failed('extraction_failed', { reason: lease.ended === 'memory' ? 'memory' : 'crash' })
    if (limit.expired) return failed('timeout')
    throw thrown
  } finally {
    limit.end()
    await closeContexts(lease, proxy)
    lease?.giveBack()
    await proxy.close()
  }
}

/** The contexts of a lease that are to be closed, by the proxy they were opened with. */
const contexts = new WeakMap<PageProxy, BrowserContext>()

async function show(url: URL, input: Input, lease: Lease, proxy: PageProxy, limits: RenderLimits): Promise<Output> {
  const ends = Date.now() + input.timeoutMs - TAKE_OUT_MS
  const context = await lease.browser.newContext({
    proxy: { server: proxy.url, bypass: '<-loopback>' },
    acceptDownloads: false,
    serviceWorkers: 'block',
    permissions: [],
    locale: 'en-US',
  })
  contexts.set(proxy, context)
  await context.route('**/*', (route) => {
    const request = route.request()
    const isWanted = judgeUrl(request.url()).ok && !BLOCKED_TYPES.has(request.resourceType())
    // it may be answered after the page has gone
    return (isWanted ? route.continue() : route.abort('blockedbyclient')).catch(() => {})
  })
  const page = await context.newPage()
  context.on('page', (popup) => void popup.close().catch(() => {})) // it may have closed by itself
  const navigation = watchNavigation(page)
  page.on('dialog', (dialog) => void dialog.dismiss().catch(() => {})) // the same
  const went = page
    .goto(url.href, { waitUntil: 'domcontentloaded', timeout: Math.max(1, ends - Date.now()) })
    .then((response) => response ?? new Error('there is no document'))
    .catch((thrown: unknown) => (thrown instanceof Error ? thrown : new Error('no page')))
  const response = await Promise.race([went, proxy.overLimit.then(() => 'over' as const)])
  if (response === 'over') return failed('too_large')
  if (navigation.hasCrashed()) return failed('extraction_failed', { reason: 'crash' })
  const refused = judgeChain(navigation.chain(), input) ?? judgeAnswer(response, navigation, proxy)
  if (refused) return refused
  await navigation.quiet(limits.quietMs, Math.min(ends, Date.now() + limits.settleMs))
  if (navigation.hasCrashed()) return failed('extraction_failed', { reason: 'crash' })
  const finalUrl = page.url()
  // where a script took it in the meantime
  if (!judgeUrl(finalUrl).ok) return failed('redirect_disallowed', { redirect: 'not_allowed' })
  const taken = await documentHtml(context, page, input.maxHtmlLength)
  return { status: 'ok', finalUrl, httpStatus: navigation.status() ?? 200, ...taken, bytes: proxy.bytes() }
}

/** The surface's rules for redirects; where they may lead at all is the guard's affair. */
function judgeChain(chain: string[], { rules }: Input): FetchFailed | undefined {
  if (chain.length - 1 > (rules.maxRedirects ?? MAX_REDIRECTS))
    return failed('redirect_disallowed', { redirect: 'too_many' })
  const isDowngrade = chain.some((url, at) => url.startsWith('http:') && chain[at - 1]?.startsWith('https:'))
  return isDowngrade && !rules.allowDowngrade ? failed('redirect_disallowed', { redirect: 'not_allowed' }) : undefined
}

/** What is wrong with what the page's document came to; undefined: nothing. */
function judgeAnswer(response: Response | Error, navigation: Navigation, proxy: PageProxy): FetchFailed | undefined {
  const chain = navigation.chain()
  const httpStatus = navigation.status()
  const refusal = proxy.refusal(hostOf(chain.at(-1)))
  if (response instanceof Error) {
    if (refusal) return refusalFailed(refusal, chain.length > 1)
    if (httpStatus !== undefined && (httpStatus < 200 || httpStatus > 299)) return failed('http_status', { httpStatus })
    if (/Timeout/.test(response.message)) return failed('timeout')
    return failed(/Download is starting|ERR_ABORTED/.test(response.message) ? 'unsupported_type' : 'network')
  }
  if (response.status() < 200 || response.status() > 299)
    return failed('http_status', { httpStatus: response.status() })
  const contentType = response.headers()['content-type'] ?? 'text/html'
  if (/^(?:text\/|application\/(?:xhtml\+xml|xml|json))/i.test(contentType)) return undefined
  return failed('unsupported_type', { httpStatus: response.status(), declared: { contentType } })
}

const hostOf = (url = ''): string => (URL.canParse(url) ? new URL(url).hostname : '')

function refusalFailed(refusal: Refusal, redirected: boolean): FetchFailed {
  switch (refusal) {
    case 'disallowed':
      return redirected ? failed('redirect_disallowed', { redirect: 'not_allowed' }) : failed('url_disallowed')
    case 'domain':
      return failed('domain_disallowed')
    case 'unresolvable':
      return failed('network', { stage: 'resolve' })
    case 'unreachable':
      return failed('network', { stage: 'connect' })
    case 'requests':
    case 'bytes':
      return failed('too_large')
    default:
      return refusal satisfies never
  }
}

const failed = (failure: FetchFailure, more: Partial<FetchFailed> = {}): FetchFailed => ({
  status: 'failed',
  failure,
  ...more,
  label: builtinFetchLabel,
})

/** A context that does not close in time belongs to a browser that does not do what it is told. */
async function closeContexts(lease: Lease | undefined, proxy: PageProxy): Promise<void> {
  const context = contexts.get(proxy)
  if (!lease || !context || lease.ended) return
  const timer = setTimeout(() => lease.kill('stuck'), CLOSE_MS)
  await context.close().catch(() => {}) // the browser may end first
  clearTimeout(timer)
}

/** Leaves work whose time is over: what it opened is closed by who opened it. */
function within<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const leave = () => reject(signal.reason)
    signal.addEventListener('abort', leave, { once: true })
    if (signal.aborted) leave()
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', leave))
  })
}

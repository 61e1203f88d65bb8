import { trace } from '@opentelemetry/api'
import type { renderPage } from '@tollgate/contracts'
import { type Dialer, type GuardOptions, judgeUrl, openDeadline, openGuard, type Resolve } from '@tollgate/http'
import type { BrowserContext } from 'playwright-core'
import type { z } from 'zod'
import type { BrowserKeeper, Lease } from './browser.ts'
import { documentHtml } from './document-html.ts'
import { watchNavigation } from './navigation.ts'
import { openPageProxy, type PageProxy } from './page-proxy.ts'
import type { RenderLimits } from './settings.ts'
import { failed, judgeAnswer, judgeChain } from './verdict.ts'

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
/** Shown to nobody: what they carry is no text. */
const BLOCKED_TYPES = new Set(['image', 'media', 'font', 'manifest', 'texttrack', 'ping', 'cspviolationreport'])

/** Shows a page in a context of its own and takes its document. Rejects only when `signal` fires. */
export async function render(input: Input, needs: RenderNeeds, signal: AbortSignal): Promise<Output> {
  const judged = judgeUrl(input.url)
  if (!judged.ok) return failed('url_disallowed')
  const ends = Date.now() + input.timeoutMs
  const limit = openDeadline(ends, signal)
  const proxy = await openProxy(input, needs, limit.signal)
  let lease: Lease | undefined
  let context: BrowserContext | undefined
  try {
    lease = await held(limit.signal, needs.browsers.take(), (late) => late.giveBack())
    context = await held(limit.signal, openContext(lease, proxy, needs.limits.requests), (late) => late.close())
    const shown = show(context, { url: judged.url.href, input, ends }, proxy, needs.limits)
    const result = await within(limit.signal, shown)
    // whatever it says, it says it of a browser that ended under it
    if (result.status === 'failed' && lease.ended) throw new Error('the browser ended')
    return result
  } catch (thrown) {
    signal.throwIfAborted()
    if (lease?.ended) return failed('extraction_failed', { reason: lease.ended === 'memory' ? 'memory' : 'crash' })
    if (limit.expired) return failed('timeout')
    throw thrown
  } finally {
    limit.end()
    if (lease && context) await closeContext(lease, context)
    lease?.giveBack()
    await proxy.close()
  }
}

function openProxy(input: Input, needs: RenderNeeds, signal: AbortSignal): Promise<PageProxy> {
  const { guard, resolve, dialer, limits } = needs
  const reach = input.allowPrivateHosts ? { reach: { loopback: true, private: true } } : {}
  const allowedHosts = [...(guard.allowedHosts ?? []), ...input.rules.allowedHosts]
  return openPageProxy({
    judge: openGuard(resolve, { ...guard, ...reach, allowedHosts }),
    dialer,
    policy: input.policy,
    maxBytes: limits.pageBytes,
    maxRequests: limits.requests,
    signal,
  })
}

/** Nothing of another page is in it, it keeps nothing, and it has no way out but the proxy. */
async function openContext({ browser }: Lease, proxy: PageProxy, maxRequests: number): Promise<BrowserContext> {
  const context = await browser.newContext({
    proxy: { server: proxy.url, bypass: '<-loopback>' },
    acceptDownloads: false,
    serviceWorkers: 'block',
    permissions: [],
    locale: 'en-US',
  })
  let asked = 0
  await context.route('**/*', (route) => {
    const request = route.request()
    const isBlocked = !judgeUrl(request.url()).ok || BLOCKED_TYPES.has(request.resourceType())
    // counted here as well: what goes through a tunnel the proxy does not see
    const isWanted = !isBlocked && ++asked <= maxRequests
    // it may be answered after the page has gone
    return (isWanted ? route.continue() : route.abort('blockedbyclient')).catch(() => {})
  })
  return context
}

async function show(
  context: BrowserContext,
  { url, input, ends }: { url: string; input: Input; ends: number },
  proxy: PageProxy,
  limits: RenderLimits,
): Promise<Output> {
  const shownUntil = ends - TAKE_OUT_MS
  const page = await context.newPage()
  context.on('page', (popup) => void popup.close().catch(() => {})) // it may have closed by itself
  const navigation = watchNavigation(page)
  page.on('dialog', (dialog) => void dialog.dismiss().catch(() => {})) // the same
  const went = page
    .goto(url, { waitUntil: 'domcontentloaded', timeout: Math.max(1, shownUntil - Date.now()) })
    .then((response) => response ?? new Error('there is no document'))
    .catch((thrown: unknown) => (thrown instanceof Error ? thrown : new Error('no page')))
  const response = await Promise.race([went, proxy.overLimit.then(() => 'over' as const)])
  if (response === 'over') return failed('too_large')
  if (navigation.hasCrashed()) return failed('extraction_failed', { reason: 'crash' })
  const refused = judgeChain(navigation.chain(), input) ?? judgeAnswer(response, navigation, proxy)
  if (refused) return refused
  await navigation.quiet(limits.quietMs, Math.min(shownUntil, Date.now() + limits.settleMs))
  if (navigation.hasCrashed()) return failed('extraction_failed', { reason: 'crash' })
  const finalUrl = page.url()
  // where a script took it in the meantime
  if (!judgeUrl(finalUrl).ok) return failed('redirect_disallowed', { redirect: 'not_allowed' })
  const taking = documentHtml(context, page, input.maxHtmlLength).catch((thrown: unknown) => {
    // a page may be made so that it cannot be written down, or leave while it is; which it was, the trace tells
    trace.getActiveSpan()?.recordException(thrown instanceof Error ? thrown : String(thrown))
  })
  const taken = await Promise.race([taking, navigation.crash])
  if (!taken) return failed('extraction_failed', { reason: 'crash' })
  return { status: 'ok', finalUrl, httpStatus: navigation.status() ?? 200, ...taken, bytes: proxy.bytes() }
}

/** A context that does not close in time belongs to a browser that does not do what it is told. */
async function closeContext(lease: Lease, context: BrowserContext): Promise<void> {
  if (lease.ended) return
  const timer = setTimeout(() => lease.kill('stuck'), CLOSE_MS)
  await context.close().catch(() => {}) // the browser may end first
  clearTimeout(timer)
}

/** What comes after its time was over is given back. */
function held<T>(signal: AbortSignal, getting: Promise<T>, giveBack: (late: T) => unknown): Promise<T> {
  return within(signal, getting).catch((thrown: unknown) => {
    getting.then(giveBack).catch(() => {}) // it never came, or its browser has ended
    throw thrown
  })
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

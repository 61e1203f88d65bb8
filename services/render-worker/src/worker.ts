import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import type { Handler } from '@tollgate/bus'
import { Fault, renderPage } from '@tollgate/contracts'
import { type Dialer, type Resolve, systemDialer, systemResolve } from '@tollgate/http'
import type { CommonNeeds, Running } from '@tollgate/service'
import { openBrowsers } from './browser.ts'
import { browserRestarts, type RenderOutcome, renderSeconds } from './metrics.ts'
import { render } from './render.ts'
import { defaultRenderLimits, type RenderWorkerSettings } from './settings.ts'

export interface RenderWorkerNeeds extends CommonNeeds {
  settings: RenderWorkerSettings
  /** The system's, unless a test brings its own world. */
  resolve?: Resolve
  dialer?: Dialer
}

const tracer = trace.getTracer('@tollgate/render-worker')

/** Serves `render.page`: pages in a browser whose every request is judged, bounded in time, bytes, requests and memory. */
export async function startRenderWorker(needs: RenderWorkerNeeds): Promise<Running> {
  const { bus, log, settings, resolve = systemResolve, dialer = systemDialer } = needs
  const limits = { ...defaultRenderLimits, ...settings.limits }
  const { executable, isSandboxed, slots } = settings
  const { memoryBytes, pagesPerBrowser } = limits
  const onEnd = (why: Parameters<typeof browserRestarts.add>[1]['why']) => browserRestarts.add(1, { why })
  const browsers = openBrowsers({ executable, isSandboxed, memoryBytes, pagesPerBrowser, log, onEnd })
  const busy = new Set<Promise<unknown>>()

  const handle: Handler<typeof renderPage> = (input, { signal }) =>
    tracer.startActiveSpan('render', { kind: SpanKind.INTERNAL }, async (span) => {
      const started = performance.now()
      let outcome: RenderOutcome = 'error'
      try {
        const result = await render(input, { browsers, resolve, dialer, guard: settings.guard ?? {}, limits }, signal)
        outcome = result.status === 'ok' ? 'ok' : result.failure
        if (result.status === 'failed') span.setStatus({ code: SpanStatusCode.ERROR, message: result.failure })
        return result
      } catch (thrown) {
        span.setStatus({ code: SpanStatusCode.ERROR })
        if (!signal.aborted) throw thrown
        outcome = 'cancelled'
        throw new Fault('cancelled', 'the caller left before the page was shown', { cause: thrown })
      } finally {
        span.end()
        renderSeconds.record((performance.now() - started) / 1_000, { outcome })
      }
    })
  await bus.serve(
    renderPage,
    (...call) => {
      const work = handle(...call)
      busy.add(work)
      const done = () => busy.delete(work)
      work.then(done, done)
      return work
    },
    { slots },
  )
  return {
    async close(deadline) {
      const finished = await endedBy(busy, deadline)
      await browsers.close()
      return finished
    },
  }
}

function endedBy(busy: ReadonlySet<Promise<unknown>>, deadline: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), Math.max(0, deadline - Date.now()))
    void Promise.allSettled(busy).then(() => {
      clearTimeout(timer)
      resolve(true)
    })
  })
}

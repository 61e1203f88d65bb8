import type { Handler } from '@tollgate/bus'
import { Fault, fetchPage } from '@tollgate/contracts'
import { type Dialer, openDownloader, openProxies, type Resolve, systemResolve } from '@tollgate/http'
import type { CommonNeeds, Running } from '@tollgate/service'
import { observe } from '@tollgate/telemetry'
import { checkPdfData } from './extract/pdf/pdfjs.ts'
import { openExtractPool } from './extract/pool.ts'
import type { FetchNeeds } from './fetch.ts'
import { openJudges } from './judges.ts'
import { extractRestarts, type FetchOutcome, fetchSeconds } from './metrics.ts'
import { openPages } from './pages.ts'
import { defaults, type FetchWorkerSettings } from './settings.ts'

export interface FetchWorkerNeeds extends CommonNeeds {
  settings: FetchWorkerSettings
  /** The system's, unless a test brings its own world. */
  resolve?: Resolve
  dialer?: Dialer
  /** Authorities trusted beside the built-in ones. */
  ca?: string[]
}

/** Serves `fetch.page`: as many at once as there are slots, each bounded in time, bytes and memory. */
export async function startFetchWorker({
  bus,
  log,
  settings,
  resolve = systemResolve,
  dialer,
  ca,
}: FetchWorkerNeeds): Promise<Running> {
  await checkPdfData()
  const proxies = settings.proxies ? openProxies(settings.proxies) : undefined
  const pool = openExtractPool({
    threads: settings.threads,
    maxWaiting: settings.slots * 2,
    memoryBytes: settings.extractMemoryBytes ?? defaults.extractMemoryBytes,
    ...(settings.extractLimits ? { limits: settings.extractLimits } : {}),
    log,
    onRestart: (why) => extractRestarts.add(1, { why }),
  })
  const needs: FetchNeeds = {
    download: openDownloader({
      userAgent: defaults.userAgent,
      ...(proxies ? { proxies } : {}),
      ...(dialer ? { dialer } : {}),
      ...(ca ? { ca } : {}),
    }),
    judges: openJudges(resolve, settings.guard),
    pool,
    maxBodyBytes: settings.maxBodyBytes ?? defaults.maxBodyBytes,
    log,
  }
  const readPage = openPages(needs, { ...defaults.pageCache, ...settings.pageCache })
  const busy = new Set<Promise<unknown>>()

  const handle: Handler<typeof fetchPage> = async (input, { signal, emit }) => {
    const started = performance.now()
    let outcome: FetchOutcome = 'error'
    try {
      const page = await readPage(input, signal, emit)
      outcome = page.status === 'ok' ? 'ok' : page.failure
      return page
    } catch (thrown) {
      if (!signal.aborted) throw thrown
      outcome = 'cancelled'
      throw new Fault('cancelled', 'the caller left before the page was read', { cause: thrown })
    } finally {
      fetchSeconds.record((performance.now() - started) / 1_000, { outcome })
    }
  }
  const tracked: Handler<typeof fetchPage> = (input, context) => {
    const work = handle(input, context)
    busy.add(work)
    const done = () => busy.delete(work)
    work.then(done, done)
    return work
  }
  await bus.serve(fetchPage, tracked, { slots: settings.slots })

  const unobserve = [
    observe('fetch_slots', 'Pages that can be worked on at once, by state.', { state: ['busy', 'free'] }, () => [
      { value: busy.size, values: { state: 'busy' } },
      { value: Math.max(0, settings.slots - busy.size), values: { state: 'free' } },
    ]),
    observe('extract_waiting', 'Bodies waiting for an extracting process.', {}, () => [
      { value: pool.waiting(), values: {} },
    ]),
  ]
  return {
    async close(deadline) {
      const finished = await ended(busy, deadline)
      pool.close()
      for (const stop of unobserve) stop()
      return finished
    },
  }
}

/** Waits for running pages, to the deadline and not longer. */
function ended(busy: ReadonlySet<Promise<unknown>>, deadline: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), Math.max(0, deadline - Date.now()))
    void Promise.allSettled(busy).then(() => {
      clearTimeout(timer)
      resolve(true)
    })
  })
}

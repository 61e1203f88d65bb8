import type { Handler } from '@tollgate/bus'
import { Fault, fetchImage, fetchPage, fetchRendered } from '@tollgate/contracts'
import type { Dialer, Resolve } from '@tollgate/http'
import type { CommonNeeds, Running } from '@tollgate/service'
import { observe } from '@tollgate/telemetry'
import { checkPdfData } from './extract/pdf/pdfjs.ts'
import { openExtractPool } from './extract/pool.ts'
import { readImage } from './images/fetch-image.ts'
import { openImagePool } from './images/pool.ts'
import { extractRestarts, type FetchOutcome, fetchSeconds, imageSeconds, renderedSeconds } from './metrics.ts'
import { openPages } from './pages.ts'
import { readRendered } from './rendered.ts'
import { defaults, type FetchWorkerSettings } from './settings.ts'
import { openWayOut } from './way-out.ts'

export interface FetchWorkerNeeds extends CommonNeeds {
  settings: FetchWorkerSettings
  /** The system's, unless a test brings its own world. */
  resolve?: Resolve
  dialer?: Dialer
  /** Authorities trusted beside the built-in ones. */
  ca?: string[]
}

/** Serves `fetch.page`, `fetch.image` and, with a render-worker, `fetch.rendered`: as many at once as there are slots, each bounded in time, bytes and memory. */
export async function startFetchWorker(needs: FetchWorkerNeeds): Promise<Running> {
  const { bus, log, settings } = needs
  await checkPdfData()
  const { slots } = settings
  const onRestart = (why: Parameters<typeof extractRestarts.add>[1]['why']) => extractRestarts.add(1, { why })
  const pool = openExtractPool({
    threads: settings.threads,
    maxWaiting: slots * 2,
    memoryBytes: settings.extractMemoryBytes ?? defaults.extractMemoryBytes,
    ...(settings.extractLimits ? { limits: settings.extractLimits } : {}),
    log,
    onRestart,
  })
  const images = openImagePool({
    maxWaiting: slots * 2,
    memoryBytes: settings.imageMemoryBytes ?? defaults.imageMemoryBytes,
    imageMs: settings.imageMs ?? defaults.imageMs,
    log,
    onRestart,
  })
  const web = openWayOut(needs)
  const readPage = openPages(
    { ...web, pool, maxBodyBytes: settings.maxBodyBytes ?? defaults.maxBodyBytes, log },
    { ...defaults.pageCache, ...settings.pageCache },
  )
  const busy = new Set<Promise<unknown>>()
  const busyPages = new Set<Promise<unknown>>()

  const handlePage: Handler<typeof fetchPage> = (input, { signal, emit }) =>
    measured(fetchSeconds, signal, () => readPage(input, signal, emit))
  const handleImage: Handler<typeof fetchImage> = (input, { signal, emit }) =>
    measured(imageSeconds, signal, () => readImage(input, { ...web, images, log }, signal, emit))

  const handleRendered: Handler<typeof fetchRendered> = (input, { signal, emit }) =>
    measured(renderedSeconds, signal, () => readRendered(input, { bus, pool }, signal, emit))

  await bus.serve(fetchPage, (...call) => track(handlePage(...call), busy, busyPages), { slots })
  await bus.serve(fetchImage, (...call) => track(handleImage(...call), busy), { slots: imageSlots(slots) })

  if (settings.rendered) await bus.serve(fetchRendered, (...call) => track(handleRendered(...call), busy), { slots })

  const unobserve = [
    observe('fetch_slots', 'Pages that can be worked on at once, by state.', { state: ['busy', 'free'] }, () => [
      { value: busyPages.size, values: { state: 'busy' } },
      { value: Math.max(0, slots - busyPages.size), values: { state: 'free' } },
    ]),
    observe('extract_waiting', 'Bodies waiting for an extracting process.', {}, () => [
      { value: pool.waiting(), values: {} },
    ]),
  ]
  return {
    async close(deadline) {
      const finished = await ended(busy, deadline)
      pool.close()
      images.close()
      for (const stop of unobserve) stop()
      return finished
    },
  }
}

/** Images are few, and one process decodes them: they take a quarter of the slots of pages, beside those. */
const imageSlots = (slots: number): number => Math.max(1, Math.floor(slots / 4))

type Outcome = { status: 'ok' } | { status: 'failed'; failure: Exclude<FetchOutcome, 'ok' | 'cancelled' | 'error'> }

async function measured<T extends Outcome>(
  seconds: typeof fetchSeconds,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  const started = performance.now()
  let outcome: FetchOutcome = 'error'
  try {
    const result = await work()
    outcome = result.status === 'ok' ? 'ok' : result.failure
    return result
  } catch (thrown) {
    if (!signal.aborted) throw thrown
    outcome = 'cancelled'
    throw new Fault('cancelled', 'the caller left before the page was read', { cause: thrown })
  } finally {
    seconds.record((performance.now() - started) / 1_000, { outcome })
  }
}

function track<T>(work: Promise<T>, ...sets: Set<Promise<unknown>>[]): Promise<T> {
  for (const set of sets) set.add(work)
  const done = () => {
    for (const set of sets) set.delete(work)
  }
  work.then(done, done)
  return work
}

/** Waits for running calls, to the deadline and not longer. */
function ended(busy: ReadonlySet<Promise<unknown>>, deadline: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(() => resolve(false), Math.max(0, deadline - Date.now()))
    void Promise.allSettled(busy).then(() => {
      clearTimeout(timer)
      resolve(true)
    })
  })
}

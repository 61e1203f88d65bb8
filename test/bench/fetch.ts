import { readdirSync, readFileSync } from 'node:fs'
import { type Bus, memoryBus } from '@tollgate/bus'
import { fetchPage } from '@tollgate/contracts'
import { openLog } from '@tollgate/telemetry'
import { dnsStub, loopbackDialer, openSite } from '@tollgate/testing'
import { defaultReading } from '../../services/fetch-worker/src/extract/job.ts'
import { openExtractPool } from '../../services/fetch-worker/src/extract/pool.ts'
import { defaults } from '../../services/fetch-worker/src/settings.ts'
import { startFetchWorker } from '../../services/fetch-worker/src/worker.ts'
import { reviewedPages } from './reviewed-pages.ts'
import { median, ratioLine, round } from './statistics.ts'

const THREADS = 2
/** Enough to keep the threads at work while others download. */
const SLOTS = 8
const ROUNDS = 4
const ROUND_MS = 4_000
const WARM_UP = 100
const GROWTH_PAGES = 2_000

const log = openLog({ service: 'bench', level: 'error' })

/**
 * What a page costs through the whole service (bus, guard, download from loopback, extraction, answer) beside extraction
 * alone, and whether the service grows: `npm run bench -- fetch [folder of reviewed pages] [pages to read for growth]`.
 */
export async function benchFetch([folder, growthPages]: string[]): Promise<void> {
  const bodies =
    folder === undefined || folder === ''
      ? Array.from({ length: 60 }, (_, at) => madeUpPage(at))
      : reviewedPages(folder).map(({ bytes }) => bytes)
  const service = await openService(bodies)
  const pool = openExtractPool({
    threads: THREADS,
    maxWaiting: 1_000,
    memoryBytes: defaults.extractMemoryBytes,
    log,
    onRestart: () => {},
  })
  const alone = async (at: number): Promise<void> => {
    const bytes = new Uint8Array(bodies[at % bodies.length] as Uint8Array)
    const job = {
      ...defaultReading,
      bytes,
      contentType: 'text/html; charset=utf-8',
      url: 'http://site.test/',
      isCut: false,
    }
    await pool.run(job, new AbortController().signal)
  }
  try {
    await Promise.all([run(alone, THREADS, { pages: WARM_UP }), run(service.read, SLOTS, { pages: WARM_UP })])
    const rates: { service: Rate[]; pool: Rate[] } = { service: [], pool: [] }
    for (let round = 0; round < ROUNDS; round++) {
      rates.pool.push(await run(alone, THREADS, { ms: ROUND_MS }))
      rates.service.push(await run(service.read, SLOTS, { ms: ROUND_MS }))
    }
    const pages = (of: Rate[]) => of.map(({ pagesPerSecond }) => pagesPerSecond)
    const cpu = (of: Rate[]) => of.map(({ cpuMs }) => cpuMs)
    console.log(
      `extraction alone ${round(median(pages(rates.pool)), 1)} pages/s, through the service ${round(median(pages(rates.service)), 1)} pages/s, ${THREADS} threads`,
    )
    console.log(ratioLine('pages a second, service against extraction alone', pages(rates.service), pages(rates.pool)))
    // What the rate is when nothing else runs on as many cores as there are threads; a busy machine does not change it.
    console.log(ratioLine('the same by processor time a page', cpu(rates.pool), cpu(rates.service)))
    pool.close()
    const held = round(bodies.reduce((sum, body) => sum + body.length, 0) / 1e6, 0)
    console.log(`(the service's process also serves the pages, and holds ${held} MB of them)`)
    await growth(service.read, Number(growthPages ?? GROWTH_PAGES))
  } finally {
    pool.close()
    await service.close()
  }
}

interface Rate {
  pagesPerSecond: number
  /** Processor time a page, of this process and all that it started. */
  cpuMs: number
}

async function run(
  read: (at: number) => Promise<void>,
  atOnce: number,
  until: { ms: number } | { pages: number },
): Promise<Rate> {
  const started = performance.now()
  const cpu = cpuMs()
  let count = 0
  const goesOn = () => ('ms' in until ? performance.now() - started < until.ms : count < until.pages)
  const worker = async () => {
    while (goesOn()) await read(count++)
  }
  await Promise.all(Array.from({ length: atOnce }, worker))
  return { pagesPerSecond: (count * 1_000) / (performance.now() - started), cpuMs: (cpuMs() - cpu) / count }
}

async function openService(bodies: Uint8Array[]) {
  const site = await openSite((request, response) => {
    const at = Number(request.url?.slice(1))
    response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(bodies[at % bodies.length])
  })
  const bus = memoryBus({ log })
  const worker = await startFetchWorker({
    bus,
    log,
    settings: { slots: SLOTS, threads: THREADS },
    resolve: dnsStub({ 'site.test': ['93.184.216.34'] }).resolve,
    dialer: loopbackDialer({ '*': site.port }),
  })
  let next = 0
  return {
    read: () => readOne(bus, `http://site.test/${next++}`),
    async close() {
      await bus.drain(Date.now() + 5_000)
      await worker.close(Date.now() + 5_000)
      await site.close()
    },
  }
}

const tenancy = { organization: 'o', workspace: 'w', user: 'u', key: 'k', request: 'r', attempt: 0 }

async function readOne(bus: Bus, url: string): Promise<void> {
  const page = await bus.call(fetchPage, { tenancy, url, timeoutMs: 30_000 }, { deadline: Date.now() + 60_000 })
  if (page.status === 'failed') throw new Error(`a page was not read: ${page.failure} ${page.reason ?? ''}`)
}

/** Memory while one page after the other is read, each of them another one. */
async function growth(read: (at: number) => Promise<void>, pages: number): Promise<void> {
  const steps = 4
  const seen = [memory()]
  for (let step = 0; step < steps; step++) {
    await run(read, SLOTS, { pages: Math.ceil(pages / steps) })
    seen.push(memory())
  }
  const line = (of: 'own' | 'all') => seen.map((each) => round(each[of] / 1e6, 0)).join(', ')
  console.log(
    `resident MB over ${pages} pages: the service's process ${line('own')}; with its extracting processes ${line('all')}`,
  )
}

/** Resident bytes of this process, and of all that it started. */
function memory(): { own: number; all: number } {
  const own = process.memoryUsage.rss()
  return { own, all: own + childrenOf(process.pid).reduce((sum, pid) => sum + residentBytes(pid), 0) }
}

/** Linux alone tells. */
function childrenOf(parent: number): number[] {
  try {
    return readdirSync(`/proc/${parent}/task`)
      .flatMap((task) => readFileSync(`/proc/${parent}/task/${task}/children`, 'utf8').trim().split(' '))
      .filter((pid) => pid !== '')
      .map(Number)
  } catch {
    return []
  }
}

const TICK_MS = 10

function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  const children = childrenOf(process.pid).map((pid) => {
    // after the name in brackets: state, parent and so on; the 12th and 13th are user and system time
    const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1)?.split(' ') ?? []
    return (Number(fields[11]) + Number(fields[12])) * TICK_MS
  })
  return children.reduce((sum, ms) => sum + ms, (user + system) / 1_000)
}

const residentBytes = (pid: number): number => {
  const kilobytes = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Number(kilobytes ?? 0) * 1_024
}

/** An article of some 40 kB between the parts that pages have around theirs. */
function madeUpPage(at: number): Uint8Array {
  const words = (count: number, from: number) =>
    Array.from({ length: count }, (_, i) => `word${(from + i * 7) % 997}`).join(' ')
  const menu = Array.from({ length: 60 }, (_, i) => `<li><a href="/section/${i}">${words(2, i)}</a></li>`).join('')
  const paragraphs = Array.from(
    { length: 60 },
    (_, i) => `<p>${words(60, at + i)}, <a href="/a/${i}">${words(3, i)}</a>.</p>`,
  )
  const html = `<!doctype html><html lang="en"><head><title>Page ${at}</title></head><body><nav><ul>${menu}</ul></nav><main><article><h1>Page ${at}</h1>${paragraphs.join('')}</article></main><footer>${words(30, at)}</footer></body></html>`
  return new TextEncoder().encode(html)
}

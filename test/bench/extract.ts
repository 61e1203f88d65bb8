import { openLog } from '@tollgate/telemetry'
import { decode } from '../../services/fetch-worker/src/extract/charset.ts'
import { extract } from '../../services/fetch-worker/src/extract/extract.ts'
import { defaultExtractLimits, defaultReading } from '../../services/fetch-worker/src/extract/job.ts'
import { type ExtractPool, openExtractPool } from '../../services/fetch-worker/src/extract/pool.ts'
import { readabilityMarkdown } from './readability.ts'
import { type ReviewedPage, reviewedPages } from './reviewed-pages.ts'
import { survivalOf } from './round-trip.ts'
import { median, quantile, round } from './statistics.ts'
import { withoutTargets, wordF1 } from './word-f1.ts'

const THREADS = 2
const SECONDS = 10
const WARM_UP = 40

type Page = Pick<ReviewedPage, 'url' | 'bytes'>

/**
 * How a page becomes Markdown, beside Readability over linkedom with turndown: CPU time from bytes to Markdown, and with a
 * folder of reviewed pages as an argument (they are not part of this repository) how much of each page's main content is
 * found, by page type. The pages are those the model was trained on: `training/train.ts` tells how well it reads others.
 */
export async function benchExtract([folder]: string[]): Promise<void> {
  const reviewed = folder === undefined ? undefined : reviewedPages(folder)
  if (reviewed === undefined)
    console.log('no folder of reviewed pages given (npm run bench -- extract <folder>): quality is not measured')
  const pages = reviewed ?? Array.from({ length: 60 }, (_, at) => madeUpPage(at))
  for (const page of pages.slice(0, WARM_UP)) {
    await ours(page)
    theirs(page)
  }
  const runs: Run[] = []
  for (const page of pages) runs.push({ ours: await timed(() => ours(page)), theirs: await timed(() => theirs(page)) })
  if (reviewed) printQuality(reviewed, runs)
  printTimes(runs)
  if (reviewed) printSurvival(reviewed.filter(({ type }) => type === 'documentation'))
  await printThroughput(pages)
}

interface Run {
  ours: Timed
  theirs: Timed
}

interface Timed {
  markdown: string
  ms: number
}

async function timed(read: () => string | Promise<string>): Promise<Timed> {
  const start = process.cpuUsage()
  const markdown = await read()
  const { user, system } = process.cpuUsage(start)
  return { markdown, ms: (user + system) / 1_000 }
}

const jobOf = ({ bytes, url }: Page) => ({
  bytes: new Uint8Array(bytes),
  contentType: 'text/html; charset=utf-8',
  url,
  isCut: false,
  ...defaultReading,
})

async function ours(page: Page): Promise<string> {
  const result = await extract({ ...jobOf(page), limits: defaultExtractLimits })
  return result.status === 'ok' ? result.text : ''
}

const theirs = ({ bytes }: Page): string => readabilityMarkdown(decode(bytes, 'text/html; charset=utf-8', false))

function printQuality(pages: ReviewedPage[], runs: Run[]): void {
  const scores = new Map<string, { ours: number[]; theirs: number[] }>()
  for (const [at, { type, mainContent }] of pages.entries()) {
    // Where the reviewers found nothing there is nothing to be measured.
    if (mainContent === '') continue
    const run = runs[at] as Run
    for (const each of [type, 'all']) {
      const of = scores.get(each) ?? { ours: [], theirs: [] }
      of.ours.push(wordF1(withoutTargets(run.ours.markdown), mainContent))
      of.theirs.push(wordF1(withoutTargets(run.theirs.markdown), mainContent))
      scores.set(each, of)
    }
  }
  console.log('word F1 by page type      pages   ours   Readability + linkedom')
  for (const [type, of] of [...scores].sort())
    console.log(
      `${type.padEnd(22)} ${String(of.ours.length).padStart(8)}  ${round(mean(of.ours), 3)}   ${round(mean(of.theirs), 3)}`,
    )
}

function printTimes(runs: Run[]): void {
  const own = runs.map((run) => run.ours.ms)
  const other = runs.map((run) => run.theirs.ms)
  console.log(
    `CPU from bytes to Markdown: ours ${round(mean(own), 1)} ms a page (p50 ${round(median(own), 1)}, p95 ${round(quantile(own, 0.95), 1)}), ` +
      `Readability + linkedom + turndown ${round(mean(other), 1)} ms: ${round(mean(own) / mean(other))}x`,
  )
}

function printSurvival(pages: ReviewedPage[]): void {
  const shares = Object.entries(survivalOf(pages)).map(
    ([name, { all, kept }]) => `${name} ${round((100 * kept) / all, 1)}% of ${all}`,
  )
  console.log(`survive the way to Markdown and back on ${pages.length} documentation pages: ${shares.join(', ')}`)
}

async function printThroughput(pages: Page[]): Promise<void> {
  const pool = openExtractPool({
    threads: THREADS,
    maxWaiting: 1_000,
    memoryBytes: 400 * 1024 * 1024,
    log: openLog({ service: 'bench', level: 'error' }),
    onRestart: () => {},
  })
  try {
    await throughput(pool, pages)
  } finally {
    pool.close()
  }
}

async function throughput(pool: ExtractPool, pages: Page[]): Promise<void> {
  const until = performance.now() + SECONDS * 1_000
  const times: number[] = []
  let next = 0
  await Promise.all(
    Array.from({ length: THREADS }, async () => {
      while (performance.now() < until) {
        const began = performance.now()
        await pool.run(jobOf(pages[next++ % pages.length] as Page), AbortSignal.timeout(30_000))
        times.push(performance.now() - began)
      }
    }),
  )
  const kilobytes = mean(pages.map(({ bytes }) => bytes.length)) / 1_000
  console.log(
    `${round(times.length / SECONDS, 1)} pages/s at ${THREADS} threads (pages of ${round(kilobytes, 0)} kB), p50 ${round(median(times))} ms, p95 ${round(quantile(times, 0.95))} ms`,
  )
}

const mean = (values: number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length

/** A news page of about 170 kB: most of it is not the article. */
function madeUpPage(at: number): Page {
  const link = (n: number) => `<li class="nav-item"><a href="/section/${n}" class="nav-link">Section ${n}</a></li>`
  const paragraph = (n: number) =>
    `<p>Paragraph ${n} of story ${at} tells, at some length and with <a href="/about/${n}">a link</a>, what a river does between its source and the sea, and who lives beside it.</p>`
  const list = (length: number, make: (n: number) => string) => Array.from({ length }, (_, n) => make(n)).join('\n')
  const html = `<!doctype html><html lang="en"><head><title>Story ${at}</title><script>${'var state = {"a": [1, 2, 3]};'.repeat(1_500)}</script></head>
<body><nav><ul>${list(400, link)}</ul></nav><main><article><h1>Story ${at}</h1>${list(60, paragraph)}</article></main>
<aside><h2>Related</h2><ul>${list(300, link)}</ul></aside><footer><ul>${list(200, link)}</ul></footer></body></html>`
  return { url: `https://news.example/story/${at}`, bytes: Buffer.from(html) }
}

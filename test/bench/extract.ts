import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { openLog } from '@tollgate/telemetry'
import { z } from 'zod'
import { defaultReading } from '../../services/fetch-worker/src/extract/job.ts'
import { type ExtractPool, openExtractPool } from '../../services/fetch-worker/src/extract/pool.ts'
import { median, quantile, round } from './statistics.ts'
import { wordF1 } from './word-f1.ts'

const THREADS = 2
const SECONDS = 10

const truth = z.array(
  z.object({
    id: z.string(),
    url: z.string(),
    page_type: z.string(),
    main_content: z
      .string()
      .nullable()
      .transform((text) => text ?? ''),
  }),
)

interface BenchPage {
  url: string
  bytes: Buffer
}

/**
 * Pages a second of the extraction pool at two threads, bytes to text. With a folder of reviewed pages as an argument
 * (`html/<id>.html.gz` and `truth.json.gz`) also how much of each page's main content is found, by page type; such pages
 * are not part of this repository. Without one, pages are made up.
 */
export async function benchExtract([folder]: string[]): Promise<void> {
  const pool = openExtractPool({
    threads: THREADS,
    maxWaiting: 1_000,
    memoryBytes: 400 * 1024 * 1024,
    log: openLog({ service: 'bench', level: 'error' }),
    onRestart: () => {},
  })
  try {
    if (folder === undefined) {
      console.log('no folder of reviewed pages given (npm run bench -- extract <folder>): quality is not measured')
      await speed(
        pool,
        Array.from({ length: 20 }, (_, at) => madeUpPage(at)),
      )
      return
    }
    if (!existsSync(join(folder, 'truth.json.gz'))) throw new Error(`${folder} holds no truth.json.gz`)
    const reviewed = truth.parse(JSON.parse(gunzipSync(readFileSync(join(folder, 'truth.json.gz'))).toString()))
    const pages = reviewed.map(({ id, url }) => ({
      url,
      bytes: gunzipSync(readFileSync(join(folder, 'html', `${id}.html.gz`))),
    }))
    await quality(pool, pages, reviewed)
    await speed(pool, pages)
  } finally {
    pool.close()
  }
}

async function speed(pool: ExtractPool, pages: BenchPage[]): Promise<void> {
  const until = performance.now() + SECONDS * 1_000
  const times: number[] = []
  let next = 0
  await Promise.all(
    Array.from({ length: THREADS }, async () => {
      while (performance.now() < until) {
        const began = performance.now()
        await read(pool, pages[next++ % pages.length] as BenchPage)
        times.push(performance.now() - began)
      }
    }),
  )
  const kilobytes = pages.reduce((sum, { bytes }) => sum + bytes.length, 0) / pages.length / 1_000
  console.log(
    `${round(times.length / SECONDS, 1)} pages/s at ${THREADS} threads (pages of ${round(kilobytes, 0)} kB), p50 ${round(median(times))} ms, p95 ${round(quantile(times, 0.95))} ms`,
  )
}

async function quality(pool: ExtractPool, pages: BenchPage[], reviewed: z.infer<typeof truth>): Promise<void> {
  const scores = new Map<string, number[]>()
  for (const [at, page] of pages.entries()) {
    const { page_type, main_content } = reviewed[at] as (typeof reviewed)[number]
    const score = wordF1(await read(pool, page), main_content)
    for (const type of [page_type, 'all']) scores.set(type, [...(scores.get(type) ?? []), score])
  }
  for (const [type, all] of [...scores].sort())
    console.log(
      `${type.padEnd(14)} word F1 ${round(all.reduce((sum, score) => sum + score, 0) / all.length, 3)}  (${all.length} pages)`,
    )
}

async function read(pool: ExtractPool, { url, bytes }: BenchPage): Promise<string> {
  const job = {
    bytes: new Uint8Array(bytes),
    contentType: 'text/html; charset=utf-8',
    url,
    isCut: false,
    ...defaultReading,
  }
  const result = await pool.run(job, AbortSignal.timeout(30_000))
  return result.status === 'ok' ? result.text : ''
}

/** A news page of about 170 kB: most of it is not the article. */
function madeUpPage(at: number): BenchPage {
  const link = (n: number) => `<li class="nav-item"><a href="/section/${n}" class="nav-link">Section ${n}</a></li>`
  const paragraph = (n: number) =>
    `<p>Paragraph ${n} of story ${at} tells, at some length and with <a href="/about/${n}">a link</a>, what a river does between its source and the sea, and who lives beside it.</p>`
  const list = (length: number, make: (n: number) => string) => Array.from({ length }, (_, n) => make(n)).join('\n')
  const html = `<!doctype html><html lang="en"><head><title>Story ${at}</title><script>${'var state = {"a": [1, 2, 3]};'.repeat(1_500)}</script></head>
<body><nav><ul>${list(400, link)}</ul></nav><main><article><h1>Story ${at}</h1>${list(60, paragraph)}</article></main>
<aside><h2>Related</h2><ul>${list(300, link)}</ul></aside><footer><ul>${list(200, link)}</ul></footer></body></html>`
  return { url: `https://news.example/story/${at}`, bytes: Buffer.from(html) }
}

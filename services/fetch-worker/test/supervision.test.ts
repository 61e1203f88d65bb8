import type { ChildProcess } from 'node:child_process'
import { buildPdf } from '@tollgate/testing'
import { describe, expect, test } from 'vitest'
import { openWorld, readingBegins, serving, sharedWorld, textOf } from './world.ts'

/** Forms that change the font hundreds of thousands of times each: a few hundred KB that keep pdf.js busy for a minute. */
function spinning(): Uint8Array {
  const forms = 60
  const numbers = Array.from({ length: forms }, (_, at) => at)
  const data = '/F 1 Tf /F 2 Tf '.repeat(200_000)
  return buildPdf([
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << /XObject << ${numbers.map((at) => `/N${at} ${at + 6} 0 R`).join(' ')} >> >> >>`,
    { data: numbers.map((at) => `/N${at} Do`).join('\n') },
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
    ...numbers.map(() => ({
      dictionary: '/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /Font << /F 5 0 R >> >>',
      data,
      compress: true,
    })),
  ])
}

const site = serving({
  '/spin': ['application/pdf', spinning()],
  '/page': ['text/html', '<title>T</title><p>Text of a page.</p>'],
})
const PAGE = 'Text of a page.'

describe('F-26 an extracting process is replaced, and only the call it was on fails', () => {
  const shared = sharedWorld()
  const opened = () => {
    const world = shared().answering(site)
    const count = world.hosts.length
    const host = world.hosts[count - 1]
    if (!host) throw new Error('a process was to be started')
    return { ...world, host, count, begun: readingBegins(host) }
  }

  test('when it is killed during a parse', async () => {
    const { fetch, host, hosts, count, begun, log } = opened()
    const dying = fetch('http://site.test/spin')
    await begun
    const next = fetch('http://site.test/page')
    host.kill('SIGKILL')
    expect(await dying).toMatchObject({ status: 'failed', failure: 'extraction_failed' })
    expect(textOf(await next)).toBe(PAGE)
    expect(hosts).toHaveLength(count + 1)
    expect(textOf(await fetch('http://site.test/page'))).toBe(PAGE)
    expect(hosts).toHaveLength(count + 1)
    expect(log.some((line) => line.includes('an extracting process was replaced'))).toBe(true)
  })

  test('when it is killed with nothing to do', async () => {
    const { fetch, host, hosts, count } = opened()
    host.kill('SIGKILL')
    await expect.poll(() => hosts.length, { timeout: 10_000 }).toBe(count + 1)
    expect(textOf(await fetch('http://site.test/page'))).toBe(PAGE)
  })

  test('while a reading whose caller left is ended, and its process serves the next', async () => {
    const { fetch, bus, begun, hosts, count } = opened()
    const gone = new AbortController()
    const leaving = fetch('http://site.test/spin', {}, { signal: gone.signal })
    await begun
    gone.abort()
    await expect(leaving).rejects.toMatchObject({ failure: 'cancelled' })
    expect(textOf(await fetch('http://site.test/page'))).toBe(PAGE)
    expect(hosts.length).toBeLessThanOrEqual(count + 1)
    await expect.poll(() => bus.status().serving['tg.v1.fetch.page']?.busy).toBe(0)
  })

  test('F-25 a PDF that keeps the processor busy fails after its five seconds, and what waits behind it is answered', async () => {
    const { fetch, begun } = opened()
    const answer = fetch('http://site.test/spin')
    await begun
    const started = performance.now()
    const waiting = Array.from({ length: 4 }, () => fetch('http://site.test/page'))
    let beats = 0
    const beat = setInterval(() => beats++, 50)
    expect(await answer).toMatchObject({ failure: 'extraction_failed', reason: 'time' })
    clearInterval(beat)
    const took = performance.now() - started
    expect(took).toBeGreaterThan(4_500)
    expect(took).toBeLessThan(12_000)
    expect(beats).toBeGreaterThan(20)
    expect((await Promise.all(waiting)).map(textOf)).toEqual(waiting.map(() => PAGE))
  }, 40_000)
})

test('F-26 a process that is stuck is replaced, while a neighbour answers', async () => {
  const world = await openWorld(site, { settings: { threads: 2, extractLimits: { pdfMs: 500 } } })
  const begun = Promise.race(world.hosts.map((host): Promise<ChildProcess> => readingBegins(host).then(() => host)))
  const hanging = world.fetch('http://site.test/spin')
  const host = await begun
  host.kill('SIGSTOP')
  expect(textOf(await world.fetch('http://site.test/page'))).toBe(PAGE)
  expect(await hanging).toMatchObject({ failure: 'extraction_failed', reason: 'time' })
  expect(world.hosts).toHaveLength(3)
  await expect.poll(() => host.signalCode).toBe('SIGKILL')
  expect(textOf(await world.fetch('http://site.test/page'))).toBe(PAGE)
})

test('F-26 no process is left when the service has closed, and what it was on fails at once', async () => {
  const world = await openWorld(site)
  const [host] = world.hosts
  if (!host) throw new Error('a process was to be started')
  const begun = readingBegins(host)
  const calls = [world.fetch('http://site.test/spin'), world.fetch('http://site.test/page')]
  await begun
  const started = performance.now()
  expect(await world.worker.close(Date.now())).toBe(false)
  expect((await Promise.all(calls)).map(textOf)).toEqual(['extraction_failed', 'extraction_failed'])
  expect(performance.now() - started).toBeLessThan(5_000)
  await expect.poll(() => host.signalCode).toBe('SIGKILL')
  expect(world.hosts).toHaveLength(1)
})

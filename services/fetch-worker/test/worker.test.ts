import { fetchPage } from '@tollgate/contracts'
import { openLog, startTelemetry } from '@tollgate/telemetry'
import { startOtlp } from '@tollgate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openWorld, type PageEvent, serving, sharedWorld, textOf } from './world.ts'

const shared = sharedWorld({ settings: { slots: 4 } })
const site = serving({ '/page': ['text/html', '<title>T</title><p>Text of a page.'], '/gone': ['text/plain', '', 404] })

/** A site whose answers wait until they are let go. */
function holding() {
  const held: (() => void)[] = []
  return {
    held,
    answer: ((_request, response) => {
      held.push(() => response.setHeader('content-type', 'text/plain').end('let go'))
    }) as Parameters<ReturnType<typeof shared>['answering']>[0],
    letGo() {
      for (const end of held.splice(0)) end()
    },
  }
}

test('every answer is what the contract says', async () => {
  const world = shared().answering(site)
  for (const path of ['/page', '/gone', '/missing']) {
    const page = await world.fetch(`http://site.test${path}`)
    expect(fetchPage.output.parse(page)).toEqual(page)
  }
  expect(await world.fetch('http://site.test/page?q#f')).toMatchObject({ status: 'failed', httpStatus: 404 })
  expect(await world.fetch('http://site.test/page#f')).toEqual({
    status: 'ok',
    requestedUrl: 'http://site.test/page#f',
    finalUrl: 'http://site.test/page#f',
    contentType: 'text/html',
    title: 'T',
    httpStatus: 200,
    facts: expect.any(Object),
    format: expect.any(String),
    extractor: expect.any(String),
    text: 'Text of a page.',
    offset: 0,
    bodyCut: false,
    likelyJsRendered: false,
    notices: [],
    bytes: 34,
    label: 'builtin:builtin_fetch',
  })
})

test('it tells what it is at', async () => {
  const world = shared().answering(site)
  const events: PageEvent[] = []
  await world.fetch('http://site.test/page', {}, { onEvent: (event) => events.push(event) })
  expect(events).toEqual([{ type: 'downloading' }, { type: 'extracting' }])
})

describe('one page for several callers', () => {
  test('is downloaded once while it is under way, and again afterwards', async () => {
    const { answer, held, letGo } = holding()
    const world = shared().answering(answer)
    const calls = [50, 3, 50].map((maxTextBytes) => world.fetch('http://site.test/a', { maxTextBytes }))
    await expect.poll(() => world.bus.status().serving['tg.v1.fetch.page']?.busy).toBe(3)
    await expect.poll(() => held.length).toBe(1)
    letGo()
    expect((await Promise.all(calls)).map(textOf)).toEqual(['let go', 'let', 'let go'])
    expect(world.site.requests).toHaveLength(1)
    const again = world.fetch('http://site.test/a')
    await expect.poll(() => held.length).toBe(1)
    letGo()
    expect(textOf(await again)).toBe('let go')
    expect(world.site.requests).toHaveLength(2)
  })

  test('is not shared between callers who may not see the same', async () => {
    const { answer, held, letGo } = holding()
    const world = shared().answering(answer)
    const calls = [
      world.fetch('http://site.test/a'),
      world.fetch('http://site.test/a', { policy: { allowedDomains: ['two.test'] } }),
      world.fetch('http://site.test/a', { policy: { blockedDomains: ['two.test'] } }),
    ]
    expect(textOf((await calls[1]) ?? expect.fail())).toBe('domain_disallowed')
    await expect.poll(() => held.length).toBe(2)
    letGo()
    await Promise.all(calls)
  })

  test('goes on when one of them leaves, and ends when all have', async () => {
    const { answer, held, letGo } = holding()
    let closed = 0
    const world = shared().answering((request, response) => {
      request.once('close', () => closed++)
      answer(request, response)
    })
    const leavers = [new AbortController(), new AbortController(), new AbortController()]
    const call = (at: number) => world.fetch('http://site.test/a', {}, { signal: leavers[at]?.signal ?? expect.fail() })
    const [first, second] = [call(0), call(1)]
    await expect.poll(() => held.length).toBe(1)
    leavers[0]?.abort()
    await expect(first).rejects.toMatchObject({ failure: 'cancelled' })
    expect(closed).toBe(0)
    letGo()
    expect(textOf(await second)).toBe('let go')
    const third = call(2)
    await expect.poll(() => held.length).toBe(1)
    const before = closed
    leavers[2]?.abort()
    await expect(third).rejects.toMatchObject({ failure: 'cancelled' })
    await expect.poll(() => closed).toBe(before + 1)
  })
})

test('no more pages are worked on than there are slots', async () => {
  const { answer, held, letGo } = holding()
  const world = shared().answering(answer)
  const calls = Array.from({ length: 10 }, (_, at) => world.fetch(`http://site.test/${at}`, { timeoutMs: 20_000 }))
  let most = 0
  while (world.site.requests.length < 10 || held.length > 0) {
    await expect.poll(() => held.length).toBeGreaterThan(0)
    most = Math.max(most, held.length)
    letGo()
  }
  expect((await Promise.all(calls)).map(textOf)).toEqual(calls.map(() => 'let go'))
  expect(most).toBeLessThanOrEqual(4)
})

describe('a drain', () => {
  test('lets running pages end and takes nothing new', async () => {
    const { answer, held, letGo } = holding()
    const world = await openWorld(answer)
    const running = world.fetch('http://site.test/a')
    await expect.poll(() => held.length).toBe(1)
    const draining = world.bus.drain(Date.now() + 15_000)
    const closing = world.worker.close(Date.now() + 15_000)
    await expect(world.fetch('http://site.test/b')).rejects.toMatchObject({ failure: 'unavailable' })
    letGo()
    expect(textOf(await running)).toBe('let go')
    expect(await Promise.all([draining, closing])).toEqual([true, true])
    expect(world.site.requests).toHaveLength(1)
  })

  test('ends what still runs at its deadline', async () => {
    const { answer, held } = holding()
    const world = await openWorld(answer)
    const running = world.fetch('http://site.test/a')
    const outcome = expect(running).rejects.toMatchObject({ failure: 'unavailable' })
    await expect.poll(() => held.length).toBe(1)
    expect(await world.bus.drain(Date.now() + 100)).toBe(false)
    await outcome
  })
})

test('F-33 nothing of a path or query is in logs and spans, and no site is sent a trace', async () => {
  const otlp = await startOtlp()
  onTestFinished(() => otlp.stop())
  const silent = openLog({ service: 'test', level: 'silent' })
  const telemetry = startTelemetry({ service: 'fetch-worker', version: '1', log: silent, otlpEndpoint: otlp.url })
  onTestFinished(() => telemetry.shutdown())
  const world = shared().answering((request, response) => {
    if (request.url?.startsWith('/move'))
      response.writeHead(302, { location: '/page-secretpath?token=secretquery' }).end()
    else if (request.url?.startsWith('/broken')) request.socket.end('HTTP/1.1 secretstatus\r\n\r\n')
    else if (request.url?.startsWith('/page'))
      response.setHeader('content-type', 'text/html').end('<title>secrettitle</title><p>secretbody')
    else response.writeHead(500).end('secretbody')
  })
  const tail = 'secretpath?token=secretquery#secretfragment'
  const paths = ['move', 'page', 'broken', 'error', 'page\u0000']
  for (const path of paths) await world.fetch(`http://site.test/${path}/${tail}`)
  await world.fetch(`http://user:secretpath@site.test/${tail}`)
  await world.fetch(`http://unknown.test/${tail}`)
  await telemetry.shutdown()
  expect(otlp.spans.map(({ name }) => name)).toEqual(expect.arrayContaining(['GET', 'extract']))
  for (const { text } of otlp.spans) expect(text).not.toContain('secret')
  expect(world.log.length).toBeGreaterThan(0)
  for (const line of world.log) expect(line).not.toContain('secret')
  expect(world.site.requests.length).toBeGreaterThan(4)
  expect(world.site.requests.filter(({ headers }) => 'traceparent' in headers)).toEqual([])
})

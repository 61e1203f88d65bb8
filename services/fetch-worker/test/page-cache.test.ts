import type { RequestListener } from 'node:http'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { openWorld, sharedWorld, tenancy, textOf, type World } from './world.ts'

/** Answers each request with its number, so that a text tells which download it came of. */
const counting = (headers: Record<string, string> = {}): RequestListener => {
  let count = 0
  return (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/plain', ...headers }).end(`download ${++count} 😀 of the page`)
  }
}
const URL = 'http://site.test/'

/** Only `Date` is moved: everything else goes on by the real clock. */
function later(ms: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + ms })
  onTestFinished(() => {
    vi.useRealTimers()
  })
}

describe('a page that was read a moment ago', () => {
  const shared = sharedWorld({ settings: { pageCache: { ms: 60_000 } } })
  let at = 0
  /** A URL nobody has asked for yet. */
  const fresh = (headers: Record<string, string> = {}): { world: World; url: string } => ({
    world: shared().answering(counting(headers)),
    url: `${URL}${at++}`,
  })

  test('gives its next windows without a download', async () => {
    const { world, url } = fresh()
    const first = await world.fetch(url, { window: { offset: 0, maxChars: 12 } })
    expect(first).toMatchObject({ text: 'download 1 😀', nextOffset: 12, bytes: 27 })
    const second = await world.fetch(url, { window: { offset: 12, maxChars: 100 } })
    expect(second).toMatchObject({ text: ' of the page', bytes: 0, finalUrl: url, httpStatus: 200 })
    expect(world.site.requests).toHaveLength(1)
  })

  test('BR-091 is one snapshot while it is paged: its parts are the whole, each says where the next begins, the end is said', async () => {
    let downloads = 0
    /** 30,000 characters, with an emoji across each cut of ten thousand code units. */
    const text = (version: number) => {
      const part = `${version}${'a'.repeat(9_998)}😀`
      return `${part}${part}${version}${'a'.repeat(9_999)}`
    }
    const world = shared().answering((_request, response) =>
      response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' }).end(text(++downloads)),
    )
    const url = `${URL}paged`
    const read = (offset: number) => world.fetch(url, { window: { offset, maxChars: 10_000 } })
    const parts = [await read(0), await read(10_000), await read(20_000)]
    expect(parts).toMatchObject([
      { status: 'ok', totalChars: 30_000, nextOffset: 10_000 },
      { status: 'ok', totalChars: 30_000, nextOffset: 20_000 },
      { status: 'ok', totalChars: 30_000 },
    ])
    expect(parts[2]).not.toHaveProperty('nextOffset')
    expect(parts.every((part) => textOf(part).isWellFormed())).toBe(true)
    expect(parts.map(textOf).join('') === text(1)).toBe(true)
    // at the end nothing is left, and past it (WM-33) that is said, with the length; neither is the first page again
    expect(await read(30_000)).toMatchObject({ status: 'ok', text: '', offset: 30_000, totalChars: 30_000 })
    expect(await read(999_999)).toMatchObject({ status: 'failed', failure: 'offset_past_end', totalChars: 30_000 })
    expect(downloads).toBe(1)
  })

  test('is another one for who asks otherwise, or is somebody else', async () => {
    const { world, url } = fresh()
    const ways: Parameters<World['fetch']>[1][] = [
      {},
      { tenancy: { ...tenancy, workspace: 'ws_2' } },
      { tenancy: { ...tenancy, organization: 'org_2' } },
      { policy: { allowedDomains: ['site.test'] } },
      { policy: { blockedDomains: ['two.test'] } },
      { rules: { maxBodyBytes: 1_000 } },
      { rules: { maxRedirects: 1 } },
      { rules: { allowDowngrade: true } },
      { rules: { allowedHosts: ['x.corp'] } },
      { rules: { direct: true } },
      { reads: 'text' },
      { anyStatus: true },
      { format: 'html' },
      { format: 'text' },
      { part: 'whole' },
      { assets: true },
      { pdfPage: 2 },
      { allowPrivateHosts: true },
      { window: {} },
    ]
    for (const [index, way] of ways.entries()) {
      expect(textOf(await world.fetch(url, way)), JSON.stringify(way)).toMatch(`download ${index + 1} `)
    }
    for (const [index, way] of ways.entries()) {
      expect(textOf(await world.fetch(url, { ...way, timeoutMs: 4_000 }))).toMatch(`download ${index + 1} `)
    }
    const policy = { blockedDomains: ['site.test'] }
    expect(textOf(await world.fetch(url, { policy }))).toBe('domain_disallowed')
  })

  test('is asked for anew after a minute', async () => {
    const { world, url } = fresh()
    await world.fetch(url)
    later(59_000)
    expect(textOf(await world.fetch(url))).toMatch('download 1')
    later(2_000)
    expect(textOf(await world.fetch(url))).toMatch('download 2')
  })

  test.each([
    ['no-store', 'no-store', undefined],
    ['no-store among others', 'private, NO-STORE, max-age=50', undefined],
    ['no-cache', 'no-cache', 'download 1'],
    ['max-age=0', 'max-age=0', 'download 1'],
  ])(
    'RFC 9111 %s is respected, and a later window comes from what the first came from',
    async (_name, control, rest) => {
      const { world, url } = fresh({ 'cache-control': control })
      expect(textOf(await world.fetch(url, { window: { offset: 0 } }))).toMatch('download 1')
      expect(textOf(await world.fetch(url, { window: { offset: 0 } }))).toMatch('download 2')
      const later = textOf(await world.fetch(url, { window: { offset: 9, maxChars: 1 } }))
      expect(later).toBe(rest === undefined ? '3' : '2')
    },
  )

  test('RFC 9111 a max-age shorter than a minute is respected', async () => {
    const { world, url } = fresh({ 'cache-control': 'max-age=5' })
    await world.fetch(url)
    expect(textOf(await world.fetch(url))).toMatch('download 1')
    later(6_000)
    expect(textOf(await world.fetch(url))).toMatch('download 2')
  })

  test('RFC 9110 is asked about with what is known of it, where it was found, and stands when the site says so', async () => {
    const seen: unknown[] = []
    const modified = 'Mon, 02 Nov 2026 10:00:00 GMT'
    const world = shared().answering((request, response) => {
      seen.push([request.url, request.headers['if-none-match'], request.headers['if-modified-since']])
      if (request.url?.startsWith('/from')) response.writeHead(302, { location: '/to' }).end()
      else if (request.headers['if-none-match'] === '"v1"') response.writeHead(304).end()
      else {
        const known = { etag: '"v1"', 'last-modified': modified, 'cache-control': 'no-cache' }
        response.writeHead(200, { 'content-type': 'text/plain', ...known }).end('the page')
      }
    })
    for (const bytes of [8, 0, 0]) {
      expect(await world.fetch(`${URL}from`)).toMatchObject({ text: 'the page', bytes, finalUrl: `${URL}to` })
    }
    expect(seen).toEqual([
      ['/from', undefined, undefined],
      ['/to', undefined, undefined],
      ['/from', undefined, undefined],
      ['/to', '"v1"', modified],
      ['/from', undefined, undefined],
      ['/to', '"v1"', modified],
    ])
  })

  test('is replaced when the site says that it changed', async () => {
    let version = 1
    const world = shared().answering((request, response) => {
      const etag = `"v${version}"`
      if (request.headers['if-none-match'] === etag) response.writeHead(304).end()
      else response.writeHead(200, { 'content-type': 'text/plain', etag, 'cache-control': 'no-cache' }).end(etag)
    })
    const url = `${URL}changing`
    expect(textOf(await world.fetch(url))).toBe('"v1"')
    version = 2
    expect(textOf(await world.fetch(url))).toBe('"v2"')
    expect(await world.fetch(url)).toMatchObject({ text: '"v2"', bytes: 0 })
  })

  test('BR-101 is no failure, and no error page', async () => {
    let count = 0
    const world = shared().answering((_request, response) => {
      response.writeHead(++count < 5 ? 503 : 200, { 'content-type': 'text/plain' }).end(`${count}`)
    })
    const url = `${URL}ill`
    for (const status of ['http_status', 'http_status']) expect(textOf(await world.fetch(url))).toBe(status)
    for (const text of ['3', '4']) expect(textOf(await world.fetch(url, { anyStatus: true }))).toBe(text)
    expect(textOf(await world.fetch(url))).toBe('5')
  })
})

describe('its bounds', () => {
  const opened = (pageCache: { entries?: number; bytes?: number; ms?: number }) =>
    openWorld(counting(), { settings: { pageCache: { ms: 60_000, ...pageCache } } })

  test('entries: the one that was not used for longest goes', async () => {
    const world = await opened({ entries: 2 })
    const [a, b, c] = ['a', 'b', 'c'].map((path) => `${URL}${path}`) as [string, string, string]
    await world.fetch(a)
    await world.fetch(b)
    expect(await world.fetch(a)).toMatchObject({ bytes: 0 })
    await world.fetch(c)
    expect(await world.fetch(a)).toMatchObject({ bytes: 0 })
    expect(await world.fetch(b)).toMatchObject({ bytes: 27 })
  })

  test('bytes: what is larger than all of it is not kept, and does not push others out', async () => {
    const world = await opened({ bytes: 3_000 })
    await world.fetch(`${URL}small`)
    world.answering((_request, response) => response.setHeader('content-type', 'text/plain').end('x'.repeat(2_000)))
    await world.fetch(`${URL}large`)
    await world.fetch(`${URL}large`)
    expect(world.site.requests).toHaveLength(2)
    expect(await world.fetch(`${URL}small`)).toMatchObject({ bytes: 0 })
  })

  test('0 milliseconds: none is kept', async () => {
    const world = await opened({ ms: 0 })
    expect(textOf(await world.fetch(URL))).toMatch('download 1')
    expect(textOf(await world.fetch(URL))).toMatch('download 2')
  })
})

import { openRawSite, openSite, selfSigned } from '@tollgate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openWorld, PUBLIC, serving, sharedWorld, textOf } from './world.ts'

const shared = sharedWorld({
  dns: { 'wiki.corp': ['10.1.2.3'], 'sub.wiki.corp': ['10.1.2.3'], 'turning.test': [[PUBLIC], ['127.0.0.1']] },
})
const URL = 'http://site.test/'

describe('WM-21 a limit for each network operation', () => {
  const rules = { operationTimeoutMs: 300 }
  const raw = async (answer: Parameters<typeof openRawSite>[0]) => {
    const site = await openRawSite(answer)
    onTestFinished(() => site.close())
    const world = shared().answering(serving({}))
    world.ports[PUBLIC] = site.port
    onTestFinished(() => {
      world.ports[PUBLIC] = world.site.port
    })
    return world
  }

  test('WM-21 a head and a body that do not come end there, and say where', async () => {
    const silent = await raw(() => {})
    expect(await silent.fetch(URL, { rules, timeoutMs: 60_000 })).toMatchObject({
      failure: 'timeout',
      stage: 'headers',
    })
    const half = await raw((socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nhalf'))
    expect(await half.fetch(URL, { rules, timeoutMs: 60_000 })).toMatchObject({ failure: 'timeout', stage: 'body' })
  })

  test('WM-21 a handshake that does not come as well', async () => {
    const silent = await raw(() => {})
    expect(await silent.fetch('https://site.test/', { rules, timeoutMs: 60_000 })).toMatchObject({
      failure: 'timeout',
      stage: 'tls',
    })
  })

  test('WM-21 a drip that is quicker than the limit goes on until the ceiling, and is a timeout then', async () => {
    let drops = 0
    const drip = await raw((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n')
      const timer = setInterval(() => socket.write(`${drops++}`), 50)
      socket.once('close', () => clearInterval(timer))
    })
    expect(await drip.fetch(URL, { rules: { operationTimeoutMs: 1_000 }, timeoutMs: 2_500 })).toMatchObject({
      failure: 'timeout',
      stage: 'body',
    })
    expect(drops).toBeGreaterThan(20) // for longer than one operation may take
  })
})

describe('WM-36 textual types only', () => {
  const get = (contentType: string | undefined, body: string | Uint8Array, status = 200) =>
    shared()
      .answering(serving({ '/': [contentType, body, status] }))
      .fetch(URL, { reads: 'text' })

  test.each([
    'text/html',
    'TEXT/HTML; charset=utf-8',
    'application/xhtml+xml',
    'text/plain',
    'text/markdown',
    'application/json',
    'application/xml',
    'text/csv',
    'text/x-anything',
    'application/ld+json',
    'image/svg+xml',
    'application/rss+xml',
  ])('WM-36 %s is read', async (contentType) => expect(textOf(await get(contentType, 'words'))).toBe('words'))

  test.each([
    'application/pdf',
    'image/png',
    'application/octet-stream',
    'application/zip',
    'video/mp4',
    'audio/mpeg',
    'application/javascript',
    'application/vnd.ms-excel',
  ])('WM-37 %s is refused from the head, with its size', async (contentType) => {
    const world = shared().answering((_request, response) => {
      response.writeHead(200, { 'content-type': `${contentType.toUpperCase()}; x=y`, 'content-length': 123_456 })
      response.write('and no end')
    })
    expect(await world.fetch(URL, { reads: 'text' })).toEqual({
      status: 'failed',
      failure: 'unsupported_type',
      httpStatus: 200,
      declared: { contentType, bytes: 123_456 },
      label: 'builtin:builtin_fetch',
    })
  })

  test.each([
    ['a PDF', '%PDF-1.7 and text'],
    ['a ZIP', 'PK\x03\x04'],
    ['a PNG', Buffer.from('89504e470d0a1a0a', 'hex')],
    ['a JPEG', Buffer.from('ffd8ffe0', 'hex')],
    ['a GIF', 'GIF89a'],
    ['a WebP', 'RIFFabcdWEBPVP8 '],
    ['gzip', Buffer.from('1f8b0800', 'hex')],
    ['ELF', '\x7fELF'],
    ['a NUL', 'words \0 words'],
    ['controls', 'ab\x01\x02\x03'],
  ])('WM-38 without a type, %s is refused', async (_what, body) =>
    expect(await get(undefined, body)).toMatchObject({ failure: 'unsupported_type', declared: {} }),
  )

  test('WM-38 without a type, a page is a page and text is text', async () => {
    expect(await get(undefined, '<!doctype html><title>T</title><p>words')).toMatchObject({ title: 'T', text: 'words' })
    expect(await get(undefined, '{"a": "b"}')).toMatchObject({ text: '{"a": "b"}', format: 'text', extractor: 'none' })
  })

  test('WM-39 what is no HTML comes back as it was, a feed too', async () => {
    const feed =
      '<?xml version="1.0"?><rss version="2.0"><channel><title>F</title><item><title>I</title></item></channel></rss>'
    for (const type of ['application/rss+xml; charset=utf-8', 'application/xml', 'text/xml']) {
      const page = await get(type, feed)
      expect(page, type).toMatchObject({ text: feed, format: 'text', extractor: 'none' })
      expect(page, type).not.toHaveProperty('title')
    }
  })

  test('F-17 documents are more than that', async () =>
    expect(
      textOf(
        await shared()
          .answering(serving({ '/': ['application/javascript', 'x()'] }))
          .fetch(URL),
      ),
    ).toBe('x()'))
})

describe('WM-40 any status', () => {
  test.each([404, 500, 403, 301, 304])('WM-40 %d is an answer, when that is asked for', async (status) => {
    const world = shared().answering(serving({ '/': ['text/plain', status === 304 ? '' : 'gone', status] }))
    expect(await world.fetch(URL, { anyStatus: true })).toMatchObject({ status: 'ok', httpStatus: status })
    expect(await world.fetch(URL)).toMatchObject({ status: 'failed', failure: 'http_status', httpStatus: status })
  })

  test('of a type that is not read is refused all the same', async () => {
    const world = shared().answering(serving({ '/': ['image/png', 'x', 404] }))
    expect(await world.fetch(URL, { anyStatus: true })).toMatchObject({ failure: 'unsupported_type', httpStatus: 404 })
  })
})

test('VB-8 a second hop to the same host is looked up and judged anew', async () => {
  const world = shared().answering((_request, response) => response.writeHead(302, { location: '/2' }).end())
  expect(await world.fetch('http://turning.test/')).toMatchObject({
    failure: 'redirect_disallowed',
    redirect: 'not_allowed',
  })
  expect(world.dns.lookups).toEqual(['turning.test', 'turning.test'])
  expect(world.site.connections).toBe(1)
})

test('WM-40 a challenge for browsers is an answer too, where any is', async () => {
  const challenge = `<!doctype html><title>Just a moment...</title><script>window._cf_chl_opt={cType:'managed'}</script><p>Enable JavaScript and cookies to continue</p>`
  const world = shared().answering(serving({ '/': ['text/html', challenge, 403] }))
  const page = await world.fetch(URL, { anyStatus: true })
  expect(page).toMatchObject({ status: 'ok', httpStatus: 403, text: 'Enable JavaScript and cookies to continue' })
})

test('VB-9 a page that points inside with its images and links causes no request there', async () => {
  const recorder = await openSite((_request, response) => response.end('inside'))
  onTestFinished(() => recorder.close())
  const inside = `http://127.0.0.1:${recorder.port}`
  const html = `<!doctype html><head><base href="${inside}/"><link rel="icon" href="${inside}/icon.png"><meta property="og:image" content="${inside}/og.png">
    <meta http-equiv="refresh" content="0; url=${inside}/refresh"></head><body><img src="${inside}/a.png"><a href="${inside}/b">b</a><iframe src="${inside}/c"></iframe></body>`
  const world = shared().answering(serving({ '/': ['text/html', html] }))
  const page = await world.fetch(URL, { assets: true })
  expect(page).toMatchObject({ status: 'ok', assets: { links: [{ url: `${inside}/b`, text: 'b' }] } })
  expect(recorder.connections).toBe(0)
})

describe('rules of a call', () => {
  test('WM-42 its own size limit cuts text, and says so', async () => {
    const world = shared().answering(serving({ '/': ['text/plain', 'a😀b'] }))
    expect(await world.fetch(URL, { rules: { maxBodyBytes: 4 } })).toMatchObject({
      text: 'a',
      bodyCut: true,
      bytes: 4,
      notices: ['[Source content truncated at the 4 byte response limit.]'],
    })
    expect(await world.fetch(URL, { rules: { maxBodyBytes: 6 } })).toMatchObject({ text: 'a😀b', bodyCut: false })
  })

  test('WM-22 its own number of redirects, and which one was refused', async () => {
    const world = shared().answering((request, response) => {
      const at = Number(request.url?.slice(1))
      if (at < 3) response.writeHead(302, { location: `/${at + 1}` }).end()
      else if (at === 9) response.writeHead(302, { location: 'http://10.0.0.1/' }).end()
      else response.setHeader('content-type', 'text/plain').end('there')
    })
    const get = (path: number, maxRedirects?: number) =>
      world.fetch(`http://site.test/${path}`, maxRedirects === undefined ? {} : { rules: { maxRedirects } })
    expect(textOf(await get(0, 3))).toBe('there')
    expect(await get(0, 2)).toMatchObject({ failure: 'redirect_disallowed', redirect: 'too_many' })
    expect(await get(2, 0)).toMatchObject({ failure: 'redirect_disallowed', redirect: 'too_many' })
    expect(textOf(await get(3, 0))).toBe('there')
    expect(await get(9)).toMatchObject({ failure: 'redirect_disallowed', redirect: 'not_allowed' })
  })

  test('WM-86 hosts that it names are reached, and nobody else’s addresses', async () => {
    const world = shared().answering(serving({ '/': ['text/plain', 'inside'] }))
    world.ports['10.1.2.3'] = world.site.port
    const rules = { allowedHosts: ['wiki.corp'] }
    expect(textOf(await world.fetch('http://WIKI.corp./', { rules }))).toBe('inside')
    for (const url of ['http://sub.wiki.corp/', 'http://10.1.2.3/', 'http://wiki.corp@10.1.2.3/', 'ftp://wiki.corp/']) {
      expect(textOf(await world.fetch(url, { rules })), url).toBe('url_disallowed')
    }
    expect(textOf(await world.fetch('http://wiki.corp/'))).toBe('url_disallowed')
  })

  test('V-I20 a downgrade is followed where the surface allows it, and F-22 nowhere else', async () => {
    const tls = selfSigned('site.test')
    const world = await openWorld(
      (_request, response) => {
        response.writeHead(302, { location: 'http://two.test/' }).end()
      },
      { tls },
    )
    const plain = await openRawSite((socket) =>
      socket.end('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nplain'),
    )
    onTestFinished(() => plain.close())
    world.ports['1.1.1.1'] = plain.port
    expect(textOf(await world.fetch('https://site.test/', { rules: { allowDowngrade: true } }))).toBe('plain')
    expect(await world.fetch('https://site.test/')).toMatchObject({ failure: 'redirect_disallowed' })
  })

  test('WM-24 a call may insist on going direct', async () => {
    let asked = 0
    const proxy = await openRawSite((socket) => {
      asked++
      socket.end('HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nproxy')
    })
    onTestFinished(() => proxy.close())
    const world = await openWorld(serving({ '/': ['text/plain', 'direct'] }), {
      settings: { proxies: { allProxy: `http://127.0.0.1:${proxy.port}` } },
    })
    expect(textOf(await world.fetch(URL))).toBe('proxy')
    expect(textOf(await world.fetch(URL, { rules: { direct: true } }))).toBe('direct')
    expect(asked).toBe(1)
  })
})

test('WM-09 a caller who leaves closes the connection', async () => {
  const events: string[] = []
  const world = shared().answering((request) => {
    events.push('asked')
    request.socket.once('close', () => events.push('closed'))
  })
  const gone = new AbortController()
  const left = expect(world.fetch(URL, {}, { signal: gone.signal })).rejects.toMatchObject({ failure: 'cancelled' })
  await expect.poll(() => events).toEqual(['asked'])
  gone.abort()
  await left
  await expect.poll(() => events).toEqual(['asked', 'closed'])
})

import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { gzipSync } from 'node:zlib'
import { dnsStub, type FakeSite, loopbackDialer, openRawSite, openSite, selfSigned } from '@tollgate/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Downloaded, type DownloadRequest, type GuardOptions, openDownloader, openGuard } from '../src/index.ts'
import { hopVectors } from './hop-vectors.ts'

const page: RequestListener = (_request, response) => response.end('a page')
const PUBLIC = '93.184.216.34'
const everyone = { allowedDomains: null, blockedDomains: [] }
const closing: { close(): Promise<void> }[] = []
afterAll(() => Promise.all(closing.map((each) => each.close())))

interface World {
  dns?: Record<string, string[] | string[][]>
  ports: Parameters<typeof loopbackDialer>[0]
  guard?: GuardOptions
  ca?: string[]
}

/** A downloader in a world of its own: names, addresses and who answers there. */
function world({ dns = {}, ports, guard = {}, ca }: World) {
  const names = dnsStub(dns)
  const dialer = loopbackDialer(ports)
  const run = openDownloader({ userAgent: 'otari-web-retrieval/1.0', dialer, ...(ca ? { ca } : {}) })
  const judge = openGuard(names.resolve, guard)
  const get = (url: string, change: Partial<DownloadRequest> = {}): Promise<Downloaded> =>
    run({
      url,
      judge,
      policy: everyone,
      accept: '*/*',
      maxBytes: 1_000_000,
      maxRedirects: 5,
      allowDowngrade: false,
      deadline: Date.now() + 3_000,
      signal: new AbortController().signal,
      ...change,
    })
  return { get, names, dialer }
}

async function site(answer: RequestListener = page, tls?: { key: string; cert: string }): Promise<FakeSite> {
  const opened = await openSite(answer, tls ? { tls } : {})
  closing.push(opened)
  return opened
}

/** Answers with these `Location`s by path, and with a page elsewhere. */
const redirecting =
  (to: Record<string, string>, status = 302): RequestListener =>
  (request, response) => {
    const location = to[request.url ?? '']
    if (location === undefined) response.end('a page')
    else response.writeHead(status, { location }).end()
  }

const text = (answer: Downloaded): string =>
  answer.outcome === 'answered'
    ? Buffer.from(answer.body?.bytes ?? []).toString()
    : `${answer.outcome} ${answer.failure}`
const failure = (answer: Downloaded): string => (answer.outcome === 'failed' ? answer.failure : answer.outcome)

describe('WM-80 to WM-86 every vector through the whole client, and a recorder', () => {
  const names = [
    'example.com',
    'a.test',
    'a_b.test',
    'both.test',
    'aaaa.test',
    'single',
    'wiki.corp',
    'xn--bcher-kva.example',
    'localhost',
  ]
  const certificate = selfSigned(...names)
  let plain: FakeSite
  let secure: FakeSite
  let recorder: FakeSite
  beforeAll(async () => {
    plain = await site()
    secure = await site(page, certificate)
    recorder = await site()
  })

  test.each(hopVectors)('%s %s', async (_id, url, verdict, why, given) => {
    const secured = /^\s*https:/i.test(url)
    const { get, dialer } = world({
      dns: given?.dns ?? {},
      ports: { '*': (secured ? secure : plain).port },
      guard: { allowedHosts: given?.allow ?? [] },
      ca: [certificate.cert],
    })
    const answer = await get(url.replace('127.0.0.1:80', `127.0.0.1:${recorder.port}`))
    if (verdict === 'accept') expect(text(answer), why).toBe('a page')
    else expect(failure(answer), why).toBe(verdict === 'error' ? 'network' : 'url_disallowed')
    expect(dialer.dialed).toHaveLength(verdict === 'accept' ? 1 : 0)
  })

  test('BR-110 no connection reached an address that was not the one asked for', () =>
    expect(recorder.connections).toBe(0))
})

describe('WM-85 redirects and rebinding', () => {
  const dns = {
    'pub.test': [PUBLIC],
    'two.test': ['1.1.1.1'],
    'int.test': ['10.0.0.5'],
    'mixed.test': [PUBLIC, '10.0.0.5'],
    'wiki.corp': ['10.1.2.3'],
    'rb.test': [[PUBLIC], ['127.0.0.1']],
    'rb2.test': [['127.0.0.1'], [PUBLIC]],
    'rb3.test': [[PUBLIC], ['127.0.0.1']],
    'rb4.test': [[PUBLIC], [PUBLIC]],
  }
  const certificate = selfSigned('pub.test', 'two.test')
  const chain = (length: number) =>
    Object.fromEntries(Array.from({ length }, (_, at) => [at === 0 ? '/' : `/${at}`, `/${at + 1}`]))

  type Vector = [
    id: string,
    start: string,
    to: Record<string, string>,
    verdict: 'accept' | 'refuse',
    change?: Partial<DownloadRequest>,
    guard?: GuardOptions,
  ]
  const wiki = { allowedHosts: ['wiki.corp'] }
  const vectors: Vector[] = [
    ['V-I01', 'http://pub.test/', { '/': 'http://127.0.0.1:PORT/' }, 'refuse'],
    ['V-I02', 'http://pub.test/', { '/': 'http://169.254.169.254/latest/meta-data/' }, 'refuse'],
    ['V-I03', 'http://pub.test/', { '/': '/next' }, 'accept'],
    ['V-I04', 'http://pub.test/', { '/': '//int.test/x' }, 'refuse'],
    ['V-I05', 'http://pub.test/', { '/': 'https://two.test/ok' }, 'accept'],
    ['V-I06', 'http://pub.test/', { '/': 'ftp://two.test/' }, 'refuse'],
    ['V-I07', 'http://pub.test/', { '/': 'file:///etc/passwd' }, 'refuse'],
    ['V-I08', 'http://pub.test/', { '/': 'http://[::ffff:127.0.0.1]:PORT/' }, 'refuse'],
    ['V-I09', 'http://pub.test/', { '/': 'http://2130706433:PORT/' }, 'refuse'],
    ['V-I10', 'http://pub.test/', { '/': 'http://u:p@two.test/' }, 'refuse'],
    ['V-I11', 'http://pub.test/', { '/': 'http://two.test\\@127.0.0.1:PORT/' }, 'refuse'],
    ['V-I12', 'http://pub.test/', { '/': 'http://mixed.test/' }, 'refuse'],
    ['V-I13', 'http://pub.test/', { '/': 'http://localhost:PORT/' }, 'refuse'],
    ['V-I14', 'http://pub.test/', chain(5), 'accept'],
    ['V-I15', 'http://pub.test/', chain(6), 'refuse'],
    ['V-I16', 'http://pub.test/', { '/': '/' }, 'refuse'],
    ['V-I17', 'http://pub.test/', { '/': '/next' }, 'refuse', { maxRedirects: 0 }],
    ['V-I18', 'http://pub.test/', { '/': 'http://wiki.corp/ok' }, 'accept', {}, wiki],
    ['V-I19', 'http://wiki.corp/', { '/': 'http://int.test/' }, 'refuse', {}, wiki],
    ['V-I20', 'https://pub.test/', { '/': 'http://two.test/ok' }, 'accept', { allowDowngrade: true }],
    ['V-I21', 'https://pub.test/', { '/': 'http://two.test/ok' }, 'refuse'],
    ['V-I22', 'http://rb.test/', {}, 'accept'],
    ['V-I23', 'http://rb2.test/', {}, 'refuse'],
    ['V-I24', 'http://rb3.test/', { '/': '/2' }, 'refuse'],
    ['V-I25', 'http://rb4.test/', { '/': '/2' }, 'accept'],
    ['BR-111 a 307 to loopback', 'http://pub.test/', { '/': 'http://[::1]:PORT/' }, 'refuse'],
    ['BR-111 scheme-relative metadata', 'http://pub.test/', { '/': '//169.254.169.254/' }, 'refuse'],
    ['BR-111 30 hops', 'http://pub.test/', chain(30), 'refuse'],
    ['BR-111 a loop of two', 'http://pub.test/', { '/': '/a', '/a': '/#x' }, 'refuse'],
    ['an empty Location', 'http://pub.test/', { '/': '' }, 'refuse'],
    ['a Location that is no URL', 'http://pub.test/', { '/': 'http://' }, 'refuse'],
  ]

  test.each(vectors)('%s', async (_id, start, to, verdict, change = {}, guard = {}) => {
    const recorder = await site()
    const routes = Object.fromEntries(
      Object.entries(to).map(([from, location]) => [from, location.replace('PORT', String(recorder.port))]),
    )
    const plain = await site(redirecting(routes))
    const secure = await site(redirecting(routes), certificate)
    const ports = { 80: plain.port, 443: secure.port }
    const { get, names } = world({
      dns,
      ports: { [PUBLIC]: ports, '1.1.1.1': ports, '10.1.2.3': ports },
      guard,
      ca: [certificate.cert],
    })
    const answer = await get(start, change)
    if (verdict === 'accept') expect(text(answer)).toBe('a page')
    else expect(failure(answer)).toMatch(/^(redirect|url)_disallowed$/)
    expect(recorder.connections).toBe(0)
    const hops = plain.requests.length + secure.requests.length
    expect(names.lookups.length).toBeLessThanOrEqual(hops + (verdict === 'accept' ? 0 : 1))
    for (const { headers } of [...plain.requests, ...secure.requests]) expect(headers.host).toMatch(/\.(test|corp)$/)
  })

  test.each([301, 302, 303, 307, 308])(
    'F-22 follows %i as a GET, and a 3xx without Location not at all',
    async (status) => {
      const at = await site(redirecting({ '/': '/next' }, status))
      const { get } = world({ dns, ports: { [PUBLIC]: at.port } })
      const answer = await get('http://pub.test/')
      expect(text(answer)).toBe('a page')
      expect(answer).toMatchObject({ redirected: true, head: { status: 200, url: new URL('http://pub.test/next') } })
      const bare = await site((_request, response) => response.writeHead(status).end('moved'))
      expect(await world({ dns, ports: { [PUBLIC]: bare.port } }).get('http://pub.test/')).toMatchObject({
        head: { status },
      })
    },
  )

  test('F-22 300 and 304 are no redirects, Refresh is not followed', async () => {
    for (const status of [300, 304]) {
      const at = await site((_request, response) =>
        response.writeHead(status, { location: '/x', refresh: '0; url=/y' }).end(),
      )
      expect(await world({ dns, ports: { [PUBLIC]: at.port } }).get('http://pub.test/')).toMatchObject({
        head: { status },
      })
      expect(at.requests).toHaveLength(1)
    }
  })

  test('W-33 the domain policy is applied to each hop', async () => {
    const at = await site(redirecting({ '/': 'http://two.test/x' }))
    const { get } = world({ dns, ports: { '*': at.port } })
    expect(
      failure(await get('http://pub.test/', { policy: { allowedDomains: null, blockedDomains: ['two.test'] } })),
    ).toBe('domain_disallowed')
    expect(
      failure(await get('http://pub.test/', { policy: { allowedDomains: ['pub.test'], blockedDomains: [] } })),
    ).toBe('domain_disallowed')
    expect(at.requests.map(({ headers }) => headers.host)).toEqual(['pub.test', 'pub.test'])
    expect(text(await get('http://pub.test/', { policy: { allowedDomains: ['test'], blockedDomains: [] } }))).toBe(
      'a page',
    )
  })

  test('BR-118 nothing is carried from hop to hop', async () => {
    const at = await site((request, response) => {
      if (request.url === '/') response.writeHead(302, { location: 'http://two.test/x', 'set-cookie': 'a=b' }).end()
      else response.end('a page')
    })
    expect(text(await world({ dns, ports: { '*': at.port } }).get('http://pub.test/'))).toBe('a page')
    expect(at.connections).toBe(2)
    for (const { headers } of at.requests) {
      expect(Object.keys(headers).sort()).toEqual(['accept', 'accept-encoding', 'connection', 'host', 'user-agent'])
    }
  })

  test('a Location with raw UTF-8 in it leads where a browser would go', async () => {
    const at = await site((request, response) => {
      if (request.url !== '/') return response.end(request.url)
      return response.writeHead(302, { location: Buffer.from('/caf\u00e9').toString('latin1') }).end()
    })
    expect(text(await world({ dns, ports: { '*': at.port } }).get('http://pub.test/'))).toBe('/caf%C3%A9')
  })
})

describe('WM-84 the pinned connection', () => {
  const certificate = selfSigned('a.test', '93.184.216.35')
  const dns = { 'a.test': [PUBLIC, '1.1.1.1'], 'other.test': [PUBLIC] }
  let secure: FakeSite
  beforeAll(async () => {
    secure = await site(page, certificate)
  })

  test('VB-1 sends the name as SNI, and none for an address', async () => {
    const { get } = world({ dns, ports: { '*': secure.port }, ca: [certificate.cert] })
    for (const url of ['https://a.test/', 'https://a.test./', 'https://93.184.216.35/'])
      expect(text(await get(url)), url).toBe('a page')
    expect(secure.requests.slice(-3).map(({ serverName }) => serverName)).toEqual(['a.test', 'a.test', undefined])
  })

  test('VB-1 rejects a certificate for another name, and one from nobody known', async () => {
    const seen = secure.requests.length
    const { get } = world({ dns, ports: { '*': secure.port }, ca: [certificate.cert] })
    for (const url of ['https://other.test/', 'https://93.184.216.36/']) {
      expect(await get(url), url).toMatchObject({ failure: 'network', stage: 'tls' })
    }
    const strangers = world({ dns, ports: { '*': secure.port } })
    expect(await strangers.get('https://a.test/')).toMatchObject({ failure: 'network', stage: 'tls' })
    expect(secure.requests).toHaveLength(seen)
  })

  test('VB-2 the Host is the URL’s, with its port when that is not the usual one', async () => {
    const at = await site()
    const { get, dialer } = world({ dns, ports: { '*': at.port } })
    await get('http://A.test/')
    await get('http://a.test:8080/')
    await get('http://a.test.:81/')
    expect(at.requests.map(({ headers }) => headers.host)).toEqual(['a.test', 'a.test:8080', 'a.test.:81'])
    expect(dialer.dialed).toEqual([80, 8080, 81].map((port) => ({ address: PUBLIC, port })))
  })

  test('VB-4 uses the first address and never another', async () => {
    const { get, dialer } = world({ dns, ports: { '1.1.1.1': secure.port } })
    expect(await get('http://a.test/')).toMatchObject({ failure: 'network', stage: 'connect' })
    expect(dialer.dialed).toEqual([{ address: PUBLIC, port: 80 }])
  })

  test('VB-5 closes a connection whose peer is not the checked address, before asking anything', async () => {
    const at = await site()
    const astray = { ...loopbackDialer({ '*': at.port }), peer: () => '10.0.0.1' }
    const run = openDownloader({ userAgent: 'x', dialer: astray })
    const { judge, ...rest } = {
      judge: openGuard(dnsStub(dns).resolve),
      policy: everyone,
      accept: '*/*',
      maxBytes: 1,
      maxRedirects: 0,
    }
    const answer = await run({
      url: 'http://a.test/',
      judge,
      ...rest,
      allowDowngrade: false,
      deadline: Date.now() + 3_000,
      signal: new AbortController().signal,
    })
    expect(answer).toMatchObject({ failure: 'network', stage: 'connect' })
    expect(at.requests).toEqual([])
  })

  test('VB-6 a failure tells neither host nor address', async () => {
    const at = await site(redirecting({ '/': 'http://169.254.169.254/latest/meta-data/' }))
    const { get } = world({ dns: { ...dns, 'metadata.google.internal': ['169.254.169.254'] }, ports: { '*': at.port } })
    for (const url of ['http://169.254.169.254/', 'http://metadata.google.internal/', 'http://a.test/']) {
      expect(JSON.stringify(await get(url))).not.toMatch(/169\.254|internal|a\.test/)
    }
  })

  test('F-29 sends its own few headers', async () => {
    const at = await site()
    await world({ dns, ports: { '*': at.port } }).get('http://a.test/x?y=1#z', { accept: 'text/html' })
    expect(at.requests).toEqual([
      {
        method: 'GET',
        target: '/x?y=1',
        headers: {
          host: 'a.test',
          connection: 'close',
          'user-agent': 'otari-web-retrieval/1.0',
          accept: 'text/html',
          'accept-encoding': 'gzip, deflate',
        },
        serverName: undefined,
      },
    ])
  })
})

describe('F-21 one deadline for everything', () => {
  const dns = { 'a.test': [PUBLIC] }
  const within = async (answer: Promise<Downloaded>, ms: number) => {
    const started = performance.now()
    expect(failure(await answer)).toBe('timeout')
    expect(performance.now() - started).toBeLessThan(ms)
  }

  test('redirects that are each quick enough are too slow together', async () => {
    const slow = await site((request, response) => {
      const at = Number(request.url?.slice(1))
      setTimeout(() => response.writeHead(302, { location: `/${at + 1}` }).end(), 150)
    })
    await within(
      world({ dns, ports: { '*': slow.port } }).get('http://a.test/0', { deadline: Date.now() + 500 }),
      1_000,
    )
    expect(slow.requests.length).toBeGreaterThan(2)
  })

  test('a resolver, a connect, a handshake, a head and a body that never come', async () => {
    const silent = await openRawSite(() => {})
    const drip = await openRawSite((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      const timer = setInterval(() => socket.write('x'), 20)
      socket.once('close', () => clearInterval(timer))
    })
    const dripHead = await openRawSite((socket) => {
      socket.write('HTTP/1.1 200 OK\r\n')
      const timer = setInterval(() => socket.write('X-A: b\r\n'), 20)
      socket.once('close', () => clearInterval(timer))
    })
    const hints = await openRawSite((socket) => {
      const timer = setInterval(() => socket.write('HTTP/1.1 103 Early Hints\r\n\r\n'), 5)
      socket.once('close', () => clearInterval(timer))
    })
    closing.push(silent, drip, dripHead, hints)
    const soon = () => ({ deadline: Date.now() + 200 })
    for (const { port } of [silent, drip, dripHead, hints]) {
      await within(world({ dns, ports: { '*': port } }).get('http://a.test/', soon()), 700)
    }
    await within(world({ dns, ports: { '*': silent.port } }).get('https://a.test/', soon()), 700)
    const never = openGuard(
      (_host, signal) => new Promise((_, no) => signal.addEventListener('abort', () => no(signal.reason))),
    )
    await within(world({ ports: {} }).get('http://a.test/', { ...soon(), judge: never }), 700)
    await within(world({ dns, ports: { '*': silent.port } }).get('http://a.test/', { deadline: Date.now() - 1 }), 100)
  })

  test('a caller who leaves ends it at once, and the connection with it', async () => {
    const gone = new AbortController()
    let closed: Promise<unknown> = Promise.resolve()
    const hanging = await site((request) => {
      closed = once(request.socket, 'close')
      gone.abort(new Error('left'))
    })
    await expect(
      world({ dns, ports: { '*': hanging.port } }).get('http://a.test/', { signal: gone.signal }),
    ).rejects.toThrow('left')
    await closed
  })
})

describe('what servers do', () => {
  const dns = { 'a.test': [PUBLIC] }
  const raw = async (head: string, body = '', end = true): Promise<Downloaded> => {
    const at = await openRawSite((socket) => {
      socket.write(head.replace(/\n/g, '\r\n'))
      if (end) socket.end(body)
      else socket.write(body)
    })
    closing.push(at)
    return world({ dns, ports: { '*': at.port } }).get('http://a.test/', { deadline: Date.now() + 1_000 })
  }

  test.each([
    ['HTTP/1.0 without a length', 'HTTP/1.0 200 OK\n\n', 'whole', 'whole'],
    ['chunks', 'HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n', '5\r\nwhole\r\n0\r\n\r\n', 'whole'],
    ['a longer body than announced', 'HTTP/1.1 200 OK\nContent-Length: 5\n\n', 'whole and more', 'whole'],
    [
      'an early hint',
      'HTTP/1.1 103 Early Hints\nLink: </a>\n\nHTTP/1.1 200 OK\nContent-Length: 5\n\n',
      'whole',
      'whole',
    ],
    ['a status without a reason', 'HTTP/1.1 200\nContent-Length: 5\n\n', 'whole', 'whole'],
    ['204', 'HTTP/1.1 204 No Content\n\n', '', ''],
    ['an empty gzip body', 'HTTP/1.1 200 OK\nContent-Encoding: gzip\nContent-Length: 0\n\n', '', ''],
  ])('reads %s', async (_what, head, body, whole) => expect(text(await raw(head, body))).toBe(whole))

  test.each([
    ['a shorter body than announced', 'HTTP/1.1 200 OK\nContent-Length: 50\n\n', 'half'],
    ['chunks that break off', 'HTTP/1.1 200 OK\nTransfer-Encoding: chunked\n\n', '5\r\nhalf'],
    ['two different lengths', 'HTTP/1.1 200 OK\nContent-Length: 4\nContent-Length: 5\n\n', 'half'],
    [
      'a length and chunks',
      'HTTP/1.1 200 OK\nContent-Length: 4\nTransfer-Encoding: chunked\n\n',
      '4\r\nhalf\r\n0\r\n\r\n',
    ],
    ['what is not HTTP', 'SSH-2.0-OpenSSH_9.6\n', ''],
    ['no answer at all', '', ''],
    [
      'an upgrade nobody asked for',
      'HTTP/1.1 101 Switching Protocols\nConnection: upgrade\nUpgrade: websocket\n\n',
      '',
    ],
    ['a head of 100 KB', `HTTP/1.1 200 OK\nX-A: ${'a'.repeat(100_000)}\n\n`, 'x'],
    ['many small headers', `HTTP/1.1 200 OK\n${'X-A: b\n'.repeat(20_000)}\n`, 'x'],
    ['gzip that is none', 'HTTP/1.1 200 OK\nContent-Encoding: gzip\n\n', 'not gzip'],
    ['five codings', 'HTTP/1.1 200 OK\nContent-Encoding: gzip, gzip, gzip, gzip, gzip\n\n', 'x'],
  ])('refuses %s', async (_what, head, body) => expect(failure(await raw(head, body))).toBe('network'))

  test('F-23 decodes, counts what is decoded, and stops at the limit', async () => {
    const bomb = gzipSync(Buffer.alloc(50_000_000, 'x'))
    const at = await site((_request, response) => response.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb))
    const { get } = world({ dns, ports: { '*': at.port } })
    const answer = await get('http://a.test/', { maxBytes: 5_242_880 })
    expect(answer).toMatchObject({ body: { truncated: true, bytes: { length: 5_242_880 } } })
  })

  test('does not read what is not wanted', async () => {
    let written = 0
    const at = await site((_request, response) => {
      response.writeHead(200, { 'content-type': 'video/mp4', 'content-length': 10_000_000 })
      const more = () => {
        while (written < 10_000_000 && response.write(Buffer.alloc(10_000))) written += 10_000
      }
      response.on('drain', more).on('error', () => {})
      more()
    })
    const { get } = world({ dns, ports: { '*': at.port } })
    const answer = await get('http://a.test/', { wants: (head) => head.header('content-type') !== 'video/mp4' })
    expect(answer).toMatchObject({ outcome: 'answered', body: undefined, head: { status: 200 } })
    expect(written).toBeLessThan(10_000_000)
  })

  test('refused and reset connections are network failures', async () => {
    const reset = await openRawSite((socket) => socket.resetAndDestroy())
    closing.push(reset)
    expect(await world({ dns, ports: { '*': reset.port } }).get('http://a.test/')).toMatchObject({ failure: 'network' })
    const shut = await openRawSite(() => {})
    await shut.close()
    expect(await world({ dns, ports: { '*': shut.port } }).get('http://a.test/')).toMatchObject({
      failure: 'network',
      stage: 'connect',
    })
  })
})

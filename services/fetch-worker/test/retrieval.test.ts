import { randomBytes } from 'node:crypto'
import type { RequestListener } from 'node:http'
import { gzipSync } from 'node:zlib'
import { openSite, selfSigned } from '@tollgate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { notices } from '../src/extract/notices.ts'
import { openWorld, PUBLIC, serving, sharedWorld, textOf } from './world.ts'

const MiB = 1024 * 1024
const page: RequestListener = (_request, response) => response.setHeader('content-type', 'text/plain').end('a page')
const redirecting =
  (to: Record<string, string>): RequestListener =>
  (request, response) => {
    const location = to[request.url ?? '']
    if (location === undefined) page(request, response)
    else response.writeHead(302, { location }).end()
  }
/** `/`, `/1`, ... each leading to the next, as often as told. */
const chain = (length: number) =>
  Object.fromEntries(Array.from({ length }, (_, at) => [at === 0 ? '/' : `/${at}`, `/${at + 1}`]))

const addresses = ['127.0.0.1', '10.0.0.1', '169.254.169.254', '100.64.0.1', '::1', '::ffff:169.254.169.254', 'fd00::1']
const shared = sharedWorld({
  settings: { slots: 32 },
  dns: {
    ...Object.fromEntries(addresses.map((address, at) => [`n${at}.test`, [address]])),
    'wiki.test': ['10.1.2.3'],
    'meta.test': ['169.254.169.254'],
    'mixed.test': [PUBLIC, '10.0.0.5'],
    'mixed6.test': [PUBLIC, '::ffff:10.0.0.5'],
    'gone.test': ['1.1.1.9'],
  },
})

describe('what is asked for', () => {
  test.each([
    'ftp://site.test/',
    'file:///etc/passwd',
    'data:text/html,<p>hi',
    'javascript:alert(1)',
    'gopher://site.test/',
    'ws://site.test/',
    'blob:http://site.test/1',
    'site.test/page',
    '//site.test/page',
    'http:/site.test',
    'http://',
    'http://user:pass@site.test/',
    'http://site.test/\nx',
    'http://site.test\\@two.test/',
    `http://site.test/${'x'.repeat(8192)}`,
    '',
  ])('F-16 refuses %j without asking anybody', async (url) => {
    const world = shared().answering(page)
    expect(textOf(await world.fetch(url))).toBe('url_disallowed')
    expect(world.site.connections).toBe(0)
    expect(world.dns.lookups).toEqual([])
  })

  test.each(['http://site.test/', 'HTTP://SITE.TEST', ' http://site.test/ ', 'http://site.test:8080/a?b#c'])(
    'F-16 fetches %j',
    async (url) => expect(textOf(await shared().answering(page).fetch(url))).toBe('a page'),
  )

  test('F-29 WM-27 sends its own name, the encodings it reads and nothing of a past', async () => {
    const world = shared().answering(page)
    await world.fetch('http://site.test:8080/headers?q=1#part')
    const seen = world.site.requests.at(-1)
    expect(seen).toMatchObject({ method: 'GET', target: '/headers?q=1' })
    expect(Object.keys(seen?.headers ?? {}).sort()).toEqual([
      'accept',
      'accept-encoding',
      'connection',
      'host',
      'user-agent',
    ])
    expect(seen?.headers).toMatchObject({
      host: 'site.test:8080',
      'user-agent': 'otari-web-retrieval/1.0',
      'accept-encoding': 'gzip, deflate',
    })
  })

  test('F-29 WM-23 takes no cookie from one hop to the next, nor from one call to the next', async () => {
    const setting: RequestListener = (request, response) => {
      response.setHeader('set-cookie', 'id=1; Path=/')
      if (request.url === '/') response.writeHead(302, { location: '/next' }).end()
      else page(request, response)
    }
    const { fetch, site } = shared().answering(setting)
    expect(textOf(await fetch('http://site.test/'))).toBe('a page')
    expect(textOf(await fetch('http://site.test/again'))).toBe('a page')
    expect(site.requests.filter(({ headers }) => 'cookie' in headers || 'referer' in headers)).toEqual([])
  })
})

describe('where it may lead', () => {
  const spellings = [
    '127.0.0.1',
    '0177.0.0.1',
    '0x7f.1',
    '2130706433',
    '127.1',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    '[64:ff9b::7f00:1]',
    '[2002:7f00:1::]',
    'localhost',
    'x.localhost',
    '0.0.0.0',
    '10.0.0.1',
    '[::ffff:10.0.0.1]',
    '169.254.169.254',
    '100.64.0.1',
    '192.0.2.1',
    '198.18.0.1',
    '224.0.0.1',
    '240.0.0.1',
    '[fe80::1]',
    '[fd00::1]',
    '[ff02::1]',
    '[2001:db8::1]',
  ]

  test('F-18 refuses every spelling of what is not public, and a recorder there is not connected to', async () => {
    const recorder = await openSite(page)
    onTestFinished(() => recorder.close())
    const world = shared().answering(page)
    const hosts = [...spellings, ...addresses.map((_, at) => `n${at}.test`)]
    const answers = await Promise.all(
      hosts.map(async (host) => [host, textOf(await world.fetch(`http://${host}:${recorder.port}/`))]),
    )
    expect(answers).toEqual(hosts.map((host) => [host, 'url_disallowed']))
    expect(world.dialer.dialed).toEqual([])
    expect(recorder.connections).toBe(0)
  })

  test('F-18 F-22 refuses the same behind a redirect', async () => {
    const recorder = await openSite(page)
    onTestFinished(() => recorder.close())
    const targets = Object.fromEntries(spellings.map((host, at) => [`/${at}`, `http://${host}:${recorder.port}/`]))
    const world = shared().answering(redirecting(targets))
    const answers = await Promise.all(
      spellings.map(async (_, at) => textOf(await world.fetch(`http://site.test/${at}`))),
    )
    expect(answers).toEqual(spellings.map(() => 'redirect_disallowed'))
    expect(recorder.connections).toBe(0)
  })

  test('S-77 reaches private hosts only when the operator said so, and metadata never', async () => {
    const world = shared().answering(page)
    world.ports['10.1.2.3'] = world.site.port
    expect(textOf(await world.fetch('http://wiki.test/'))).toBe('url_disallowed')
    expect(textOf(await world.fetch('http://wiki.test/', { allowPrivateHosts: true }))).toBe('a page')
    expect(textOf(await world.fetch('http://meta.test/', { allowPrivateHosts: true }))).toBe('url_disallowed')
  })

  test('F-20 refuses a name with one private address among its public ones', async () => {
    const world = shared().answering(page)
    expect(textOf(await world.fetch('http://mixed.test/'))).toBe('url_disallowed')
    expect(textOf(await world.fetch('http://mixed6.test/'))).toBe('url_disallowed')
    expect(world.site.connections).toBe(0)
  })

  test('F-20 looks a name up once and connects to that answer, whatever the next one would be', async () => {
    const tls = selfSigned('rebind.test')
    const world = await openWorld(page, { tls, dns: { 'rebind.test': [[PUBLIC], ['127.0.0.1']] } })
    expect(textOf(await world.fetch('https://rebind.test/'))).toBe('a page')
    expect(world.dns.lookups).toEqual(['rebind.test'])
    expect(world.dialer.dialed).toEqual([{ address: PUBLIC, port: 443 }])
    expect(world.site.requests[0]).toMatchObject({ serverName: 'rebind.test', headers: { host: 'rebind.test' } })
  })

  test('F-31 keeps a workspace to its domains, behind redirects as well', async () => {
    const world = shared().answering(redirecting({ '/away': 'http://two.test/' }))
    const policy = { allowedDomains: ['site.test'], blockedDomains: ['ads.site.test'] }
    expect(textOf(await world.fetch('http://site.test/', { policy }))).toBe('a page')
    expect(textOf(await world.fetch('http://two.test/', { policy }))).toBe('domain_disallowed')
    expect(textOf(await world.fetch('http://site.test/away', { policy }))).toBe('domain_disallowed')
    expect(textOf(await world.fetch('http://site.test/', { policy: { allowedDomains: [] } }))).toBe('domain_disallowed')
  })
})

describe('redirects', () => {
  test('F-22 FP-07 follows five and not six, and tells where it ended, at no cost', async () => {
    const five = shared().answering(redirecting(chain(5)))
    const read = await five.fetch('http://site.test/')
    expect(read).toMatchObject({
      status: 'ok',
      requestedUrl: 'http://site.test/',
      finalUrl: 'http://site.test/5',
      label: 'builtin:builtin_fetch',
    })
    expect(read).not.toHaveProperty('reportedCost')
    expect(five.dialer.dialed).toHaveLength(6)
    const six = shared().answering(redirecting(chain(6)))
    expect(textOf(await six.fetch('http://site.test/'))).toBe('redirect_disallowed')
  })

  test.each([301, 302, 303, 307, 308])('F-22 follows a %d', async (status) => {
    const world = shared().answering((request, response) => {
      if (request.url === '/') response.writeHead(status, { location: '/next' }).end()
      else page(request, response)
    })
    expect(textOf(await world.fetch('http://site.test/'))).toBe('a page')
  })

  test('F-22 refuses a loop', async () => {
    const world = shared().answering(redirecting({ '/': '/a', '/a': '/' }))
    expect(textOf(await world.fetch('http://site.test/'))).toBe('redirect_disallowed')
  })

  test('F-22 refuses an https to http redirect', async () => {
    const world = await openWorld(redirecting({ '/': 'http://two.test/' }), { tls: selfSigned('site.test') })
    expect(textOf(await world.fetch('https://site.test/'))).toBe('redirect_disallowed')
    expect(world.dialer.dialed).toHaveLength(1)
  })
})

describe('bounds', () => {
  test('F-21 one deadline covers all redirects together', async () => {
    const slowly: RequestListener = (request, response) => {
      const timer = setTimeout(() => redirecting(chain(4))(request, response), 1_500)
      request.on('close', () => clearTimeout(timer))
    }
    const world = shared().answering(slowly)
    const started = performance.now()
    expect(textOf(await world.fetch('http://site.test/'))).toBe('timeout')
    const took = performance.now() - started
    expect(took).toBeGreaterThan(4_500)
    expect(took).toBeLessThan(7_500)
  })

  test('F-21 the same deadline covers a look-up without an answer and a body without an end', async () => {
    const world = shared().answering((_request, response) => {
      response.setHeader('content-type', 'text/plain').write('the beginning')
    })
    expect(textOf(await world.fetch('http://site.test/', { timeoutMs: 300 }))).toBe('timeout')
    const { resolve } = world.dns
    onTestFinished(() => {
      world.dns.resolve = resolve
    })
    world.dns.resolve = (_host, signal) =>
      new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
    expect(textOf(await world.fetch('http://site.test/', { timeoutMs: 300 }))).toBe('timeout')
  })

  test('F-23 cuts text at 5 MiB, says so and hands over whole characters', async () => {
    const whole = 'é'.repeat((5 * MiB) / 2)
    const world = shared().answering(serving({ '/fits': ['text/plain', whole], '/over': ['text/plain', `a${whole}`] }))
    const fits = await world.fetch('http://site.test/fits', { maxTextBytes: MiB })
    expect(fits).toMatchObject({ status: 'ok', bytes: 5 * MiB })
    expect(fits).not.toMatchObject({ notices: expect.arrayContaining([notices.source]) })
    const over = await world.fetch('http://site.test/over', { maxTextBytes: MiB })
    expect(over).toMatchObject({ status: 'ok', bytes: 5 * MiB, notices: expect.arrayContaining([notices.source]) })
    expect(textOf(over)).not.toContain('\ufffd')
  })

  test('F-23 does not extract a PDF that was cut', async () => {
    const pdf = Buffer.concat([Buffer.from('%PDF-1.7\n'), randomBytes(5 * MiB)])
    const world = shared().answering(serving({ '/': ['application/pdf', pdf] }))
    expect(textOf(await world.fetch('http://site.test/'))).toBe('too_large')
  })

  test('F-23 reads 5 MiB of a gzip bomb of 200 MiB, in bounded memory', async () => {
    const bomb = gzipBomb(200)
    const world = shared().answering((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/html', 'content-encoding': 'gzip' }).end(bomb)
    })
    let most = 0
    const before = process.memoryUsage.rss()
    const watch = setInterval(() => {
      most = Math.max(most, process.memoryUsage.rss())
    }, 5)
    const result = await world.fetch('http://site.test/')
    clearInterval(watch)
    expect(result).toMatchObject({ status: 'ok', bytes: 5 * MiB, notices: expect.arrayContaining([notices.source]) })
    expect(most - before).toBeLessThan(100 * MiB)
  })

  test('F-24 hands over as much as was asked for in whole characters, 50 KiB by default, and says what it kept (BR-091)', async () => {
    const text = '😀 text. '.repeat(10_000)
    const world = shared().answering(serving({ '/': ['text/plain; charset=utf-8', text] }))
    const all = await world.fetch('http://site.test/', { maxTextBytes: 256 * 1024 })
    expect(all).toMatchObject({ text, notices: [] })
    for (const maxTextBytes of [undefined, 51_200, 10_001, 10_002, 10_003, 4, 1]) {
      const cut = await world.fetch('http://site.test/', maxTextBytes === undefined ? {} : { maxTextBytes })
      const shown = textOf(cut)
      expect(Buffer.byteLength(shown)).toBeLessThanOrEqual(maxTextBytes ?? 51_200)
      expect(Buffer.byteLength(shown)).toBeGreaterThan((maxTextBytes ?? 51_200) - 4)
      expect(shown.isWellFormed()).toBe(true)
      expect(text.startsWith(shown)).toBe(true)
      const notice = `[Page text cut: the first ${shown.length} of ${text.length} characters are shown.]`
      expect(cut).toMatchObject({ notices: [notice] })
    }
  })

  test('F-35 says when the extracted text was cut', async () => {
    const world = shared().answering(
      serving({
        '/': ['text/plain', 'word '.repeat(MiB / 5)],
        '/page': ['text/html', `<p>${'word '.repeat(MiB / 5)}</p>`],
        '/fits': ['text/plain', 'x'.repeat(256 * 1024)],
        '/over': ['text/plain', 'x'.repeat(256 * 1024 + 1)],
      }),
    )
    const maxTextBytes = MiB
    for (const path of ['/', '/page', '/over']) {
      const result = await world.fetch(`http://site.test${path}`, { maxTextBytes })
      expect(result, path).toMatchObject({ notices: [notices.parser] })
      expect(Buffer.byteLength(textOf(result)), path).toBeLessThanOrEqual(256 * 1024)
      expect(Buffer.byteLength(textOf(result)), path).toBeGreaterThan(250 * 1024)
    }
    expect(await world.fetch('http://site.test/fits', { maxTextBytes })).toMatchObject({ notices: [] })
  })
})

/** So many MiB of spaces, in a few hundred KiB. Members of gzip may follow each other. */
const gzipBomb = (sizeMiB: number): Buffer =>
  Buffer.concat(Array.from({ length: sizeMiB }, () => gzipSync(Buffer.alloc(MiB, ' '))))

describe('proxies', () => {
  const variables = [
    'HTTP_PROXY',
    'HTTPS_PROXY',
    'ALL_PROXY',
    'http_proxy',
    'https_proxy',
    'all_proxy',
    'NODE_USE_ENV_PROXY',
  ]

  test("F-27 VB-7 the environment's are not looked at", async () => {
    const proxy = await openSite(page, { isProxy: true })
    onTestFinished(() => proxy.close())
    const before = Object.fromEntries(variables.map((name) => [name, process.env[name]]))
    for (const name of variables) process.env[name] = name.startsWith('NODE') ? '1' : `http://127.0.0.1:${proxy.port}`
    onTestFinished(() => {
      for (const [name, value] of Object.entries(before)) {
        if (value === undefined) delete process.env[name]
        else process.env[name] = value
      }
    })
    const world = shared().answering(page)
    expect(textOf(await world.fetch('http://site.test/'))).toBe('a page')
    expect(proxy.connections).toBe(0)
  })

  test('F-28 a trusted one sees the request, after every check was made here', async () => {
    const proxy = await openSite(
      (_request, response) => response.setHeader('content-type', 'text/plain').end('proxied'),
      {
        isProxy: true,
      },
    )
    onTestFinished(() => proxy.close())
    const proxies = { allProxy: `http://127.0.0.1:${proxy.port}`, noProxy: 'two.test' }
    const world = await openWorld(page, { settings: { proxies }, dns: { 'mixed.test': [PUBLIC, '10.0.0.5'] } })
    expect(textOf(await world.fetch('http://site.test/x'))).toBe('proxied')
    expect(proxy.requests.map(({ target }) => target)).toEqual(['http://site.test/x'])
    expect(textOf(await world.fetch('http://mixed.test/'))).toBe('url_disallowed')
    expect(textOf(await world.fetch('http://unknown.test/'))).toBe('network')
    const policy = { blockedDomains: ['site.test'] }
    expect(textOf(await world.fetch('http://site.test/x', { policy }))).toBe('domain_disallowed')
    expect(proxy.requests).toHaveLength(1)
    expect(textOf(await world.fetch('http://two.test/'))).toBe('a page')
    expect(world.dialer.dialed).toEqual([{ address: '1.1.1.1', port: 80 }])
  })

  test('F-28 one that fails is an error, and the site is not asked directly', async () => {
    const gone = await openSite(page)
    await gone.close()
    const world = await openWorld(page, { settings: { proxies: { httpProxy: `http://127.0.0.1:${gone.port}` } } })
    expect(textOf(await world.fetch('http://site.test/'))).toBe('network')
    expect(world.site.connections).toBe(0)
  })

  test.each(['socks5://127.0.0.1:1080', 'ftp://proxy/', 'no url'])(
    'F-28 does not start with the proxy %j',
    (allProxy) =>
      expect(openWorld(page, { settings: { proxies: { allProxy } } })).rejects.toThrow(
        'ALL_PROXY is not an http or https proxy URL',
      ),
  )
})

describe('F-31 what went wrong is a value', () => {
  test.each([301, 400, 401, 403, 404, 410, 429, 500, 502, 522, 599])('an answer of %d', async (status) => {
    const world = shared().answering(serving({ '/': ['text/html', '<title>Nothing</title><p>secret words', status] }))
    const result = await world.fetch('http://site.test/')
    expect(result).toEqual({
      status: 'failed',
      failure: 'http_status',
      httpStatus: status,
      label: 'builtin:builtin_fetch',
    })
  })

  test('a name that nobody knows, a server that is not there, and one that breaks off', async () => {
    const world = shared().answering((request, response) => {
      response.writeHead(200, { 'content-type': 'text/plain', 'content-length': '100' }).write('half')
      request.socket.destroySoon()
    })
    const gone = await openSite(page)
    await gone.close()
    world.ports['1.1.1.9'] = gone.port
    for (const [url, stage] of [
      ['http://unknown.test/', 'resolve'],
      ['http://site.test/', 'body'],
      ['http://1.1.1.9/', 'connect'],
    ] as const) {
      const failure = { status: 'failed', failure: 'network', stage, label: 'builtin:builtin_fetch' }
      expect(await world.fetch(url), url).toEqual(failure)
    }
  })

  test('a body that is not in the encoding it is said to be in', async () => {
    const world = shared().answering((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/plain', 'content-encoding': 'gzip' }).end('plain')
    })
    const failure = { failure: 'network', stage: 'encoding' }
    expect(await world.fetch('http://site.test/')).toMatchObject(failure)
    for (const coding of ['compress', 'gzip, gzip, gzip']) {
      world.answering((_request, response) => {
        response.writeHead(200, { 'content-type': 'text/plain', 'content-encoding': coding }).end('plain')
      })
      expect(await world.fetch('http://site.test/'), coding).toMatchObject(failure)
    }
  })
})

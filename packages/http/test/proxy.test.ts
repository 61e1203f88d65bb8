import { connect } from 'node:net'
import { dnsStub, type FakeSite, loopbackDialer, openRawSite, openSite, selfSigned } from '@tollgate/testing'
import { afterAll, describe, expect, test } from 'vitest'
import { type ChooseProxy, type Downloaded, openDownloader, openGuard, openProxies } from '../src/index.ts'

const closing: { close(): Promise<void> }[] = []
afterAll(() => Promise.all(closing.map((each) => each.close())))

const certificate = selfSigned('a.test')
const PUBLIC = '93.184.216.34'
const names = { 'a.test': [PUBLIC], 'b.test': [PUBLIC], 'int.test': ['10.0.0.5'] }

async function world(site: FakeSite | undefined, proxies?: ChooseProxy) {
  const dialer = loopbackDialer(site ? { '*': site.port } : {})
  const run = openDownloader({ userAgent: 'x', dialer, ca: [certificate.cert], ...(proxies ? { proxies } : {}) })
  const get = (url: string): Promise<Downloaded> =>
    run({
      url,
      judge: openGuard(dnsStub(names).resolve),
      policy: { allowedDomains: null, blockedDomains: ['b.test'] },
      accept: '*/*',
      maxBytes: 1_000,
      maxRedirects: 2,
      allowDowngrade: false,
      deadline: Date.now() + 3_000,
      signal: new AbortController().signal,
    })
  return { get, dialer }
}

async function opened<T extends { close(): Promise<void> }>(server: Promise<T>): Promise<T> {
  closing.push(await server)
  return server
}
const text = (answer: Downloaded) =>
  answer.outcome === 'answered' ? Buffer.from(answer.body?.bytes ?? []).toString() : answer.failure

/** A proxy that opens any tunnel it is asked for to `port`, and keeps what it was asked. */
async function tunnel(port: number, status = '200 OK') {
  const heads: string[] = []
  const at = await opened(
    openRawSite((socket, head) => {
      heads.push(head.toString())
      socket.write(`HTTP/1.1 ${status}\r\n${status.startsWith('200') ? '' : 'Content-Length: 0\r\n'}\r\n`)
      if (!status.startsWith('200')) return
      const upstream = connect(port, '127.0.0.1')
      upstream.on('error', () => socket.destroy())
      socket.pipe(upstream).pipe(socket)
    }),
  )
  return { ...at, heads }
}

describe('F-28 trusted proxies', () => {
  test('forward plain HTTP, asked with the whole URL and their own credentials', async () => {
    const proxy = await opened(openSite((_request, response) => response.end('through the proxy'), { isProxy: true }))
    const { get, dialer } = await world(
      undefined,
      openProxies({ httpProxy: `http://us%40er:pw@127.0.0.1:${proxy.port}` }),
    )
    expect(text(await get('http://a.test:81/x?y#z'))).toBe('through the proxy')
    const [seen] = proxy.requests
    expect(seen?.target).toBe('http://a.test:81/x?y')
    expect(seen?.headers).toMatchObject({ host: 'a.test:81', 'proxy-authorization': `Basic ${btoa('us@er:pw')}` })
    expect(dialer.dialed).toEqual([])
  })

  test('carry TLS through a tunnel, end to end with the site', async () => {
    const site = await opened(openSite((_request, response) => response.end('secret page'), { tls: certificate }))
    const proxy = await tunnel(site.port)
    const { get, dialer } = await world(undefined, openProxies({ allProxy: `http://127.0.0.1:${proxy.port}/` }))
    expect(text(await get('https://a.test/'))).toBe('secret page')
    expect(proxy.heads[0]).toMatch(/^CONNECT a\.test:443 HTTP\/1\.1\r\n/)
    expect(site.requests[0]).toMatchObject({ serverName: 'a.test', target: '/' })
    expect(dialer.dialed).toEqual([])
  })

  test('change nothing about what is refused: addresses, domains and redirects are judged here', async () => {
    const proxy = await opened(
      openSite((_request, response) => response.writeHead(302, { location: 'http://int.test/' }).end(), {
        isProxy: true,
      }),
    )
    const { get } = await world(undefined, openProxies({ allProxy: `http://127.0.0.1:${proxy.port}` }))
    expect(text(await get('http://10.0.0.5/'))).toBe('url_disallowed')
    expect(text(await get('http://int.test/'))).toBe('url_disallowed')
    expect(text(await get('http://nowhere.test/'))).toBe('network')
    expect(text(await get('http://b.test/'))).toBe('domain_disallowed')
    expect(proxy.requests).toEqual([])
    expect(text(await get('http://a.test/'))).toBe('redirect_disallowed')
    expect(proxy.requests).toHaveLength(1)
  })

  test('that fail are an error, and the site is not asked directly', async () => {
    const site = await opened(openSite((_request, response) => response.end('direct')))
    const gone = await openRawSite(() => {})
    await gone.close()
    const refusing = await tunnel(0, '502 Bad Gateway')
    const wanting = await opened(openSite((_request, response) => response.writeHead(407).end(), { isProxy: true }))
    for (const { port } of [gone, refusing, wanting]) {
      const { get, dialer } = await world(site, openProxies({ allProxy: `http://127.0.0.1:${port}` }))
      for (const url of ['http://a.test/', 'https://a.test/']) {
        const answer = await get(url)
        if (port === refusing.port && url.startsWith('http:')) expect(answer).toMatchObject({ head: { status: 502 } })
        else expect(answer, url).toMatchObject({ failure: 'network', stage: 'proxy' })
      }
      expect(dialer.dialed).toEqual([])
    }
    expect(site.connections).toBe(0)
  })

  test('are not used where NO_PROXY says so; the request is pinned as ever', async () => {
    const site = await opened(openSite((_request, response) => response.end('direct')))
    const proxy = await opened(openSite((_request, response) => response.end('proxied'), { isProxy: true }))
    const { get, dialer } = await world(
      site,
      openProxies({ httpProxy: `http://127.0.0.1:${proxy.port}`, noProxy: 'a.test' }),
    )
    expect(text(await get('http://a.test/'))).toBe('direct')
    expect(dialer.dialed).toEqual([{ address: PUBLIC, port: 80 }])
    expect(proxy.connections).toBe(0)
  })

  test.each(['socks5://p:1', 'ftp://p', 'p:3128', 'http://', 'not a url'])('%s stops the start', (url) => {
    for (const name of ['httpProxy', 'httpsProxy', 'allProxy'])
      expect(() => openProxies({ [name]: url })).toThrow(/_PROXY is not an http/)
  })
})

describe('F-28 which proxy', () => {
  const chosen = (variables: Parameters<typeof openProxies>[0], url: string) =>
    openProxies(variables)(new URL(url))?.url.hostname

  test('each scheme has its own, and ALL_PROXY stands in', () => {
    const all = { httpProxy: 'http://h', httpsProxy: 'https://s', allProxy: 'http://a' }
    expect(chosen(all, 'http://x.test')).toBe('h')
    expect(chosen(all, 'https://x.test')).toBe('s')
    expect(chosen({ allProxy: 'http://a' }, 'https://x.test')).toBe('a')
    expect(chosen({ httpProxy: 'http://h' }, 'https://x.test')).toBeUndefined()
    expect(chosen({ httpProxy: '', allProxy: ' ' }, 'http://x.test')).toBeUndefined()
  })

  test.each([
    ['x.test', 'http://x.test', true],
    ['x.test', 'http://a.x.test', true],
    ['.x.test', 'http://x.test.', true],
    ['*.x.test', 'http://a.x.test', true],
    ['x.test', 'http://ax.test', false],
    ['X.TEST', 'http://x.test', true],
    ['a.test, x.test', 'http://x.test', true],
    ['a.test x.test', 'http://x.test', true],
    ['x.test:8080', 'http://x.test:8080', true],
    ['x.test:8080', 'http://x.test', false],
    ['x.test:443', 'https://x.test', true],
    ['*', 'http://x.test', true],
    ['8.8.8.8', 'http://8.8.8.8', true],
    ['8.8.8.8', 'http://1.8.8.8.8.test', false],
    ['8.8.0.0/16', 'http://8.8.4.4', true],
    ['8.8.0.0/16', 'http://8.9.4.4', false],
    ['2001:4860::/32', 'http://[2001:4860::8888]', true],
    ['2001:4860:4860::8888', 'http://[2001:4860:4860::8888]', true],
    ['', 'http://x.test', false],
    ['not/a/block', 'http://x.test', false],
  ])('NO_PROXY=%s and %s: exempt is %s', (noProxy, url, exempt) => {
    expect(chosen({ allProxy: 'http://p', noProxy }, url) === undefined).toBe(exempt)
  })
})

test('F-27 the environment’s proxies are nothing to a client that was given none', async () => {
  const proxy = await opened(openSite((_request, response) => response.end('proxied'), { isProxy: true }))
  const site = await opened(openSite((_request, response) => response.end('direct')))
  const before = { ...process.env }
  for (const name of ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'ALL_PROXY'])
    process.env[name] = `http://127.0.0.1:${proxy.port}`
  try {
    const { get } = await world(site)
    expect(text(await get('http://a.test/'))).toBe('direct')
    expect(proxy.connections).toBe(0)
  } finally {
    process.env = before
  }
})

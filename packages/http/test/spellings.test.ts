import { dnsStub, type FakeSite, loopbackDialer, openSite } from '@tollgate/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ChooseProxy, type Downloaded, noProxies, openDownloader, openGuard, openProxies } from '../src/index.ts'
import { hopVectors } from './hop-vectors.ts'
import { spellingsOf } from './spellings.ts'

const PUBLIC = '93.184.216.34'
let recorder: FakeSite
let redirecting: FakeSite
let proxy: FakeSite
let targets: string[] = []
beforeAll(async () => {
  recorder = await openSite((_request, response) => response.end('inside'))
  const lead: Parameters<typeof openSite>[0] = (request, response) => {
    const at = /\/(\d+)$/.exec(request.url ?? '')?.[1]
    response.writeHead(302, { location: Buffer.from(targets[Number(at)] ?? '').toString('latin1') }).end()
  }
  redirecting = await openSite(lead)
  proxy = await openSite(lead, { isProxy: true })
})
afterAll(() => Promise.all([recorder, redirecting, proxy].map((site) => site.close())))

/** Every name that is asked for leads inside, but `a.test`: a spelling that is taken for a name is no way round. */
function world(proxies: ChooseProxy = noProxies) {
  const dialer = loopbackDialer({ [PUBLIC]: redirecting.port })
  const resolve = async (host: string) => [host === 'a.test' ? PUBLIC : '127.0.0.1']
  const run = openDownloader({ userAgent: 'x', dialer, proxies })
  const get = (url: string): Promise<Downloaded> =>
    run({
      url,
      judge: openGuard(resolve),
      policy: { allowedDomains: null, blockedDomains: [] },
      accept: '*/*',
      maxBytes: 1_000,
      maxRedirects: 5,
      allowDowngrade: true,
      deadline: Date.now() + 20_000,
      signal: new AbortController().signal,
    })
  return { get, dialer }
}
const failure = (answer: Downloaded): string => (answer.outcome === 'failed' ? answer.failure : answer.outcome)

const addresses = [
  '127.0.0.1',
  '10.0.0.5',
  '192.168.1.1',
  '172.16.0.1',
  '169.254.169.254',
  '100.100.100.200',
  '0.0.0.0',
]
const inside = () => [
  ...addresses.flatMap(spellingsOf).map((host) => `http://${host}:${recorder.port}/`),
  ...addresses.flatMap(spellingsOf).map((host) => `https://${host}/`),
  ...['localhost', 'LOCALHOST.', 'a.localhost', 'ⓛⓞⓒⓐⓛⓗⓞⓢⓣ', 'lo\u00adcalhost', 'intern.test', '127.0.0.1.nip.io'].map(
    (host) => `http://${host}:${recorder.port}/`,
  ),
  ...['gopher', 'dict', 'ftp', 'file', 'ws', 'HTTPx'].map((scheme) => `${scheme}://127.0.0.1:${recorder.port}/`),
]

/** A header holds no line break. */
const inHeaders = () => inside().filter((url) => !url.includes('\n'))

describe('F-18 WM-82 an inner address, however it is written', () => {
  test('F-18 WM-83 BR-108 BR-114 is refused, without a connection', async () => {
    const { get, dialer } = world()
    for (const url of inside()) expect(failure(await get(url)), JSON.stringify(url)).toBe('url_disallowed')
    expect(dialer.dialed).toEqual([])
    expect(recorder.connections).toBe(0)
  })

  test('BR-111 F-22 is refused behind a redirect', async () => {
    targets = inHeaders()
    const { get, dialer } = world()
    for (const [at, url] of targets.entries()) {
      expect(failure(await get(`http://a.test/${at}`)), JSON.stringify(url)).toBe('redirect_disallowed')
    }
    expect(new Set(dialer.dialed.map(({ address }) => address))).toEqual(new Set([PUBLIC]))
    expect(recorder.connections).toBe(0)
  })

  test('F-28 is refused before a proxy hears of it, and behind its redirects', async () => {
    const { get, dialer } = world(openProxies({ allProxy: `http://127.0.0.1:${proxy.port}` }))
    for (const url of inside()) expect(failure(await get(url)), JSON.stringify(url)).toBe('url_disallowed')
    expect(proxy.connections).toBe(0)
    targets = inHeaders()
    for (const [at, url] of targets.entries()) {
      expect(failure(await get(`http://a.test/${at}`)), JSON.stringify(url)).toBe('redirect_disallowed')
    }
    expect(proxy.connections).toBe(targets.length)
    expect(dialer.dialed).toEqual([])
    expect(recorder.connections).toBe(0)
  })
})

describe('F-28 every vector that is refused is refused with a proxy', () => {
  const refused = hopVectors.filter(([, , verdict]) => verdict !== 'accept')
  test.each(refused)('WM-20 %s %s', async (_id, url, _verdict, why, given) => {
    const before = proxy.connections
    const proxies = openProxies({ allProxy: `http://127.0.0.1:${proxy.port}` })
    const run = openDownloader({ userAgent: 'x', dialer: loopbackDialer({}), proxies })
    const judge = openGuard(dnsStub(given?.dns ?? {}).resolve, { allowedHosts: given?.allow ?? [] })
    const rules = { maxBytes: 1_000, maxRedirects: 5, allowDowngrade: false, deadline: Date.now() + 5_000 }
    const policy = { allowedDomains: null, blockedDomains: [] }
    const answer = await run({ url, judge, policy, accept: '*/*', ...rules, signal: new AbortController().signal })
    expect(answer.outcome, why).toBe('failed')
    expect(proxy.connections).toBe(before)
  })
})

test('F-20 WM-81 an answer of addresses in any mix with one that is inside is refused whole', async () => {
  const hidden = [
    '127.0.0.1',
    '::1',
    '::ffff:10.0.0.1',
    'fe80::1%eth0',
    'fd00::1',
    '64:ff9b::7f00:1',
    '2002:a00:1::',
    '',
    'x',
  ]
  const shown = [PUBLIC, '2606:2800:220:1:248:1893:25c8:1946', '1.1.1.1']
  for (const one of hidden) {
    for (let at = 0; at <= shown.length; at++) {
      const answer = [...shown.slice(0, at), one, ...shown.slice(at)]
      const judge = openGuard(async () => answer)
      expect(await judge('http://a.test/', new AbortController().signal), answer.join()).toMatchObject({ ok: false })
    }
  }
})

test('BR-116 what cannot be read in one way only is refused, and what is read is connected to', async () => {
  const { get, dialer } = world()
  const refused = [
    'ftp://a.test/',
    'data:text/html,x',
    'javascript:1',
    'file:///etc/passwd',
    'http://[::1',
    'http:127.0.0.1/',
    'http://user:pw@a.test/',
    'http://a.test:0/',
    'http://a.test:65536/',
  ]
  for (const url of [...refused, 'http://exa mple.com/', 'http://127.0.0.1\\@a.test/', 'http://a.test\\@127.0.0.1/'])
    expect(failure(await get(url)), url).toBe('url_disallowed')
  expect(dialer.dialed).toEqual([])
  targets = ['http://127.0.0.1/']
  for (const url of ['http:///a.test/0', 'http:////a.test/0', 'http://a.test:22/0', 'http://A.TEST./0'])
    expect(failure(await get(url)), url).toBe('redirect_disallowed')
  expect(dialer.dialed).toEqual([80, 80, 22, 80].map((port) => ({ address: PUBLIC, port })))
})

import { dnsStub } from '@tollgate/testing'
import { describe, expect, test } from 'vitest'
import { addressClassifier, judgeUnresolved, judgeUrl, openGuard, parseAddress } from '../src/index.ts'
import { hopVectors } from './hop-vectors.ts'
import { spellingsOf } from './spellings.ts'

const signal = new AbortController().signal

describe('WM-87 the guard, with the network off', () => {
  test.each(hopVectors)('%s %s is judged %s: %s', async (_id, url, verdict, _why, world) => {
    const dns = dnsStub(world?.dns)
    const judged = await openGuard(dns.resolve, { allowedHosts: world?.allow ?? [] })(url, signal)
    const said = judged.ok ? 'accept' : judged.why === 'unresolvable' ? 'error' : 'refuse'
    expect(said).toBe(verdict)
    expect(dns.lookups.length).toBeLessThanOrEqual(1)
  })

  test('WM-80 asks no resolver about a URL that is refused for its form', async () => {
    const dns = dnsStub({ 'example.com': ['93.184.216.34'], h: ['93.184.216.34'] })
    const judge = openGuard(dns.resolve)
    const refused = hopVectors.filter(([id]) => /^V-A(0[6-9]|1[0-6])$/.test(id)).map(([, url]) => url)
    for (const url of [...refused, 'ftp://h/', 'gopher://h/', 'javascript:1', 'http://[::1', 'http://u:p@h/']) {
      expect((await judge(url, signal)).ok, url).toBe(false)
    }
    expect(dns.lookups).toEqual([])
  })

  test.each(['V-G08', 'V-G09', 'V-G10', 'V-G11'])(
    'WM-81 one public answer does not save a private one, after one look-up: %s',
    async (id) => {
      const [, url, , , world] = hopVectors.find(([name]) => name === id) ?? []
      const dns = dnsStub(world?.dns)
      expect(await openGuard(dns.resolve)(url ?? '', signal)).toEqual({ ok: false, why: 'disallowed' })
      expect(dns.lookups).toHaveLength(1)
    },
  )

  test('VB-3 looks a name up once, and an address never', async () => {
    const dns = dnsStub({ 'both.test': ['2606:2800:220:1::1', '93.184.216.34'] })
    const judge = openGuard(dns.resolve)
    const judged = await judge('http://both.test./', signal)
    expect(judged.ok && judged.hop).toMatchObject({ host: 'both.test', address: '93.184.216.34', port: 80 })
    for (const url of ['http://8.8.8.8/', 'http://134744072/', 'http://[2606:4700::1111]/', 'http://10.0.0.1/'])
      await judge(url, signal)
    expect(dns.lookups).toEqual(['both.test'])
  })
})

describe('addresses', () => {
  const classify = addressClassifier()

  test.each([
    ['::ffff:127.0.0.1', 'loopback'],
    ['::FFFF:10.0.0.1', 'private'],
    ['0:0:0:0:0:ffff:a9fe:a9fe', 'special'],
    ['::ffff:169.254.169.254', 'special'],
    ['::ffff:93.184.216.34', 'public'],
  ])('BR-108 judges the mapped address %s by the IPv4 inside: %s', (address, kind) =>
    expect(classify(address)).toBe(kind),
  )

  test.each([
    ...['100.64.0.1', '198.18.0.1', '192.0.0.8', '192.0.2.1', '198.51.100.1', '203.0.113.1', '224.0.0.1', '240.0.0.1'],
    ...['255.255.255.255', '0.1.2.3', '192.88.99.1', '168.63.129.16', 'fd00:ec2::254', '100.100.100.200'],
  ])('BR-115 %s is not global unicast', (address) => expect(classify(address)).not.toBe('public'))

  test('BR-115 a class nobody thought of is refused: everything outside 2000::/3 and what cannot be read', () => {
    for (const address of [
      '4000::1',
      '1::',
      '1fff:ffff::1',
      '8000::1',
      'fe80::1%eth0',
      '1.2.3',
      '01.2.3.4.5',
      'x',
      '',
    ]) {
      expect(classify(address), address).toBe('special')
    }
  })

  test.each(['::', '1::', '::1', '1:2:3:4:5:6:7:8', '1:2:3:4:5:6:1.2.3.4', '::1.2.3.4', '1:2:3:4:5:6:7::'])(
    'reads %s',
    (text) => expect(parseAddress(text)?.family).toBe(6),
  )

  test.each([
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1::2::3',
    ':1',
    '1:',
    '::12345',
    '1.2.3.4::',
    '::1.2.3',
    '1:2:3:4:5:6:7:8::',
  ])('does not read %s', (text) => expect(parseAddress(text)).toBeUndefined())

  test('an operator may add NAT64 prefixes and clear the list of cloud endpoints', () => {
    const own = addressClassifier({ nat64Prefixes: ['2001:67c:27e4:15::/96'], denied: [] })
    expect(own('2001:67c:27e4:15::a00:1')).toBe('special')
    expect(classify('2001:67c:27e4:15::a00:1')).toBe('public')
    expect(own('2001:67c:27e4:15::808:808')).toBe('public')
    expect(own('168.63.129.16')).toBe('public')
    expect(() => addressClassifier({ denied: ['10.0.0.0/33'] })).toThrow('10.0.0.0/33')
  })
})

describe('BR-114 number forms of an address', () => {
  test.each([
    ...[
      'http://2130706433/',
      'http://0x7f.1/',
      'http://0177.0.0.1/',
      'http://127.1/',
      'http://0/',
      'http://0x7f000001/',
    ],
    ...['http://127.0.0.1./', 'http://①②⑦.0.0.1/', 'http://localhost./', 'http://LOCALHOST/', 'http://foo.localhost/'],
    ...['http://017700000001/', 'http://0123456789/', 'http://0x7F.0.0.0x1/', 'http://127.0.0x0.1/'],
  ])('%s is refused and never looked up', async (url) => {
    const dns = dnsStub()
    expect(await openGuard(dns.resolve)(url, signal)).toEqual({ ok: false, why: 'disallowed' })
    expect(dns.lookups).toEqual([])
  })
})

describe('F-30 the text of a URL', () => {
  const long = (length: number) => `http://a.test/${'x'.repeat(length - 'http://a.test/'.length)}`

  test.each([
    ['is longer than 8192 characters', long(8193)],
    ['has user-info', 'http://u@a.test/'],
    ['has a control character', 'http://a.test/\u0001'],
    ['has a line break inside', 'http://a.test/a\nb'],
    ['has DEL', 'http://a.test/\u007f'],
    ['has a backslash', 'http://a.test\\b'],
    ['has no host', 'https:///'],
    ['has an empty label', 'http://a..test/'],
    ['has a name longer than 253 characters', `http://${'a.'.repeat(130)}test/`],
    ['has port 0', 'http://a.test:0/'],
    ['has a soft hyphen for a host', 'http://%C2%AD/'],
  ])('is refused when it %s', (_why, url) => expect(judgeUrl(url).ok).toBe(false))

  test.each([
    [long(8192), 'a.test'],
    ['http://a.test:8080/', 'a.test'],
    ['http://BÜCHER.example./', 'xn--bcher-kva.example'],
    ['http:///example.com/x', 'example.com'],
    ['http://example.com:22/', 'example.com'],
    [`http://${'a.'.repeat(124)}test/`, `${'a.'.repeat(124)}test`],
  ])('BR-116 names the host that will be connected to: %s', (url, host) => {
    const judged = judgeUrl(url)
    expect(judged.ok && judged.host).toBe(host)
  })

  test('BR-116 names it alike however many were judged before: what is called often is compiled anew', () => {
    for (let n = 0; n < 200_000; n++) judgeUrl(`http://${n % 9}.test/`)
    for (const url of ['http://bücher.example/', 'http://BÜCHER.example/é?ß'])
      expect(judgeUrl(url)).toMatchObject({ ok: true, host: 'xn--bcher-kva.example' })
  })
})

describe('what an operator lets through', () => {
  test('S-77 private hosts are reached on the operator’s word; metadata and reserved addresses are not even then', async () => {
    const judge = openGuard(dnsStub({ 'intern.test': ['10.0.0.5'], localhost: ['127.0.0.1'] }).resolve, {
      reach: { loopback: true, private: true },
    })
    for (const url of [
      'http://intern.test/',
      'http://127.0.0.1/',
      'http://localhost/',
      'http://[fd12::1]/',
      'http://[::ffff:10.0.0.1]/',
    ]) {
      expect((await judge(url, signal)).ok, url).toBe(true)
    }
    const never = [
      '169.254.169.254',
      '100.100.100.200',
      '168.63.129.16',
      '0.0.0.0',
      '224.0.0.1',
      '[fd00:ec2::254]',
      '[fe80::1]',
      '[64:ff9b::a00:1]',
    ]
    for (const host of never) expect((await judge(`http://${host}/`, signal)).ok, host).toBe(false)
  })

  test('loopback and private hosts are let through separately', async () => {
    const judge = openGuard(dnsStub().resolve, { reach: { loopback: true } })
    expect((await judge('http://127.0.0.1/', signal)).ok).toBe(true)
    expect((await judge('http://10.0.0.1/', signal)).ok).toBe(false)
  })

  test('WM-86 a named host is resolved once and pinned like any other', async () => {
    const dns = dnsStub({ 'wiki.corp': [['10.1.2.3'], ['10.9.9.9']] })
    const judged = await openGuard(dns.resolve, { allowedHosts: ['Wiki.Corp.', '*.corp'] })(
      'http://wiki.corp:8080/',
      signal,
    )
    expect(judged.ok && judged.hop).toMatchObject({ address: '10.1.2.3', port: 8080 })
    expect(dns.lookups).toEqual(['wiki.corp'])
  })
})

describe('F-40 a URL that somebody else will fetch', () => {
  const inside = ['127.0.0.1', '10.0.0.5', '192.168.1.1', '169.254.169.254', '100.100.100.200', '0.0.0.0']

  test('is refused in every spelling of an address that is not public', () => {
    const urls = inside.flatMap(spellingsOf).map((host) => `http://${host}/`)
    // what no parser takes for an address is a name, and a name is not looked up
    const passed = urls.filter((url) => judgeUnresolved(url).ok).map((url) => new URL(url).hostname)
    expect(passed.filter((host) => parseAddress(host.replace(/^\[|\]$|\.$/g, '')))).toEqual([])
    expect(passed.filter((host) => !/[a-z%]/.test(host))).toEqual([])
  })

  test.each([
    'http://localhost/',
    'http://LOCALHOST.:80/',
    'http://a.localhost/',
    'http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/',
    'ftp://a.test/',
    'x',
  ])('is refused: %s', (url) => expect(judgeUnresolved(url)).toEqual({ ok: false }))

  test.each([
    'http://a.test/',
    'https://8.8.8.8/',
    'http://[2606:4700::1111]/',
    'http://127.0.0.1.nip.io/',
    'http://intern/',
  ])('is theirs to resolve: %s', (url) => expect(judgeUnresolved(url).ok).toBe(true))
})

import type { ServerResponse } from 'node:http'
import { selfSigned } from '@tollgate/testing'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { parseRobots } from '../src/robots/rules.ts'
import { openWorld, textOf, type World } from './world.ts'

const AGENT = 'otari-web-retrieval'
const allowed = (robots: string, path: string): boolean => parseRobots(robots, AGENT)(path)

describe('RFC 9309 which group', () => {
  test.each([
    ['its own, in any case', 'User-Agent: OTARI-Web-Retrieval\nDisallow: /\n\nUser-agent: *\nAllow: /', false],
    ['its own with a version', 'user-agent: otari-web-retrieval/2\ndisallow: /', false],
    ['its own, not the one for all', 'User-agent: *\nDisallow: /\n\nUser-agent: otari-web-retrieval\nAllow: /x', true],
    [
      'all of its own together',
      `User-agent: ${AGENT}\nAllow: /b\nUser-agent: other\nDisallow: /b\nUser-agent: ${AGENT}\nDisallow: /a`,
      false,
    ],
    ['one of several names', `User-agent: a\nUser-agent: ${AGENT}\nDisallow: /a`, false],
    ['the one for all', 'User-agent: other\nAllow: /\n\nUser-agent: *\nDisallow: /a', false],
    ['none', 'User-agent: other\nDisallow: /', true],
    ['none of a longer name', `User-agent: ${AGENT}-news\nDisallow: /`, true],
    ['rules before any name', 'Disallow: /\nUser-agent: *\nAllow: /', true],
    ['names apart by other lines', `User-agent: ${AGENT}\nSitemap: /s.xml\nUser-agent: b\nDisallow: /a`, false],
    [
      'CR alone, a byte-order mark, blanks and comments',
      `# c\r User-Agent :\t${AGENT} # me\r Disallow:\t/a\t# no`,
      false,
    ],
    ['no file worth the name', '<html><body>Not found</body></html>', true],
    ['nothing', '', true],
  ])('%s', (_name, robots, verdict) => expect(allowed(robots, '/a/b')).toBe(verdict))
})

describe('RFC 9309 which rule', () => {
  test.each([
    ['/', '/a', true],
    ['/a', '/a', true],
    ['/a', '/abc', true],
    ['/a', '/A', false],
    ['/a', '/b/a', false],
    ['/a/', '/a', false],
    ['/*.pdf', '/x/y.pdf?z', true],
    ['/*.pdf$', '/x/y.pdf', true],
    ['/*.pdf$', '/x/y.pdf?z', false],
    ['/*.pdf$', '/.pdf.pdf', true],
    ['/a*b*c', '/a-x-b-y-c-z', true],
    ['/a*b*c', '/acb', false],
    ['/a*a$', '/a', false],
    ['/a$', '/a', true],
    ['/a$', '/ab', false],
    ['*', '/anything', true],
    ['/?q=', '/?q=1', true],
    ['/ツ', '/%E3%83%84', true],
    ['/%e3%83%84', '/ツ', true],
    ['/%62', '/b', true],
    ['/a%2Fb', '/a/b', false],
    ['/a%2a', '/a*', true],
    ['/a%24', '/a$', true],
    ['', '/a', false],
  ])('Disallow: %s covers %s: %s', (pattern, path, covered) =>
    expect(allowed(`User-agent: *\nDisallow: ${pattern}`, path)).toBe(!covered),
  )

  test.each([
    ['the longest', 'Disallow: /a\nAllow: /a/b', '/a/b/c', true],
    ['the longest, whatever the order', 'Allow: /a/b\nDisallow: /a\nDisallow: /a/b/c', '/a/b/c', false],
    ['the one that allows, of two as long', 'Disallow: /a\nAllow: /a', '/a', true],
    ['none when nothing covers it', 'Disallow: /b', '/a', true],
  ])('%s counts', (_name, rules, path, verdict) => expect(allowed(`User-agent: *\n${rules}`, path)).toBe(verdict))

  test('a file made to be slow is not', () => {
    const line = `Disallow: /${'*a'.repeat(240)}b\n`
    const robots = `User-agent: *\n${line.repeat(1_000)}`
    const started = performance.now()
    expect(allowed(robots, `/${'a'.repeat(8_000)}`)).toBe(true)
    expect(performance.now() - started).toBeLessThan(2_000)
  })
})

describe('BR-153 a worker that was told to ask', () => {
  /** Answers `/robots.txt` this way, and every other path with a page. */
  const opened = (robots: (response: ServerResponse) => void, settings = {}): Promise<World> =>
    openWorld(
      (request, response) => {
        if (request.url === '/robots.txt') robots(response)
        else if (request.url === '/from') response.writeHead(302, { location: 'http://two.test/private' }).end()
        else response.setHeader('content-type', 'text/plain').end('a page')
      },
      { settings: { respectRobots: true, ...settings } },
    )
  const targets = ({ site }: World) => site.requests.map(({ target }) => target)

  test('BR-153 reads what it may, refuses what it may not, and asks a site once', async () => {
    const world = await opened((response) => response.end('User-agent: *\nDisallow: /private'))
    expect(textOf(await world.fetch('http://site.test/private/x'))).toBe('robots_disallowed')
    expect(textOf(await world.fetch('http://site.test/open?x'))).toBe('a page')
    expect(textOf(await world.fetch('http://site.test/from'))).toBe('robots_disallowed')
    expect(targets(world)).toEqual(['/robots.txt', '/open?x', '/from', '/robots.txt'])
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() + 61 * 60_000 })
    onTestFinished(() => {
      vi.useRealTimers()
    })
    await world.fetch('http://site.test/open')
    expect(targets(world).slice(4)).toEqual(['/robots.txt', '/open'])
  })

  test.each([
    [200, true],
    [204, true],
    [404, true],
    [410, true],
    [400, true],
    [401, false],
    [403, false],
    [429, false],
    [500, false],
    [503, false],
  ])('BR-153 an answer of %d: may read %s', async (status, may) => {
    const world = await opened((response) => response.writeHead(status).end())
    expect(textOf(await world.fetch('http://site.test/a'))).toBe(may ? 'a page' : 'robots_disallowed')
  })

  test('BR-153 that nobody answers, or breaks off, may not', async () => {
    const silent = await opened(() => {})
    expect(textOf(await silent.fetch('http://site.test/a', { timeoutMs: 20_000 }))).toBe('robots_disallowed')
    const broken = await opened((response) => response.socket?.destroy())
    expect(textOf(await broken.fetch('http://site.test/a'))).toBe('robots_disallowed')
  })

  test('BR-153 reads the first 500 KiB of the rules', async () => {
    const filler = `#${'x'.repeat(1_022)}\n`.repeat(499)
    const within = await opened((response) => response.end(`${filler}User-agent: *\nDisallow: /a`))
    expect(textOf(await within.fetch('http://site.test/a'))).toBe('robots_disallowed')
    const beyond = await opened((response) => response.end(`${filler}${filler}User-agent: *\nDisallow: /a`))
    expect(textOf(await beyond.fetch('http://site.test/a'))).toBe('a page')
  })

  test('BR-153 passes the guard with the rules’ own request, wherever it is led', async () => {
    const world = await opened((response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end())
    const { port } = world.site
    expect(textOf(await world.fetch('http://site.test/a'))).toBe('robots_disallowed')
    expect(textOf(await world.fetch(`http://127.0.0.1:${port}/a`))).toBe('url_disallowed')
    const policy = { blockedDomains: ['two.test'] }
    expect(textOf(await world.fetch('http://two.test/a', { policy }))).toBe('domain_disallowed')
    expect(world.dialer.dialed.map(({ address }) => address)).toEqual(['93.184.216.34'])
  })

  test('one that was not told to, does not', async () => {
    const world = await opened((response) => response.end('User-agent: *\nDisallow: /'), { respectRobots: false })
    expect(textOf(await world.fetch('http://site.test/private'))).toBe('a page')
    expect(targets(world)).toEqual(['/private'])
  })

  test('asks each scheme and port of a host for itself', async () => {
    const tls = selfSigned('site.test')
    const world = await openWorld((_request, response) => response.setHeader('content-type', 'text/plain').end(''), {
      settings: { respectRobots: true },
      tls,
    })
    await world.fetch('https://site.test/a')
    await world.fetch('https://site.test:8443/a')
    await world.fetch('https://site.test:8443/b')
    expect(targets(world)).toEqual(['/robots.txt', '/a', '/robots.txt', '/a', '/b'])
  })
})

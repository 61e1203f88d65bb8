import { fakeBrave, fakeSearxng, fakeTavily } from '@tollgate/testing'
import { describe, expect, test } from 'vitest'
import { legacyBackend } from '../src/legacy.ts'
import { defaultBounds } from '../src/settings.ts'
import { CANARY_KEY, kept, last } from './engines.ts'
import { closedPort } from './faults.ts'
import { hitsOf, openWorld, recordingLog, times } from './world.ts'

const apiKey = CANARY_KEY
const label = 'otari:web_search'

describe('S-70 the provider of the old settings', () => {
  test('S-70 S-78 Tavily is called directly, with its key, and labelled otari:web_search', async () => {
    const [tavily, url] = await Promise.all([kept(fakeTavily({ apiKey })), kept(fakeSearxng())])
    const legacy = { provider: 'tavily', apiKey, apiBase: tavily.url, url: url.url }
    const { query, log } = await openWorld({ settings: { legacy } })
    const reply = await query({ options: { topic: 'news' } })
    expect(reply).toMatchObject({ status: 'ok', label })
    expect(reply).not.toHaveProperty('reportedCost')
    expect(last(tavily)).toMatchObject({ headers: { authorization: `Bearer ${apiKey}` }, body: { topic: 'news' } })
    expect(url.requests).toEqual([])
    expect(JSON.stringify([reply, log])).not.toContain(apiKey)
  })

  test('S-70 S-78 Brave is, too', async () => {
    const brave = await kept(fakeBrave({ apiKey }))
    const { query } = await openWorld({ settings: { legacy: { provider: 'brave', apiKey, apiBase: brave.url } } })
    expect(await query({})).toMatchObject({ status: 'ok', label })
    expect(last(brave).headers['x-subscription-token']).toBe(apiKey)
  })

  test('S-39 at an address where nobody is, each search fails by itself, and the next one may be answered', async () => {
    const url = await kept(fakeSearxng())
    url.finds([{ url: 'https://a.test/', title: 'T', content: 'snippet' }])
    for (const given of [
      { url: `http://127.0.0.1:${await closedPort()}` },
      { provider: 'tavily', apiKey, apiBase: `http://127.0.0.1:${await closedPort()}` },
    ]) {
      const { query, describe: described } = await openWorld({ settings: { legacy: given } })
      for (let twice = 0; twice < 2; twice++)
        expect(await query({})).toEqual({ status: 'failed', label, tag: 'network' })
      expect((await described()).inLoop).toMatchObject({ kind: 'legacy' })
    }
    const { query } = await openWorld({ settings: { legacy: { url: url.url } } })
    url.suffers({ kind: 'reset' })
    expect(await query({ enrich: false })).toEqual({ status: 'failed', label, tag: 'network' })
    expect(await query({ enrich: false })).toMatchObject({ status: 'ok', label })
  })

  test('S-70 without another base it is the vendor’s public address', () => {
    const { log } = recordingLog()
    const backend = (provider: string) => legacyBackend({ provider, apiKey }, defaultBounds, log)
    expect(backend('tavily')?.apiBase).toBe('https://api.tavily.com')
    expect(backend('brave')?.apiBase).toBe('https://api.search.brave.com')
  })

  test.each([
    [
      'CFG-55 an unknown provider',
      { provider: 'exa', apiKey },
      'web_search_provider: unknown provider exa; there is tavily, brave',
    ],
    ['CFG-55 an unknown provider without a key', { provider: 'bing' }, 'unknown provider bing'],
    ['a prototype member', { provider: 'toString', apiKey }, 'unknown provider toString'],
    ['a URL that is none', { url: 'searxng:8080/x y' }, 'web_search_url must be'],
    ['a URL with a password', { url: 'http://u:hunter2@searxng' }, 'web_search_url must have no user'],
  ])('%s stops the start', (_name, settings, expected) => {
    const start = () => legacyBackend(settings, defaultBounds, recordingLog().log)
    expect(start).toThrow(expected)
    expect(start).not.toThrow('hunter2')
  })

  test.each([
    ['the key', { provider: 'tavily' }, 'web_search_provider_api_key'],
    ['the provider', { apiKey }, 'web_search_provider'],
  ])('S-71 CFG-55 without %s the pair counts as unset, with a warning', (_name, settings, missing) => {
    const { log, lines } = recordingLog()
    expect(legacyBackend(settings, defaultBounds, log)).toBeUndefined()
    expect(lines).toEqual([expect.stringContaining(`"missing":"${missing}"`)])
    expect(lines.join()).not.toContain(apiKey)
  })

  test('a whole pair, a URL or nothing is no reason for a warning', () => {
    for (const settings of [{ provider: 'tavily', apiKey }, { url: 'http://searxng:8080' }, {}]) {
      const { log, lines } = recordingLog()
      legacyBackend(settings, defaultBounds, log)
      expect(lines).toEqual([])
    }
  })
})

describe('S-72 the URL of the old settings', () => {
  async function openSearxng(legacy = {}, options: Parameters<typeof openWorld>[0] = {}) {
    const fake = await kept(fakeSearxng())
    return { fake, world: await openWorld({ ...options, settings: { legacy: { url: fake.url, ...legacy } } }) }
  }

  test('S-72 S-73 S-78 is asked with q, format and the usual engines', async () => {
    const { fake, world } = await openSearxng()
    expect(await world.query({ query: 'x' })).toMatchObject({ status: 'ok', label })
    expect(last(fake)).toMatchObject({ method: 'GET', path: '/search' })
    expect(last(fake).query).toEqual({ q: 'x', format: 'json', engines: 'duckduckgo,mojeek,qwant,wikipedia' })
  })

  test('S-73 the configured engines go before the usual ones, options never before either', async () => {
    const { fake, world } = await openSearxng({ engines: 'wikipedia' })
    await world.query({ query: 'x', options: { q: 'evil', format: 'html', engines: 'evil', time_range: 'day' } })
    expect(last(fake).query).toEqual({ q: 'x', format: 'json', engines: 'wikipedia', time_range: 'day' })
    expect(world.log).toEqual([expect.stringContaining('"problems":3')])
    expect(world.log.join()).not.toContain('evil')
  })

  test.each([
    [undefined, 5],
    [1, 1],
    [19, 19],
    [20, 20],
    [21, 20],
    [50, 20],
  ])('S-74 of %s wanted results %i are shown', async (maxResults, shown) => {
    const { fake, world } = await openSearxng({ extract: false })
    fake.finds(times(40, (index) => ({ url: `https://a.test/${index}`, title: 'T', content: 'c' })))
    expect(hitsOf(await world.query({ ...(maxResults && { maxResults }) }))).toHaveLength(shown)
  })

  test('S-75 result pages are read by default, one with extracted_content is not', async () => {
    const { fake, world } = await openSearxng()
    fake.finds([
      { url: 'https://a.test/', title: 'A', content: 'snippet' },
      { url: 'https://b.test/', title: 'B', content: 'snippet', extracted_content: 'theirs' },
    ])
    expect(hitsOf(await world.query({})).map(({ text }) => text)).toEqual(['page of https://a.test/', 'theirs'])
    expect(world.fetches.calls.map(({ url }) => url)).toEqual(['https://a.test/'])
  })

  test('S-75 with extraction off no page is read', async () => {
    const { fake, world } = await openSearxng({ extract: false })
    fake.finds([{ url: 'https://a.test/', title: 'A', content: 'snippet' }])
    expect(hitsOf(await world.query({})).map(({ text }) => text)).toEqual(['snippet'])
    expect(world.fetches.calls).toEqual([])
  })

  test.each([
    [undefined, false],
    [false, false],
    [true, true],
  ])('S-77 with web_search_allow_private_hosts %s pages on private hosts are let through: %s', async (set, allowed) => {
    const { fake, world } = await openSearxng({ allowPrivateHosts: set })
    fake.finds([{ url: 'http://127.0.0.1/', title: 'A', content: 'snippet' }])
    await world.query({})
    expect(world.fetches.calls).toMatchObject([{ url: 'http://127.0.0.1/', allowPrivateHosts: allowed }])
  })

  test('S-77 an instance never may, whatever the old setting says', async () => {
    const fake = await kept(fakeSearxng())
    fake.finds([{ url: 'http://127.0.0.1/', title: 'A', content: 'snippet' }])
    const settings = { searchTools: { searxng: { apiBase: fake.url } }, legacy: { allowPrivateHosts: true } }
    const world = await openWorld({ settings })
    await world.query({ instance: 'searxng' })
    expect(world.fetches.calls).toMatchObject([{ allowPrivateHosts: false }])
  })

  test('S-79 a URL that answers 404 leaves search configured, and each search failing', async () => {
    const { fake, world } = await openSearxng()
    fake.alwaysSuffers({ kind: 'status', status: 404, body: 'gone' })
    expect((await world.describe()).inLoop).toMatchObject({ label })
    for (let round = 0; round < 2; round++) {
      expect(await world.query({})).toEqual({ status: 'failed', label, tag: 'http_error', httpStatus: 404 })
    }
  })

  test('S-80 waits 15 seconds for an answer and no longer', async () => {
    const { fake, world } = await openSearxng()
    fake.suffers({ kind: 'slow', ms: 16_000 })
    const started = performance.now()
    expect(await world.query({}, { timeoutMs: 25_000 })).toEqual({ status: 'failed', label, tag: 'timeout' })
    const waited = performance.now() - started
    expect(waited).toBeGreaterThan(14_500)
    expect(waited).toBeLessThan(16_000)
    await expect.poll(() => fake.abandoned).toBe(1)
  }, 30_000)

  test('S-81 what is no http(s) URL or lies outside the policy is gone, before numbers are given', async () => {
    const { fake, world } = await openSearxng({ extract: false })
    fake.finds([
      { url: 'https://a.test/', title: 'A' },
      { url: 'javascript:alert(1)', title: 'B' },
      { url: 'https://www.blocked.test/', title: 'C' },
      { url: 'http://d.test/', title: 'D' },
    ])
    const hits = hitsOf(await world.query({ maxResults: 2, policy: { blockedDomains: ['blocked.test'] } }))
    expect(hits.map(({ title }) => title)).toEqual(['A', 'D'])
  })
})

import { Fault, fetchFailure } from '@tollgate/contracts'
import { fakeExa, fakeSearxng } from '@tollgate/testing'
import { describe, expect, test } from 'vitest'
import type { SearchSettings } from '../src/index.ts'
import { CANARY_KEY, kept } from './engines.ts'
import { openExaContents, openFetcher } from './fetchers.ts'
import { hitsOf, never, openWorld, tenancy, times } from './world.ts'

type World = NonNullable<Parameters<typeof openWorld>[0]>

/** A SearXNG instance whose hits come without page text. */
async function openBare(urls: string[], options: World = {}) {
  const fake = await kept(fakeSearxng())
  fake.finds(urls.map((url) => ({ url, title: 'T', content: `snippet of ${url}` })))
  const world = await openWorld({
    ...options,
    settings: { searchTools: { searxng: { apiBase: fake.url } }, ...options.settings },
  })
  return { fake, world }
}
const site = (n: number) => times(n, (index) => `https://site.test/${index}`)

describe('pages in place of snippets', () => {
  test('S-55 S-57 the built-in fetcher’s page replaces the snippet', async () => {
    const { world } = await openBare(site(2))
    expect(hitsOf(await world.query({})).map(({ text }) => text)).toEqual([
      'page of https://site.test/0',
      'page of https://site.test/1',
    ])
    expect(world.fetches.calls[0]).toMatchObject({ tenancy, url: 'https://site.test/0', timeoutMs: 5_000 })
    expect(world.fetches.calls[0]?.maxTextBytes).toBeGreaterThan(4 * 1_500)
  })

  test('S-47 a page is cut like any other text', async () => {
    const { world } = await openBare(site(1), { page: () => ({ text: '漢'.repeat(3_000) }) })
    expect(hitsOf(await world.query({}))[0]?.text).toBe(`${'漢'.repeat(1_499)}…`)
  })

  test('S-56 the first twenty hits without text are read, the rest show their snippets', async () => {
    const { world } = await openBare(site(30))
    const hits = hitsOf(await world.query({ maxResults: 30 }))
    expect(world.fetches.calls.map(({ url }) => url)).toEqual(site(20))
    expect(hits.map(({ text }) => text.split(' ')[0])).toEqual([
      ...times(20, () => 'page'),
      ...times(10, () => 'snippet'),
    ])
  })

  test('S-56 hits that came with text do not count among the twenty', async () => {
    const { fake, world } = await openBare([])
    fake.finds(
      times(40, (index) => ({
        url: `https://site.test/${index}`,
        title: 'T',
        content: 'snippet',
        ...(index % 2 === 0 && { extracted_content: 'theirs' }),
      })),
    )
    await world.query({ maxResults: 40 })
    expect(world.fetches.calls.map(({ url }) => url)).toEqual(
      times(20, (index) => `https://site.test/${2 * index + 1}`),
    )
  })

  test('S-63 at most five pages of one search are in flight, and all five are used', async () => {
    const { world } = await openBare(site(20), { page: () => later(20) })
    hitsOf(await world.query({ maxResults: 20 }))
    expect(world.fetches.calls).toHaveLength(20)
    expect(world.fetches.mostInFlight).toBe(5)
  })

  test('several searches together stay within the bound of the process; what does not fit shows snippets', async () => {
    const bounds = { pages: 3, waitingPages: 2 }
    const fake = await kept(fakeSearxng())
    fake.finds(site(20).map((url) => ({ url, title: 'T', content: 'snippet' })))
    const settings = { searchTools: { searxng: { apiBase: fake.url } }, bounds }
    const world = await openWorld({ settings, page: () => later(50) })
    const replies = await Promise.all(times(4, () => world.query({ maxResults: 20 })))
    expect(world.fetches.mostInFlight).toBe(3)
    const texts = replies.flatMap(hitsOf).map(({ text }) => text)
    expect(texts).toHaveLength(80)
    expect(texts.filter((text) => text === 'snippet').length).toBeGreaterThan(0)
    expect(texts.filter((text) => text.startsWith('page')).length).toBeGreaterThanOrEqual(5)
  })

  test('none is read when the request wants none', async () => {
    const { world } = await openBare(site(3))
    const events: string[] = []
    await world.query({ enrich: false }, { onEvent: ({ type }) => events.push(type) })
    expect(world.fetches.calls).toEqual([])
    expect(events).toEqual(['searching'])
  })

  test('says that it is searching, then that it is reading, once each', async () => {
    const { world } = await openBare(site(8))
    const events: string[] = []
    await world.query({ maxResults: 8 }, { onEvent: ({ type }) => events.push(type) })
    expect(events).toEqual(['searching', 'reading'])
  })
})

describe('pages that cannot be had', () => {
  test.each([
    ...fetchFailure.options.map((failure) => ({ status: 'failed' as const, failure, label: 'builtin:builtin_fetch' })),
    new Fault('unavailable', 'no worker'),
    new Fault('internal', 'a bug'),
    new Error('worse'),
    { text: '' },
    { text: ' \n\t ' },
  ])('S-59 S-76 leave the hit its snippet and the search a success: %j', async (answer) => {
    const { world } = await openBare(site(2), { page: ({ url }) => (url.endsWith('0') ? answer : {}) })
    expect(hitsOf(await world.query({})).map(({ text }) => text)).toEqual([
      'snippet of https://site.test/0',
      'page of https://site.test/1',
    ])
  })

  test('S-76 nobody to read them is no failure of the search either', async () => {
    const { world } = await openBare(site(2), { fetcher: false })
    const hits = hitsOf(await world.query({}, { timeoutMs: 1_500 }))
    expect(hits.map(({ text }) => text)).toEqual(site(2).map((url) => `snippet of ${url}`))
  })

  test('S-76 a page that is still missing just before the caller’s deadline is done without', async () => {
    const { world } = await openBare(site(2), { page: ({ url }, signal) => (url.endsWith('0') ? never(signal) : {}) })
    const started = performance.now()
    const hits = hitsOf(await world.query({}, { timeoutMs: 2_000 }))
    expect(hits.map(({ text }) => text)).toEqual(['snippet of https://site.test/0', 'page of https://site.test/1'])
    expect(performance.now() - started).toBeLessThan(2_000)
    await expect.poll(() => world.fetches.stopped).toBe(1)
  })

  test('a caller who leaves stops the pages being read', async () => {
    const { world } = await openBare(site(20), { page: (_call, signal) => never(signal) })
    const gone = new AbortController()
    const asking = world.query({ maxResults: 20 }, { signal: gone.signal })
    await expect.poll(() => world.fetches.inFlight).toBe(5)
    gone.abort()
    await expect(asking).rejects.toMatchObject({ failure: 'cancelled' })
    await expect.poll(() => world.fetches.inFlight).toBe(0)
    expect(world.fetches.calls).toHaveLength(5)
  })
})

describe('S-60 the search’s domains', () => {
  test('go with each page, and forbidden hits are not asked for at all', async () => {
    const { world } = await openBare(['https://good.test/', 'https://bad.test/'])
    await world.query({ policy: { allowedDomains: ['good.test'], blockedDomains: ['x.good.test'] } })
    expect(world.fetches.calls).toMatchObject([
      { url: 'https://good.test/', policy: { allowedDomains: ['good.test'], blockedDomains: ['x.good.test'] } },
    ])
  })

  test.each([
    ['a blocked host', 'https://www.bad.test/x', false],
    ['no URL', 'about:blank', false],
    ['another permitted page', 'https://www.site.test/x', true],
  ])('a page that came from %s in the end is used: %s', async (_name, finalUrl, used) => {
    const { world } = await openBare(site(1), { page: () => ({ finalUrl, text: 'moved' }) })
    const hits = hitsOf(await world.query({ policy: { blockedDomains: ['bad.test'] } }))
    expect(hits[0]?.text).toBe(used ? 'moved' : 'snippet of https://site.test/0')
  })
})

describe('pages by a fetch instance', () => {
  /** Two fetch instances beside the built-in fetcher, each with every page of the site. */
  async function openFetchers(n: number, settings: Partial<SearchSettings> = {}, searchTool: object = {}) {
    const [exa, tabstack] = await Promise.all([openExaContents(), openFetcher('tabstack')])
    for (const { fake } of [exa, tabstack]) fake.finds(site(n).map((url) => ({ url, text: `text of ${url}` })))
    const fake = await kept(fakeSearxng())
    fake.finds(site(n).map((url) => ({ url, title: 'T', content: `snippet of ${url}` })))
    const world = await openWorld({
      settings: {
        searchTools: { searxng: { apiBase: fake.url, ...searchTool } },
        fetchTools: { exa: exa.tool, tabstack: tabstack.tool },
        ...settings,
      },
    })
    const asked = () => ({
      builtin: world.fetches.calls.length,
      exa: exa.fake.requests.length,
      tabstack: tabstack.fake.requests.length,
    })
    return { world, exa: exa.fake, tabstack: tabstack.fake, searxng: fake, asked }
  }

  test.each<[string, Partial<SearchSettings>, object, object]>([
    ['nothing is said: the built-in one', {}, {}, { builtin: 2, exa: 0, tabstack: 0 }],
    ['the default says it', { webFetchDefaultTool: 'exa' }, {}, { builtin: 0, exa: 2, tabstack: 0 }],
    [
      'the search tool says otherwise',
      { webFetchDefaultTool: 'exa' },
      { fetchTool: 'tabstack' },
      { builtin: 0, exa: 0, tabstack: 2 },
    ],
    [
      'the search tool says the built-in one',
      { webFetchDefaultTool: 'exa' },
      { fetchTool: 'builtin_fetch' },
      { builtin: 2, exa: 0, tabstack: 0 },
    ],
    [
      'the default is the built-in one',
      { webFetchDefaultTool: 'builtin_fetch' },
      {},
      { builtin: 2, exa: 0, tabstack: 0 },
    ],
    ['the default is unknown', { webFetchDefaultTool: 'ghost' }, {}, { builtin: 2, exa: 0, tabstack: 0 }],
    ['the search tool’s is unknown', { webFetchDefaultTool: 'exa' }, { fetchTool: 'ghost' }, { builtin: 2 }],
  ])('S-55 FP-02 F-19 when %s', async (_name, settings, searchTool, expected) => {
    const { world, asked } = await openFetchers(2, settings, searchTool)
    expect(await world.query({})).toMatchObject({ status: 'ok' })
    expect(asked()).toMatchObject(expected)
  })

  test('S-75 the older settings’ pages are the built-in fetcher’s in any case', async () => {
    const { searxng, world, asked } = await openFetchers(2, {
      searchTools: {},
      webFetchDefaultTool: 'exa',
      legacy: {},
    })
    const legacy = await openWorld({ settings: { legacy: { url: searxng.url }, webFetchDefaultTool: 'exa' } })
    await legacy.query({})
    expect(legacy.fetches.calls).toHaveLength(2)
    expect([world.fetches.calls.length, asked().exa]).toEqual([0, 0])
  })

  test('S-58 FP-08 are asked for as much as a result shows, and follow the snippet', async () => {
    const { world, exa } = await openFetchers(1, { webFetchDefaultTool: 'exa' })
    expect(hitsOf(await world.query({}))[0]?.text).toBe('snippet of https://site.test/0\n\ntext of https://site.test/0')
    expect(exa.requests[0]?.body).toEqual({ urls: ['https://site.test/0'], text: { maxCharacters: 1_500 } })
  })

  test('S-58 S-47 a provider that cannot be told is cut, and the whole result is too', async () => {
    const { world, tabstack } = await openFetchers(1, { webFetchDefaultTool: 'tabstack' })
    tabstack.finds([{ url: 'https://site.test/0', text: '漢'.repeat(3_000) }])
    const [hit] = hitsOf(await world.query({}))
    expect(hit?.text).toMatch(/^snippet of https:\/\/site\.test\/0\n\n漢+…$/u)
    expect(Array.from(hit?.text ?? '')).toHaveLength(1_500)
  })

  test('S-59 what fails or is refused leaves the hit its snippet, and the search a success', async () => {
    const urls = ['https://site.test/0', 'https://gone.test/', 'http://127.0.0.1/', 'https://bad.test/']
    const { world, exa, searxng } = await openFetchers(1, { webFetchDefaultTool: 'exa' })
    searxng.finds(urls.map((url) => ({ url, title: 'T', content: 'snippet' })))
    const hits = hitsOf(await world.query({ policy: { blockedDomains: ['bad.test'] } }))
    expect(hits.map(({ text }) => text)).toEqual(['snippet\n\ntext of https://site.test/0', 'snippet', 'snippet'])
    // S-60: neither the blocked host nor our own machine is named to the provider
    expect(exa.requests.map(({ body }) => body)).toMatchObject([{ urls: [urls[0]] }, { urls: [urls[1]] }])
  })

  test('S-58 a page that takes longer than the instance’s timeout is done without', async () => {
    const { world, tabstack } = await openFetchers(2)
    tabstack.suffers({ kind: 'hang' })
    const tool = { provider: 'tabstack', apiKey: CANARY_KEY, apiBase: `${tabstack.url}/v1`, timeoutMs: 400 }
    const fake = await kept(fakeSearxng())
    fake.finds(site(2).map((url) => ({ url, title: 'T', content: 'snippet' })))
    const searchTools = { searxng: { apiBase: fake.url } }
    const quick = await openWorld({ settings: { searchTools, fetchTools: { tool }, webFetchDefaultTool: 'tool' } })
    const texts = hitsOf(await quick.query({})).map(({ text }) => text)
    expect(texts.toSorted()).toEqual(['snippet', expect.stringMatching(/^snippet\n\ntext of /)])
    expect(world.fetches.calls).toEqual([])
  })

  test('S-56 S-63 the first twenty, five at a time', async () => {
    const { world, exa } = await openFetchers(25, { webFetchDefaultTool: 'exa' })
    exa.alwaysSuffers({ kind: 'slow', ms: 20 })
    hitsOf(await world.query({ maxResults: 25 }))
    expect([exa.requests.length, exa.mostInFlight]).toEqual([20, 5])
  })

  test('S-62 P-25 what Exa reports is added to the search’s own cost, exactly', async () => {
    const engine = await kept(fakeExa({ apiKey: CANARY_KEY }))
    engine.finds(site(3).map((url) => ({ url, title: 'T' })))
    engine.costs(0.005)
    const search = { provider: 'exa', apiKey: CANARY_KEY, apiBase: engine.url }
    const { world } = await openFetchers(3, { searchTools: { search }, webFetchDefaultTool: 'exa' })
    expect(await world.query({})).toMatchObject({ status: 'ok', reportedCost: '0.008' })
  })

  test('S-62 pages alone can have a cost; those that failed have none', async () => {
    const { world, exa } = await openFetchers(3, { webFetchDefaultTool: 'exa' })
    exa.says('https://site.test/1', { tag: 'CRAWL_NOT_FOUND', httpStatusCode: 404 })
    exa.costs(0.0000001)
    expect(await world.query({})).toMatchObject({ reportedCost: '0.0000002' })
  })

  test('P-33 nothing is added for an instance that reports nothing', async () => {
    const { world } = await openFetchers(3, { webFetchDefaultTool: 'tabstack' })
    expect(await world.query({})).not.toHaveProperty('reportedCost')
  })
})

describe('costs', () => {
  test('P-33 nothing is added for pages whose fetcher reports nothing', async () => {
    const { world } = await openBare(site(3))
    expect(await world.query({})).not.toHaveProperty('reportedCost')
  })
})

const later = async (ms: number): Promise<object> => {
  await new Promise((done) => setTimeout(done, ms))
  return {}
}

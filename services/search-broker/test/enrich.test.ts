import { Fault, fetchFailure } from '@tollgate/contracts'
import { fakeExa, fakeSearxng } from '@tollgate/testing'
import { describe, expect, test } from 'vitest'
import { CANARY_KEY, kept } from './engines.ts'
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

  test('S-58 an instance’s page follows the snippet', async () => {
    const { world } = await openBare(site(1), { page: () => ({ label: 'tabstack:pages', text: ' the page ' }) })
    expect(hitsOf(await world.query({}))[0]?.text).toBe('snippet of https://site.test/0\n\nthe page')
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

describe('costs', () => {
  test('S-62 P-25 what pages cost is added to the search’s own cost, exactly', async () => {
    const fake = await kept(fakeExa({ apiKey: CANARY_KEY }))
    fake.finds(site(3).map((url) => ({ url, title: 'T' })))
    fake.costs(0.005)
    const settings = { searchTools: { exa: { apiKey: CANARY_KEY, apiBase: fake.url } } }
    const world = await openWorld({ settings, page: () => ({ reportedCost: '0.001', label: 'exa:pages' }) })
    expect(await world.query({})).toMatchObject({ status: 'ok', reportedCost: '0.008' })
  })

  test('S-62 pages alone can have a cost, also one that could not be used', async () => {
    const { world } = await openBare(site(2), {
      page: ({ url }) => ({ reportedCost: '0.0000001', ...(url.endsWith('0') && { finalUrl: 'https://bad.test/' }) }),
    })
    const reply = await world.query({ policy: { blockedDomains: ['bad.test'] } })
    expect(reply).toMatchObject({ reportedCost: '0.0000002' })
  })

  test('P-33 nothing is added for pages whose fetcher reports nothing', async () => {
    const { world } = await openBare(site(3))
    expect(await world.query({})).not.toHaveProperty('reportedCost')
  })
})

const later = async (ms: number): Promise<object> => {
  await new Promise((done) => setTimeout(done, ms))
  return {}
}

import { fakeBrave, fakeSerper, fakeTavily, type SearchFake } from '@tollgate/testing'
import { afterEach, describe, expect, onTestFinished, test } from 'vitest'
import { searchResult } from './strict.ts'
import { openWorld, type World } from './world.ts'

const KEY = 'canary/key+for=search'
const hits = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ title: `Title ${n}`, url: `https://hit.test/${n}`, text: `Text ${n}` }))
type Hit = ReturnType<typeof hits>[number]

/** Each vendor's fake, and how it spells a hit. */
const names = ['tavily', 'serper', 'brave'] as const
type Vendor = (typeof names)[number]
const vendors: Record<Vendor, { open(): Promise<unknown>; as(hit: Hit): object }> = {
  tavily: { open: () => fakeTavily({ apiKey: KEY }), as: ({ text, ...hit }: Hit) => ({ ...hit, content: text }) },
  serper: {
    open: () => fakeSerper({ apiKey: KEY }),
    as: ({ text, url, ...hit }: Hit) => ({ ...hit, link: url, snippet: text }),
  },
  brave: { open: () => fakeBrave({ apiKey: KEY }), as: ({ text, ...hit }: Hit) => ({ ...hit, description: text }) },
}
const reported = { tavily: true, serper: false, brave: false }

const worlds: World[] = []
afterEach(async () => {
  for (const world of worlds.splice(0)) await world.close()
})

async function searching<R>(provider: Vendor, fake: SearchFake<R>, more: { timeoutMs?: number } = {}): Promise<World> {
  onTestFinished(() => fake.close())
  const world = await openWorld({ search: { provider, apiKey: KEY, apiBase: fake.url, ...more } })
  worlds.push(world)
  return world
}

async function finding(vendor: Vendor, found: Hit[]) {
  const fake = (await vendors[vendor].open()) as SearchFake<object>
  fake.finds(found.map(vendors[vendor].as))
  return { fake, world: await searching(vendor, fake) }
}

describe.each(names)('%s', (vendor) => {
  test('WM-60 WM-61 answers with exactly the four members, in the provider’s order and at most 20', async () => {
    const { world } = await finding(vendor, hits(25))
    const query = '  what the caller wrote '
    const found = await world.read(searchResult, 'web_search', { query, num_results: 50 })
    expect(found).toMatchObject({ provider: vendor, query })
    expect(found.results).toEqual(hits(20).map(({ title, url, text }) => ({ title, url, snippet: text })))
    expect(found.usage.provider_reported).toBe(reported[vendor])
  })

  test('WM-60 no hits are an answer', async () => {
    const { world } = await finding(vendor, [])
    const found = await world.read(searchResult, 'web_search', { query: 'x' })
    expect(found.results).toEqual([])
    expect(found.usage).toHaveProperty('provider_reported')
  })

  test('WM-61 what a hit lacks is empty, and a hit without a URL is dropped', async () => {
    const { fake, world } = await finding(vendor, [])
    const [bare, nowhere] = [
      vendors[vendor].as({ title: '', url: 'https://bare.test/', text: '' }),
      { title: 'nowhere' },
    ]
    fake.finds([nowhere, bare])
    const { results } = await world.read(searchResult, 'web_search', { query: 'x' })
    expect(results).toEqual([{ title: '', url: 'https://bare.test/', snippet: '' }])
  })

  test('WM-64 WM-13 a provider’s error comes without URL and key, however it spells them', async () => {
    const { fake, world } = await finding(vendor, [])
    const url = `${fake.url}/res/v1/web/search?q=x&count=5`
    const spelled = [url, KEY, encodeURIComponent(url), encodeURIComponent(KEY)]
    const body = JSON.stringify({
      error: `bad request to ${url} with ${KEY}`,
      nested: JSON.stringify(spelled),
      spelled,
    })
    fake.suffers({ kind: 'status', status: 400, body: body.replaceAll('/', '\\/') })
    const text = await world.fails('web_search', { query: 'x' })
    expect(text).toContain(`${vendor} answered with status 400`)
    expect(text).toContain('<url>')
    expect(text).toContain('<redacted>')
    for (const told of [text, decodeURIComponent(text), world.logged()]) {
      expect(told).not.toContain('canary')
      expect(told.replaceAll('\\', '')).not.toContain(new URL(fake.url).host)
    }
  })

  test('WM-13 no result, error or log line holds the key: success, 401, 500, a reset and a timeout', async () => {
    const fake = (await vendors[vendor].open()) as SearchFake<object>
    const world = await searching(vendor, fake, { timeoutMs: 300 })
    const texts: string[] = []
    const search = async () =>
      texts.push(JSON.stringify(await world.client.callTool({ name: 'web_search', arguments: { query: 'x' } })))
    await search()
    fake.suffers({ kind: 'status', status: 401, body: `{"error":"key ${KEY}"}` }, { kind: 'status', status: 500 })
    fake.suffers({ kind: 'reset' }, { kind: 'hang' })
    for (let n = 0; n < 4; n++) await search()
    expect(texts.filter((text) => text.includes('"isError":true'))).toHaveLength(4)
    expect(texts.at(-1)).toContain('did not answer in time')
    expect([...texts, world.logged()].filter((text) => text.includes('canary'))).toEqual([])
  })
})

describe('WM-62 web_search without its settings', () => {
  test.each([
    [{}, /set DPTTOOLS_WEB_SEARCH_PROVIDER to tavily, serper or brave/],
    [{ apiKey: KEY }, /set DPTTOOLS_WEB_SEARCH_PROVIDER/],
    [{ provider: 'serper' }, /set DPTTOOLS_WEB_SEARCH_API_KEY/],
  ])('WM-62 %o names the variable to set, and nothing is sent', async (search, text) => {
    const fake = await fakeSerper({ apiKey: KEY })
    onTestFinished(() => fake.close())
    const world = await openWorld({ search: { ...search, apiBase: fake.url } })
    worlds.push(world)
    expect(await world.fails('web_search', { query: 'x' })).toMatch(text)
    expect(fake.requests).toEqual([])
  })

  test('WM-12 a provider outside the three is an error of the search that names them', async () => {
    const world = await openWorld({ search: { provider: 'bing', apiKey: KEY } })
    worlds.push(world)
    expect(await world.fails('web_search', { query: 'x' })).toContain('must be tavily, serper or brave')
  })
})

describe('WM-65 Tavily', () => {
  const depths = [
    ['basic', 1],
    ['advanced', 2],
    ['fast', 1],
    ['ultra-fast', 1],
  ] as const

  test.each(depths)(
    'WM-65 WM-66 %s is asked for, and estimated at %d credits when nothing is reported',
    async (depth, credits) => {
      const fake = await fakeTavily({ apiKey: KEY, usage: null })
      const world = await searching('tavily', fake)
      const { usage } = await world.read(searchResult, 'web_search', { query: 'x', search_depth: depth })
      expect(usage).toEqual({
        estimated: true,
        estimated_credits: credits,
        provider_reported: false,
        search_depth: depth,
        request_id: '123e4567-e89b-12d3-a456-426614174111',
        response_time: 0.4,
      })
      expect(fake.requests[0]?.body).toMatchObject({ search_depth: depth, include_usage: true, topic: 'general' })
    },
  )

  test('WM-65 what it reports is passed on and marked; news is a topic and leaves the depth alone', async () => {
    const fake = await fakeTavily({ apiKey: KEY, usage: { credits: 1 } })
    const world = await searching('tavily', fake)
    const found = await world.read(searchResult, 'web_search', { query: 'rates', search_type: 'news', num_results: 7 })
    expect(found.usage).toEqual({
      credits: 1,
      provider_reported: true,
      search_depth: 'basic',
      request_id: '123e4567-e89b-12d3-a456-426614174111',
      response_time: 0.4,
    })
    const [{ headers, body }] = fake.requests as [SearchFake<never>['requests'][number]]
    expect(headers.authorization).toBe(`Bearer ${KEY}`)
    expect(body).toEqual({ query: 'rates', max_results: 7, topic: 'news', search_depth: 'basic', include_usage: true })
  })
})

describe.each([
  ['WM-67', 'serper', '/search', '/news'],
  ['WM-68', 'brave', '/res/v1/web/search', '/res/v1/news/search'],
] as const)('%s %s', (id, vendor, web, news) => {
  test(`${id} WM-69 searches the web or news, ignores the depth and reports no use`, async () => {
    const { fake, world } = await finding(vendor, hits(2))
    for (const search_type of ['general', 'news']) {
      const found = await world.read(searchResult, 'web_search', { query: 'x', search_type, search_depth: 'advanced' })
      expect(found.results).toHaveLength(2)
      expect(found.usage).toEqual({ provider_reported: false })
    }
    expect(fake.requests.map(({ path }) => path)).toEqual([web, news])
    expect(JSON.stringify(fake.requests)).not.toContain('advanced')
    expect(fake.refusals).toEqual([])
  })
})

test('WM-68 Brave’s markup is removed from titles and snippets', async () => {
  const { world } = await finding('brave', [
    { title: 'A &amp; <strong>B</strong>', url: 'https://a.test/', text: 'it&#x27;s' },
  ])
  const { results } = await world.read(searchResult, 'web_search', { query: 'x' })
  expect(results).toEqual([{ title: 'A & B', url: 'https://a.test/', snippet: "it's" }])
})

test('WM-63 a provider has its own 30 seconds, whatever pages have', async () => {
  const fake = await fakeSerper({ apiKey: KEY })
  onTestFinished(() => fake.close())
  const world = await openWorld({
    web: { operationTimeoutMs: 1_000 },
    search: { provider: 'serper', apiKey: KEY, apiBase: fake.url },
  })
  worlds.push(world)
  fake.suffers({ kind: 'slow', ms: 3_000 })
  const found = await world.read(searchResult, 'web_search', { query: 'x' })
  expect(found.results).toEqual([])
})

test('VB-10 a hit with an internal URL is listed, and refused by fetch_webpage', async () => {
  const url = 'http://127.0.0.1:9/internal'
  const { world } = await finding('serper', [{ title: 'T', url, text: '' }])
  const { results } = await world.read(searchResult, 'web_search', { query: 'x' })
  expect(results.map((hit) => hit.url)).toEqual([url])
  expect(await world.fails('fetch_webpage', { url })).toContain('address not allowed')
})

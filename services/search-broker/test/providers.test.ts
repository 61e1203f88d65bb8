import { fakeBrave, fakeDeepseekSearch, fakeExa, fakeMojeek, fakeSearxng, fakeTavily } from '@tollgate/testing'
import { describe, expect, test } from 'vitest'
import { providers } from '../src/providers/catalogue.ts'
import { CANARY_KEY, engineIds, kept, last, openEngine } from './engines.ts'
import { hitsOf, openWorld, times } from './world.ts'

const apiKey = CANARY_KEY
const urls = (n: number) => times(n, (index) => `https://site.test/${index}`)

describe.each(engineIds)('%s', (id) => {
  test('P-20 P-24 a search is labelled with provider and instance', async () => {
    const engine = await openEngine(id)
    engine.finds(urls(2))
    const { query } = await openWorld({ settings: { searchTools: { main: engine.tool } } })
    expect(await query({ instance: 'main' })).toMatchObject({ status: 'ok', label: `${id}:main` })
    expect(engine.fake.refusals).toEqual([])
  })

  test('SP-22 hits come as the provider ordered them, equal URLs included', async () => {
    const engine = await openEngine(id)
    const found = ['https://b.test/', 'https://a.test/', 'https://b.test/']
    engine.finds(found)
    const { query } = await openWorld({ settings: { searchTools: { main: engine.tool } } })
    const hits = hitsOf(await query({ enrich: false }))
    expect(hits.map(({ url }) => url)).toEqual(found)
    expect(hits[1]).toEqual({
      title: 'Title of https://a.test/',
      url: 'https://a.test/',
      text: 'about https://a.test/',
    })
  })

  test('S-33 S-34 asks for what the request wants, up to what the provider returns at most', async () => {
    const engine = await openEngine(id)
    engine.finds(urls(120))
    const { query } = await openWorld({ settings: { searchTools: { main: engine.tool } } })
    const most = providers.find((provider) => provider.id === id)?.maxResults ?? 1_000
    for (const wanted of [1, 5, 19, 20, 21, 40, 100, 101, 1_000]) {
      const hits = hitsOf(await query({ maxResults: wanted, enrich: false }))
      const expected = Math.min(wanted, most)
      expect(hits).toHaveLength(Math.min(expected, 120))
      if (id !== 'searxng') expect(engine.asked().count).toBe(expected)
    }
    expect(engine.fake.refusals).toEqual([])
  })

  test('S-33 asks for five hits when nobody says, and for web_search_max_results when that is set', async () => {
    const engine = await openEngine(id)
    engine.finds(urls(30))
    const plain = await openWorld({ settings: { searchTools: { main: engine.tool } } })
    expect(hitsOf(await plain.query({ enrich: false }))).toHaveLength(5)
    const set = await openWorld({ settings: { searchTools: { main: engine.tool }, webSearchMaxResults: 9 } })
    expect(hitsOf(await set.query({ enrich: false }))).toHaveLength(9)
    expect(hitsOf(await set.query({ enrich: false, maxResults: 3 }))).toHaveLength(3)
  })

  test.each([
    'plain words',
    '  padded  ',
    'q=evil&format=csv&engines=x#?',
    'line\nbreak "quotes" {json}',
    'ünïcode 漢字 😀',
    `%00%0d%0a ../../ \\`,
  ])('sends the query %j as it is, and only the query', async (text) => {
    const engine = await openEngine(id)
    engine.finds(urls(1))
    const { query } = await openWorld({ settings: { searchTools: { main: engine.tool } } })
    hitsOf(await query({ query: text, enrich: false }))
    expect(engine.asked().query).toBe(text.trim())
    expect(engine.fake.requests).toHaveLength(1)
  })

  test('a blank query is refused without asking anybody', async () => {
    const engine = await openEngine(id)
    const { query } = await openWorld({ settings: { searchTools: { main: engine.tool } } })
    await expect(query({ query: ' \n ' })).rejects.toMatchObject({ failure: 'invalid_request' })
    expect(engine.fake.requests).toEqual([])
  })

  test('finding nothing is a success', async () => {
    const engine = await openEngine(id)
    engine.finds([])
    const { query } = await openWorld({ settings: { searchTools: { main: engine.tool } } })
    expect(hitsOf(await query({}))).toEqual([])
  })

  test('keeps the path of a base that has one, with and without a slash at its end', async () => {
    const engine = await openEngine(id)
    const base = `${engine.tool.apiBase}/proxy/vendor`
    const settings = {
      searchTools: { a: { ...engine.tool, apiBase: base }, b: { ...engine.tool, apiBase: `${base}/` } },
    }
    const { query } = await openWorld({ settings })
    await query({ instance: 'a' })
    await query({ instance: 'b' })
    expect(new Set(engine.fake.requests.map(({ path }) => path)).size).toBe(1)
    expect(last(engine.fake).path).toMatch(/^\/proxy\/vendor\/((res\/v1\/web|v1\/tools)\/)?search$/)
  })
})

describe('searxng', () => {
  test('SP-16 asks GET /search with q and format, and nothing else unless told', async () => {
    const fake = await kept(fakeSearxng())
    const { query } = await openWorld({
      settings: { searchTools: { main: { provider: 'searxng', apiBase: fake.url } } },
    })
    await query({ query: 'x' })
    expect(last(fake)).toMatchObject({ method: 'GET', path: '/search', query: { q: 'x', format: 'json' } })
    expect(Object.keys(last(fake).query)).toHaveLength(2)
    expect(last(fake).headers).not.toHaveProperty('authorization')
  })

  test('SP-16 D-08 inherits web_search_url without an api_base of its own', async () => {
    const fake = await kept(fakeSearxng())
    const { query } = await openWorld({ settings: { searchTools: { searxng: {} }, legacy: { url: fake.url } } })
    expect(await query({ instance: 'searxng' })).toMatchObject({ status: 'ok', label: 'searxng:searxng' })
    expect(last(fake).query).not.toHaveProperty('engines')
  })

  test('SP-16 sends the engines of its instance', async () => {
    const fake = await kept(fakeSearxng())
    const tool = { provider: 'searxng', apiBase: fake.url, options: { engines: 'mojeek,qwant', time_range: 'week' } }
    const { query } = await openWorld({ settings: { searchTools: { main: tool } } })
    await query({})
    expect(last(fake).query).toMatchObject({ engines: 'mojeek,qwant', time_range: 'week' })
  })

  test('S-46 S-75 reads dates, and page text of services that send it', async () => {
    const fake = await kept(fakeSearxng())
    fake.finds([
      { url: 'https://a.test/', title: 'A', content: 'snippet', publishedDate: '2026-10-05T00:00:00' },
      { url: 'https://b.test/', title: 'B', content: 'snippet', publishedDate: null, extracted_content: 'whole page' },
    ])
    const { query, fetches } = await openWorld({
      settings: { searchTools: { main: { provider: 'searxng', apiBase: fake.url } } },
    })
    const hits = hitsOf(await query({}))
    expect(hits).toMatchObject([{ date: '2026-10-05T00:00:00Z' }, { text: 'whole page' }])
    expect(hits[1]).not.toHaveProperty('date')
    expect(fetches.calls.map(({ url }) => url)).toEqual(['https://a.test/'])
  })
})

describe('tavily', () => {
  test('SP-17 posts the search with a bearer key and asks for page text', async () => {
    const fake = await kept(fakeTavily({ apiKey }))
    const { query } = await openWorld({ settings: { searchTools: { tavily: { apiKey, apiBase: fake.url } } } })
    await query({
      query: 'x',
      maxResults: 7,
      options: { search_depth: 'advanced', topic: 'news', time_range: 'week', include_answer: true },
      policy: { allowedDomains: ['a.test'], blockedDomains: ['b.test'] },
    })
    expect(last(fake)).toMatchObject({
      method: 'POST',
      path: '/search',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    })
    expect(last(fake).body).toEqual({
      query: 'x',
      max_results: 7,
      search_depth: 'advanced',
      topic: 'news',
      time_range: 'week',
      include_answer: true,
      include_raw_content: true,
      include_domains: ['a.test'],
      exclude_domains: ['b.test'],
    })
  })

  test('SP-21 a hit with raw content is not fetched; one without is', async () => {
    const fake = await kept(fakeTavily({ apiKey }))
    fake.finds([
      {
        url: 'https://a.test/',
        title: 'A',
        content: 'short',
        raw_content: 'long',
        published_date: 'Mon, 05 Oct 2026 10:00:00 GMT',
      },
      { url: 'https://b.test/', title: 'B', content: 'short' },
    ])
    const { query, fetches } = await openWorld({ settings: { searchTools: { tavily: { apiKey, apiBase: fake.url } } } })
    expect(hitsOf(await query({}))).toMatchObject([
      { text: 'long', date: '2026-10-05T10:00:00Z' },
      { text: 'page of https://b.test/' },
    ])
    expect(fetches.calls.map(({ url }) => url)).toEqual(['https://b.test/'])
  })

  test('asks for no page text when none would be shown', async () => {
    const fake = await kept(fakeTavily({ apiKey }))
    const { query } = await openWorld({ settings: { searchTools: { tavily: { apiKey, apiBase: fake.url } } } })
    await query({ enrich: false })
    expect(last(fake).body).toMatchObject({ include_raw_content: false })
    await query({ options: { include_raw_content: false } })
    expect(last(fake).body).toMatchObject({ include_raw_content: false })
  })

  test('leaves domain lists that Tavily would refuse to our own judgement', async () => {
    const fake = await kept(fakeTavily({ apiKey }))
    fake.finds([
      { url: 'https://d3.test/', title: 'A', content: '' },
      { url: 'https://x.test/', title: 'B', content: '' },
    ])
    const { query } = await openWorld({ settings: { searchTools: { tavily: { apiKey, apiBase: fake.url } } } })
    const lists = (included: number, excluded: number) => ({
      allowedDomains: times(included, (index) => `d${index}.test`),
      blockedDomains: times(excluded, (index) => `e${index}.test`),
    })
    hitsOf(await query({ policy: lists(300, 150) }))
    expect(last(fake).body).toMatchObject({ include_domains: { length: 300 }, exclude_domains: { length: 150 } })
    expect(hitsOf(await query({ policy: lists(301, 151) }))).toHaveLength(1)
    expect(last(fake).body).not.toHaveProperty('include_domains')
    expect(last(fake).body).not.toHaveProperty('exclude_domains')
    expect(hitsOf(await query({ policy: { allowedDomains: [] } }))).toEqual([])
    expect(last(fake).body).not.toHaveProperty('include_domains')
  })
})

describe('brave', () => {
  test('SP-18 asks with the token in its header, for undecorated web results', async () => {
    const fake = await kept(fakeBrave({ apiKey }))
    const { query } = await openWorld({ settings: { searchTools: { brave: { apiKey, apiBase: fake.url } } } })
    await query({ query: 'x', maxResults: 20, options: { country: 'de' } })
    expect(last(fake)).toMatchObject({
      method: 'GET',
      path: '/res/v1/web/search',
      headers: { 'x-subscription-token': apiKey },
      query: { q: 'x', count: '20', country: 'DE', result_filter: 'web', text_decorations: 'false' },
    })
  })

  test.each([
    ['d', 'pd'],
    ['w', 'pw'],
    ['m', 'pm'],
    ['y', 'py'],
    ['day', 'pd'],
    ['week', 'pw'],
    ['month', 'pm'],
    ['year', 'py'],
    ['pd', 'pd'],
    ['PY', 'py'],
  ])('SP-18 D-15 freshness %s is %s', async (given, sent) => {
    const fake = await kept(fakeBrave({ apiKey }))
    const { query } = await openWorld({ settings: { searchTools: { brave: { apiKey, apiBase: fake.url } } } })
    hitsOf(await query({ options: { freshness: given } }))
    expect(last(fake).query.freshness).toBe(sent)
  })

  test('spells entities out, once, and leaves what is no entity alone', async () => {
    const fake = await kept(fakeBrave({ apiKey }))
    fake.finds([
      {
        url: 'https://a.test/',
        title: 'Python&#x27;s &quot;GIL&quot; &amp;amp; more',
        description: '<strong>fast</strong> &#128512; R&D &bogus; &#0; &#x110000; 1 &lt; 2',
        page_age: '2026-10-05T10:00:00',
        extra_snippets: ['second', 'third'],
      },
    ])
    const { query } = await openWorld({ settings: { searchTools: { brave: { apiKey, apiBase: fake.url } } } })
    expect(hitsOf(await query({ enrich: false, options: { extra_snippets: true } }))).toEqual([
      {
        url: 'https://a.test/',
        title: 'Python\'s "GIL" &amp; more',
        text: 'fast 😀 R&D &bogus; &#0; &#x110000; 1 < 2\nsecond\nthird',
        date: '2026-10-05T10:00:00Z',
      },
    ])
  })

  test('SP-03 a wrong token is 422 with a code, and an authentication failure', async () => {
    const fake = await kept(fakeBrave({ apiKey: 'another' }))
    const { query } = await openWorld({ settings: { searchTools: { brave: { apiKey, apiBase: fake.url } } } })
    expect(await query({})).toEqual({ status: 'failed', label: 'brave:brave', tag: 'authentication', httpStatus: 422 })
  })

  test('SP-03 a query Brave finds too long is 422 without that code, and an http_error', async () => {
    const fake = await kept(fakeBrave({ apiKey }))
    const { query } = await openWorld({ settings: { searchTools: { brave: { apiKey, apiBase: fake.url } } } })
    expect(await query({ query: 'x'.repeat(401) })).toMatchObject({ tag: 'http_error', httpStatus: 422 })
    expect(await query({ query: 'x'.repeat(400) })).toMatchObject({ status: 'ok' })
  })
})

describe('exa', () => {
  const searchTools = (base: string, options = {}) => ({ exa: { apiKey, apiBase: base, options } })

  test('SP-13 posts the search with its key and asks for little more text than is shown', async () => {
    const fake = await kept(fakeExa({ apiKey }))
    const { query } = await openWorld({ settings: { searchTools: searchTools(fake.url) } })
    await query({
      query: 'x',
      maxResults: 60,
      options: { type: 'neural', category: 'news', user_location: 'DE', start_published_date: '2026-01-01' },
      policy: { allowedDomains: ['a.test'], blockedDomains: ['b.test'] },
    })
    expect(last(fake)).toMatchObject({ method: 'POST', path: '/search', headers: { 'x-api-key': apiKey } })
    expect(last(fake).body).toEqual({
      query: 'x',
      numResults: 60,
      type: 'neural',
      category: 'news',
      userLocation: 'DE',
      startPublishedDate: '2026-01-01',
      includeDomains: ['a.test'],
      excludeDomains: ['b.test'],
      contents: { text: { maxCharacters: 2_000 } },
    })
  })

  test.each(['company', 'people'])(
    'leaves out the filters Exa refuses for category %s, and judges the hits',
    async (category) => {
      const fake = await kept(fakeExa({ apiKey }))
      fake.finds([
        { url: 'https://good.test/', title: 'A', text: 'x' },
        { url: 'https://bad.test/', title: 'B', text: 'x' },
      ])
      const { query } = await openWorld({ settings: { searchTools: searchTools(fake.url) } })
      const hits = hitsOf(await query({ options: { category }, policy: { blockedDomains: ['bad.test'] } }))
      expect(hits.map(({ url }) => url)).toEqual(['https://good.test/'])
      expect(fake.refusals).toEqual([])
    },
  )

  test('SP-13 SP-21 page text is in the answer, so nothing is fetched', async () => {
    const fake = await kept(fakeExa({ apiKey }))
    fake.finds([
      { url: 'https://a.test/', title: null, text: 'y'.repeat(5_000), publishedDate: '2023-11-16T01:36:32.547Z' },
      { url: 'https://b.test/', title: 'B', text: 'short' },
    ])
    const { query, fetches } = await openWorld({ settings: { searchTools: searchTools(fake.url) } })
    expect(hitsOf(await query({}))).toEqual([
      { title: 'https://a.test/', url: 'https://a.test/', text: `${'y'.repeat(1_499)}…`, date: '2023-11-16T01:36:32Z' },
      { title: 'B', url: 'https://b.test/', text: 'short' },
    ])
    expect(fetches.calls).toEqual([])
  })

  test.each([
    [0.007, '0.007'],
    [0, '0'],
    [0.0000005, '0.0000005'],
    [1e-9, '0.000000001'],
    [0.1 + 0.2, '0.30000000000000004'],
    [12, '12'],
  ])('SP-13 P-67 reports costDollars.total %d as %s', async (total, expected) => {
    const fake = await kept(fakeExa({ apiKey }))
    fake.costs(total)
    const { query } = await openWorld({ settings: { searchTools: searchTools(fake.url) } })
    expect(await query({})).toMatchObject({ status: 'ok', hits: [], reportedCost: expected })
  })

  test('SP-14 without costDollars the cost is unknown, which is not zero', async () => {
    const fake = await kept(fakeExa({ apiKey }))
    fake.costs(undefined)
    const { query } = await openWorld({ settings: { searchTools: searchTools(fake.url) } })
    expect(await query({})).not.toHaveProperty('reportedCost')
  })

  test.each(['-1', '1e300', '"0.005"', 'null', '{}'])(
    'SP-14 a cost of %s is no cost anybody could bill',
    async (total) => {
      const fake = await kept(fakeExa({ apiKey }))
      fake.suffers({ kind: 'body', body: `{"results":[],"costDollars":{"total":${total}}}` })
      const { query } = await openWorld({ settings: { searchTools: searchTools(fake.url) } })
      const reply = await query({})
      expect(reply).toMatchObject({ status: 'ok' })
      expect(reply).not.toHaveProperty('reportedCost')
    },
  )
})

describe('deepseek', () => {
  const open = async (options: Record<string, boolean | string> = {}) => {
    const fake = await kept(fakeDeepseekSearch({ apiKey }))
    const world = await openWorld({ settings: { searchTools: { deepseek: { apiKey, apiBase: fake.url, options } } } })
    return { fake, ...world }
  }

  test('SP-10 posts the search with the key of its models, and reads a snippet and a date', async () => {
    const { fake, query } = await open()
    fake.finds([
      {
        url: 'https://a.test/',
        title: 'A',
        snippet: 'short',
        summary: 'longer',
        content: 'whole',
        date: '2026-10-20T08:00:00Z',
      },
      { url: 'https://b.test/', title: 'B', summary: 'longer' },
    ])
    const reply = await query({ query: 'x', maxResults: 60, enrich: false })
    expect(hitsOf(reply)).toEqual([
      { title: 'A', url: 'https://a.test/', text: 'short', date: '2026-10-20T08:00:00Z' },
      { title: 'B', url: 'https://b.test/', text: 'longer' },
    ])
    expect(reply).not.toHaveProperty('reportedCost')
    expect(last(fake)).toMatchObject({
      method: 'POST',
      path: '/v1/tools/search',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    })
    expect(last(fake).body).toEqual({ query: 'x', count: 50, need_content: false })
  })

  test('SP-10 SP-21 with need_content page text comes with the hits, and only those without are fetched', async () => {
    const { fake, query, fetches } = await open({ need_content: true })
    fake.finds([
      { url: 'https://a.test/', title: 'A', snippet: 'short', content: 'whole page' },
      { url: 'https://b.test/', title: 'B', snippet: 'short' },
    ])
    expect(hitsOf(await query({}))).toMatchObject([{ text: 'whole page' }, { text: 'page of https://b.test/' }])
    expect(fetches.calls.map(({ url }) => url)).toEqual(['https://b.test/'])
    hitsOf(await query({ options: { need_content: false } }))
    expect(last(fake).body).toMatchObject({ need_content: false })
  })

  test.each([
    [{}, 128],
    [{ time_range: 'week' }, 111],
  ])('SP-10 a query under %j has at most %i characters, and a longer one is refused unasked', async (options, most) => {
    const { fake, query } = await open()
    for (const letter of ['x', '漢', '😀'])
      expect(await query({ query: letter.repeat(most), options })).toMatchObject({ status: 'ok' })
    const asked = fake.requests.length
    await expect(query({ query: 'x'.repeat(most + 1), options })).rejects.toMatchObject({
      failure: 'invalid_request',
      message: `The query is longer than the ${most} characters this search tool takes.`,
    })
    expect([fake.requests.length, fake.refusals]).toEqual([asked, []])
  })

  test('SP-10 a time range is a word of the query', async () => {
    const { fake, query } = await open()
    for (const [time_range, days] of [
      ['day', 1],
      ['WEEK', 7],
      ['month', 30],
      ['year', 365],
    ] as const) {
      hitsOf(await query({ query: 'x', options: { time_range } }))
      const [, since] =
        /^x after:(\d{4}-\d{2}-\d{2})$/.exec(String(Reflect.get(last(fake).body as object, 'query'))) ?? []
      const age = (Date.now() - Date.parse(String(since))) / 86_400_000
      expect(age).toBeGreaterThanOrEqual(days)
      expect(age).toBeLessThan(days + 1.1)
    }
  })
})

describe('mojeek', () => {
  const open = async (key = apiKey) => {
    const fake = await kept(fakeMojeek({ apiKey }))
    const world = await openWorld({ settings: { searchTools: { mojeek: { apiKey: key, apiBase: fake.url } } } })
    return { fake, ...world }
  }

  test('SP-15 asks with key and query in the URL, for JSON and at most ten hits', async () => {
    const { fake, query } = await open()
    fake.finds([{ url: 'https://a.test/', title: 'A', desc: 'about', pdate: 1_184_044_740 }])
    const reply = await query({
      query: 'a&b',
      maxResults: 15,
      enrich: false,
      options: { since: 'month', before: '20261001', safe: true },
    })
    expect(hitsOf(reply)).toEqual([{ title: 'A', url: 'https://a.test/', text: 'about', date: '2007-07-10T05:19:00Z' }])
    expect(reply).not.toHaveProperty('reportedCost')
    expect(last(fake)).toMatchObject({ method: 'GET', path: '/search', body: undefined })
    expect(last(fake).query).toEqual({
      api_key: apiKey,
      q: 'a&b',
      t: '10',
      fmt: 'json',
      since: 'month',
      before: '20261001',
      safe: '1',
    })
    hitsOf(await query({ query: 'x', options: { safe: false, since: 'yesterday' } }))
    expect(last(fake).query).toMatchObject({ safe: '0' })
    expect(last(fake).query).not.toHaveProperty('since')
  })

  test('SP-03 SP-15 a wrong key is a 200 that says so, and an authentication failure', async () => {
    const { query } = await open('another')
    expect(await query({})).toEqual({ status: 'failed', label: 'mojeek:mojeek', tag: 'authentication' })
  })

  test.each([
    ['ERROR: Daily Limit Reached', { tag: 'quota' }],
    ['ERROR: search failed', { tag: 'invalid_response', httpStatus: 200 }],
  ])('SP-03 a 200 that says %j is %j', async (status, told) => {
    const { fake, query } = await open()
    fake.suffers({ kind: 'body', body: JSON.stringify({ response: { status, results: [] } }) })
    expect(await query({})).toEqual({ status: 'failed', label: 'mojeek:mojeek', ...told })
  })

  test.each([0, -5, 1e300, '1184044740', null])('SP-20 a pdate of %j is no date', async (pdate) => {
    const { fake, query } = await open()
    const results = [{ url: 'https://a.test/', title: 'A', desc: 'about', pdate }]
    fake.suffers({ kind: 'body', body: JSON.stringify({ response: { status: 'OK', results } }) })
    expect(hitsOf(await query({ enrich: false }))).toEqual([{ title: 'A', url: 'https://a.test/', text: 'about' }])
  })
})

describe('odd hits', () => {
  test.each([
    [
      'a number for a title',
      { title: 7, url: 'https://a.test/', content: 'c' },
      { title: 'https://a.test/', text: 'c' },
    ],
    ['null members', { title: null, url: 'https://a.test/', content: null }, { title: 'https://a.test/', text: '' }],
    ['no members but a URL', { url: 'https://a.test/' }, { title: 'https://a.test/', text: '' }],
    ['a date that is an object', { title: 'A', url: 'https://a.test/', publishedDate: {} }, { title: 'A' }],
  ])('%s spoils neither the hit nor the search', async (_name, odd, shown) => {
    const fake = await kept(fakeSearxng())
    const good = { title: 'G', url: 'https://g.test/', content: 'g' }
    fake.suffers({ kind: 'body', body: JSON.stringify({ results: [odd, good] }) })
    const { query } = await openWorld({ settings: { searchTools: { searxng: { apiBase: fake.url } } } })
    expect(hitsOf(await query({ enrich: false }))).toMatchObject([shown, { title: 'G' }])
  })

  test.each([
    ['a text', '"hit"'],
    ['null', 'null'],
    ['a list', '[]'],
    ['no URL', '{"title":"x"}'],
    ['a URL that is an object', '{"url":{}}'],
  ])('%s in place of a hit is left out', async (_name, odd) => {
    const fake = await kept(fakeSearxng())
    fake.suffers({ kind: 'body', body: `{"results":[${odd},{"title":"G","url":"https://g.test/"}]}` })
    const { query } = await openWorld({ settings: { searchTools: { searxng: { apiBase: fake.url } } } })
    expect(hitsOf(await query({ enrich: false }))).toMatchObject([{ title: 'G' }])
  })
})

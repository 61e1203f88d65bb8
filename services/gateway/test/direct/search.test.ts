import { Fault } from '@tollgate/contracts'
import { describe, expect, test } from 'vitest'
import { type Direct, startDirect } from './serving.ts'

const exa = { name: 'exa-search', kind: 'search', provider: 'exa' } as const
const local = { name: 'local', kind: 'search', provider: 'searxng' } as const

async function startSearch(
  instances: Direct['brokers']['instances'] = [exa],
  settings: Parameters<typeof startDirect>[0] = {},
) {
  const served = await startDirect(settings)
  served.brokers.instances = [...instances]
  return served
}

const ask = ({ send, firstKey }: Direct, body: object = {}, { path = '/api/v1/search', key = firstKey } = {}) =>
  send<Record<string, unknown>>('POST', path, { key, body: { query: 'tides', ...body } })

describe('POST /api/v1/search', () => {
  test('D-01 D-04 D-14 answers hits by name or as the only tool, and settles one row', async () => {
    const served = await startSearch()
    served.brokers.search = async () => ({
      status: 'ok',
      label: 'exa:exa-search',
      hits: [
        { title: 'T', url: 'https://a.test/', text: 'Text', date: '2026-01-02' },
        { title: 'https://b.test/', url: 'https://b.test/', text: '' },
      ],
      reportedCost: '0.005',
    })
    for (const path of ['/api/v1/search', '/api/v1/search/exa-search', '/v1/search']) {
      expect(await ask(served, {}, { path })).toMatchObject({
        status: 200,
        body: {
          object: 'search',
          search_tool: 'exa-search',
          results: [
            { title: 'T', url: 'https://a.test/', snippet: 'Text', date: '2026-01-02' },
            { title: null, url: 'https://b.test/', snippet: null, date: null },
          ],
        },
      })
    }
    await expect.poll(() => served.brokers.settled).toHaveLength(3)
    expect(served.brokers.settled[1]).toMatchObject({
      endpoint: '/api/v1/search',
      model: 'exa-search',
      provider: 'exa',
      tokens: { input: 0, output: 0 },
      status: 'success',
      lines: [{ tool: 'web_search', label: 'exa:exa-search', outcome: 'ok', reportedCost: '0.005' }],
    })
    // P-60, P-65: the tool's own price, its old row, and otari's at last
    expect(served.brokers.asked.reserved[0]?.tools[0]?.keys).toEqual([
      { kind: 'search', key: 'exa-search' },
      { kind: 'model', key: 'exa:exa-search' },
      { kind: 'model', key: 'otari:web_search' },
    ])
  })

  test.each([
    [{ query: '' }],
    [{ query: ['a'] }],
    [{ max_results: 0 }],
    [{ search_domain_filter: Array.from({ length: 21 }, () => 'a.test') }],
    [{ country: 'DEU' }],
    [{ max_tokens_per_page: 0 }],
  ])('D-02 %o is 422', async (body) => {
    const served = await startSearch()
    expect(await ask(served, body)).toMatchObject({
      status: 422,
      body: { detail: [{ loc: ['body', Object.keys(body)[0]] }] },
    })
    expect(served.brokers.asked.search).toEqual([])
  })

  test('D-02 D-03 D-15 D-20 passes on what is asked for, and ignores what nobody knows', async () => {
    const served = await startSearch()
    const filter = ['Arxiv.org', '-medium.com']
    await ask(served, {
      max_results: 60,
      search_domain_filter: filter,
      country: 'de',
      provider_options: { category: 'news' },
      unknown: 1,
    })
    await ask(served)
    expect(served.brokers.asked.search[0]).toMatchObject({
      instance: 'exa-search',
      query: 'tides',
      maxResults: 60,
      policy: { allowedDomains: ['arxiv.org'], blockedDomains: ['medium.com'] },
      // the provider has no option for a country
      options: { category: 'news' },
    })
    expect(served.brokers.asked.search[1]?.maxResults).toBe(10)
  })

  test('D-19 an option the provider does not take is 400', async () => {
    const served = await startSearch()
    expect(await ask(served, { provider_options: { colour: 'red' } })).toMatchObject({
      status: 400,
      body: { detail: 'provider_options: "colour" is not an option of this provider' },
    })
  })

  test('D-21 max_tokens_per_page cuts at four characters a token', async () => {
    const served = await startSearch()
    const { body } = await ask(served, { max_tokens_per_page: 1 })
    expect(body).toMatchObject({ results: [{ snippet: 'Text' }, { snippet: 'Text' }] })
  })

  test('D-05 D-07 D-08 chooses the tool: named, default, only; else 400 that lists them', async () => {
    const served = await startSearch([exa, local])
    const several =
      "Several search tools are configured; name one in 'search_tool_name' or use POST /api/v1/search/{tool}. Available: exa-search, local."
    expect(await ask(served)).toMatchObject({ status: 400, body: { detail: several } })
    expect(await ask(served, { search_tool_name: 'x' })).toMatchObject({
      status: 400,
      body: { detail: "Unknown search tool 'x'. Available: exa-search, local." },
    })
    await ask(served, { search_tool_name: 'local' })
    await ask(served, { search_tool_name: 'local' }, { path: '/api/v1/search/exa-search' })
    served.settings.webSearchDefaultTool = 'local'
    await ask(served)
    expect(served.brokers.asked.search.map(({ instance }) => instance)).toEqual(['local', 'exa-search', 'local'])
    served.brokers.instances = []
    expect((await ask(served)).status).toBe(400)
  })

  test('D-09 a restricted key must name the tool', async () => {
    const served = await startSearch()
    const as = async (restrictions: object) =>
      (await ask(served, {}, { key: (await served.makeKey(restrictions)).key })).status
    expect(await as({ allowed_models: ['exa:*'] })).toBe(403)
    expect(await as({ allowed_models: ['exa:exa-search'] })).toBe(200)
    expect(await as({ allowed_models: ['openai:*'], allowed_tools: ['exa-search'] })).toBe(200)
    expect(await as({ allowed_tools: ['other'] })).toBe(403)
    const { key } = await served.makeKey({ allowed_models: ['openai:*'] })
    expect(await ask(served, {}, { key })).toMatchObject({
      body: { detail: "Model 'exa:exa-search' is not permitted for this API key." },
    })
  })

  test('W-40 W-41 D-10 is refused where workspaces have no web access', async () => {
    const served = await startSearch([exa], { webSearchWorkspaceDefault: false })
    expect(await ask(served)).toMatchObject({
      status: 403,
      body: { detail: 'web search is not enabled for this workspace' },
    })
  })

  test('D-11 a provider’s failure is one 502 without its words, recorded and not charged', async () => {
    const served = await startSearch()
    served.brokers.search = async () => ({ status: 'failed', label: 'exa:exa-search', tag: 'timeout' })
    expect(await ask(served)).toMatchObject({
      status: 502,
      body: { detail: 'The request could not be completed by the provider' },
    })
    await expect.poll(() => served.brokers.settled).toHaveLength(1)
    expect(served.brokers.settled[0]).toMatchObject({ status: 'error', lines: [{ outcome: 'error' }] })
  })

  test('P-62 a missing price is 402 that names the tool’s', async () => {
    const served = await startSearch()
    served.brokers.reserve = async () => {
      throw new Fault('pricing_required', 'another text')
    }
    const answer = await ask(served)
    expect(answer).toMatchObject({ status: 402, body: { code: 'pricing_required' } })
    expect(answer.body.detail).toContain(
      "Set a price of kind 'search' for model_key 'exa-search' (POST /api/v1/pricing)",
    )
    expect(served.brokers.asked.search).toEqual([])
  })

  test('D-16 counts against the rate limit', async () => {
    const served = await startSearch([exa], { rateLimitRpm: 1 })
    await ask(served)
    const refused = await ask(served)
    expect([refused.status, refused.headers.has('retry-after')]).toEqual([429, true])
    expect(served.brokers.asked.released).toHaveLength(1)
  })

  test('D-17 the master key needs a user', async () => {
    const served = await startSearch()
    const { masterKey: key } = served
    expect(await ask(served, {}, { key })).toMatchObject({
      status: 400,
      body: { detail: "When using master key, 'user' field is required in request body" },
    })
    await served.send('POST', '/api/v1/users', { key, body: { user_id: 'ada' } })
    expect((await ask(served, { user: 'ada' }, { key })).status).toBe(200)
    expect(served.brokers.asked.search.map(({ tenancy }) => tenancy.user)).toEqual(['ada'])
  })
})

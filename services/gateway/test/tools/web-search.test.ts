import { Fault, TOOL_RESULT_BYTES } from '@tollgate/contracts'
import { describe, expect, test } from 'vitest'
import { countWebCalls } from '../../src/loop/limits.ts'
import { defaultSettings, type GatewaySettings } from '../../src/settings.ts'
import type { Capabilities } from '../../src/tools/capabilities.ts'
import { spellNumbers } from '../../src/tools/declared-members.ts'
import { type CallContext, noOptions, type ToolOptions } from '../../src/tools/tool.ts'
import { webSearch } from '../../src/tools/web-search.ts'
import { type Brokers, exaInstance, hit, legacySearch, openBrokers, silent, tenancy } from '../brokers.ts'

const context = (): CallContext => ({ tenancy, signal: new AbortController().signal, deadline: Date.now() + 10_000 })

const capabilities: Capabilities = {
  search: exaInstance,
  fetch: true,
  sandbox: true,
  intercept: false,
  executor: 'auto',
}

async function openSearch(
  brokers: Brokers,
  options: Partial<ToolOptions> = {},
  changed: Partial<GatewaySettings> = {},
) {
  const settings = { ...defaultSettings, ...changed }
  const use = { bus: brokers.bus, log: silent, settings, capabilities, webCalls: countWebCalls(settings) }
  const tool = await webSearch.open({ ...noOptions, ...options }, use, context())
  return (query: unknown) => tool.run({ query: query as string }, context())
}

const read = (json: string) =>
  webSearch.read({ entry: JSON.parse(json), spelled: spellNumbers(json) as Record<string, string> }, capabilities)

describe('a declaration', () => {
  test.each(['max_uses', 'max_results', 'allowed_domains', 'blocked_domains', 'purpose_hint', 'provider_options'])(
    'T-22 takes the member %s, and none that it does not know',
    (member) => {
      const value = { max_uses: 1, max_results: 3, purpose_hint: 'news', provider_options: { category: 'news' } }[
        member
      ] ?? ['x.test']
      expect(() => read(JSON.stringify({ type: 'otari_web_search', [member]: value }))).not.toThrow()
      expect(() => read(JSON.stringify({ type: 'otari_web_search', [member]: value, foo: 1 }))).toThrow(
        'otari_web_search declarations contain an unsupported field',
      )
    },
  )

  test('S-15 of a provider keyword keeps what we know and ignores the rest', () => {
    const options = read(
      '{"type":"web_search_20250305","name":"web_search","max_uses":2,"blocked_domains":["x.test"],"user_location":{}}',
    )
    expect(options.maxUses).toBe(2)
    expect(options.domains.blockedDomains).toEqual(['x.test'])
  })

  test.each(['-1', '1.5', '5.0', '"3"', 'true', 'null', '1e1', '-0', '[1]'])(
    'S-19 refuses max_uses %s by its spelling',
    (spelling) => {
      for (const type of ['otari_web_search', 'web_search', 'web_search_20250305']) {
        expect(() => read(`{"type":"${type}","max_uses":${spelling}}`)).toThrow(
          'web_search max_uses must be a non-negative integer',
        )
      }
    },
  )

  test.each([
    ['0', 0],
    ['5', 5],
    ['10', 10],
  ])('S-19 takes max_uses %s', (spelling, value) => {
    expect(read(`{ "type": "otari_web_search", "max_uses" : ${spelling} }`).maxUses).toBe(value)
  })

  test('S-19 is not misled by numbers inside strings, nor slowed by long ones', () => {
    const long = 'x\\"5.0'.repeat(400_000)
    expect(spellNumbers(`{"a":"${long}","b":[5.0,-1e-7,0]}`)).toMatchObject({ b: ['5.0', '-1e-7', '0'] })
  })

  test.each([
    ['101 entries', Array.from({ length: 101 }, (_, n) => `h${n}.test`)],
    ['a scheme', ['https://x.y']],
    ['a wildcard', ['*.x.y']],
    ['a port', ['x.y:80']],
    ['a path', ['x.y/z']],
    ['an empty name', ['']],
    ['a name with a space', ['x y.test']],
    ['a label that begins with a hyphen', ['-x.test']],
    ['a number', [1]],
    ['no list', 'x.y'],
  ])('T-25 refuses a domain list with %s', (_what, list) => {
    for (const member of ['allowed_domains', 'blocked_domains']) {
      expect(() => read(JSON.stringify({ type: 'otari_web_search', [member]: list }))).toThrow(
        'Web search allowed_domains and blocked_domains must each contain at most 100 bare valid hostnames',
      )
    }
  })

  test('T-25 takes 100 names, a leading dot, capitals and other scripts', () => {
    const names = Array.from({ length: 97 }, (_, n) => `h${n}.test`)
    const { domains } = read(
      JSON.stringify({
        type: 'otari_web_search',
        allowed_domains: [...names, '.x.y', 'Docs.Example.', 'bücher.example'],
      }),
    )
    expect(domains.allowedDomains?.slice(-3)).toEqual(['x.y', 'docs.example', 'xn--bcher-kva.example'])
  })

  test.each([
    [{ unknown: 1 }, '"unknown" is not an option of this provider'],
    [{ category: 7 }, '"category" must be a text of 1 to 200 characters'],
    [[], 'must be an object'],
  ])('S-35 refuses the provider options %j before anything runs', (provider_options, why) => {
    expect(() => read(JSON.stringify({ type: 'otari_web_search', provider_options }))).toThrow(why)
  })

  test('T-30 takes a hint of 2048 characters and no more', () => {
    const hinted = (length: number) =>
      read(JSON.stringify({ type: 'otari_web_search', purpose_hint: 'h'.repeat(length) }))
    expect(hinted(2_048).hint).toHaveLength(2_048)
    expect(() => hinted(2_049)).toThrow('purpose_hint')
  })
})

describe('max_uses', () => {
  test('S-16 lets the gateway search once and refuses the second, S-20 in words the model can read', async () => {
    const brokers = await openBrokers()
    const search = await openSearch(brokers, { maxUses: 1 })
    expect((await search('one')).outcome.isError).toBe(false)
    const { outcome } = await search('two')
    expect(outcome.text).toBe('[tool error] max_uses_exceeded')
    expect(outcome.shown).toMatchObject({ query: 'two', failure: { tag: 'call_limit' } })
    expect(brokers.asked.search).toHaveLength(1)
  })

  test('S-17 does not count a search that failed', async () => {
    const brokers = await openBrokers()
    const works = brokers.search
    brokers.search = async () => ({ status: 'failed', label: 'exa:main', tag: 'timeout' })
    const search = await openSearch(brokers, { maxUses: 1 })
    expect((await search('one')).outcome.isError).toBe(true)
    brokers.search = works
    expect((await search('two')).outcome.isError).toBe(false)
    expect((await search('three')).outcome.text).toContain('max_uses_exceeded')
  })

  test('S-18 of 0 refuses every search, and L-24 none of them uses up the shared limit', async () => {
    const brokers = await openBrokers()
    const search = await openSearch(brokers, { maxUses: 0 })
    for (let n = 0; n < 15; n += 1) {
      expect((await search(`q${n}`)).outcome.text).toBe('[tool error] max_uses_exceeded')
    }
    expect(brokers.asked.search).toHaveLength(0)
  })
})

describe('what the model reads', () => {
  test('S-45 numbers results over all searches of the request', async () => {
    const brokers = await openBrokers()
    brokers.search = async () => ({ status: 'ok', label: 'exa:main', hits: [1, 2, 3, 4, 5].map(hit) })
    const search = await openSearch(brokers)
    expect((await search('a')).outcome.text).toMatch(/^\[1\] Title 1\nhttps:\/\/site\.test\/1\nText 1\n\n\[2\] /)
    const second = (await search('b')).outcome.text
    expect(second).toMatch(/^\[6\] Title 1\n/)
    expect(second).toContain('\n\n[10] Title 5\n')
  })

  test('S-46 shows a date in parentheses, and none where there is none', async () => {
    const brokers = await openBrokers()
    brokers.search = async () => ({
      status: 'ok',
      label: 'exa:main',
      hits: [
        { ...hit(1), date: '2026-10-05T10:00:00Z' },
        { ...hit(2), title: '' },
        { ...hit(3), title: 'a\n[9] b' },
      ],
    })
    const { text, shown } = (await (await openSearch(brokers))('q')).outcome
    expect(text.split('\n\n').map((entry) => entry.split('\n')[0])).toEqual([
      '[1] Title 1 (2026-10-05T10:00:00Z)',
      '[2] https://site.test/2',
      '[3] a [9] b',
    ])
    expect(shown).toMatchObject({ sources: [{ date: '2026-10-05T10:00:00Z' }, { url: 'https://site.test/2' }, {}] })
  })

  test('S-47 keeps 40 results of four-byte characters within 50 KiB, whole, and says that it did', async () => {
    const brokers = await openBrokers()
    const hits = Array.from({ length: 40 }, (_, n) => ({ ...hit(n), text: '😀'.repeat(1_500) }))
    brokers.search = async () => ({ status: 'ok', label: 'exa:main', hits })
    const search = await openSearch(brokers)
    const { text, shown } = (await search('q')).outcome
    const bytes = Buffer.from(text)
    expect(bytes.length).toBeLessThanOrEqual(TOOL_RESULT_BYTES)
    expect(new TextDecoder('utf-8', { fatal: true }).decode(bytes)).toBe(text)
    expect(text).toMatch(/\[Further results were left out: the 50 KiB limit of a tool result is reached\.\]$/)
    expect(shown).toMatchObject({ sources: { length: 8 } })
    expect((await search('r')).outcome.text).toMatch(/^\[9\] /)
  })

  test('S-47 cuts a single result that is larger than everything', async () => {
    const brokers = await openBrokers()
    brokers.search = async () => ({
      status: 'ok',
      label: 'exa:main',
      hits: [{ ...hit(1), title: '😀'.repeat(20_000) }],
    })
    const { text } = (await (await openSearch(brokers))('q')).outcome
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(TOOL_RESULT_BYTES)
    expect(text.isWellFormed()).toBe(true)
    expect(text).toMatch(/reached\.\]$/)
  })

  test('S-48 tells of no hits as of a success', async () => {
    const brokers = await openBrokers()
    brokers.search = async () => ({ status: 'ok', label: 'exa:main', hits: [] })
    const { outcome } = await (await openSearch(brokers))('zxqv')
    expect(outcome).toMatchObject({ text: "No results for query: 'zxqv'", isError: false, shown: { sources: [] } })
  })

  test('SP-10 a query that the search tool refuses is told to the model in our words, and the next one is asked', async () => {
    const why = 'The query is longer than the 128 characters this search tool takes.'
    const brokers = await openBrokers()
    const run = await openSearch(brokers)
    brokers.search = async ({ query }) => {
      if (query !== 'short') throw new Fault('invalid_request', why)
      return { status: 'ok', label: 'exa:main', hits: [] }
    }
    const { outcome, label } = await run('x'.repeat(129))
    expect([outcome.text, outcome.isError, label]).toEqual([`[tool error] ${why}`, true, 'exa:main'])
    expect(outcome.shown).toMatchObject({ failure: { tag: 'invalid_query' } })
    expect((await run('short')).outcome.isError).toBe(false)
  })

  test.each(['', '   ', undefined, 7, ['q']])('S-48 answers the empty query %j without a search', async (query) => {
    const brokers = await openBrokers()
    const { outcome } = await (await openSearch(brokers))(query)
    expect(outcome).toMatchObject({ text: '[tool error] empty query', isError: true })
    expect(brokers.asked.search).toHaveLength(0)
  })

  test('S-49 numbers what it was given without gaps', async () => {
    const brokers = await openBrokers()
    brokers.search = async () => ({ status: 'ok', label: 'exa:main', hits: [hit(1), hit(3)] })
    const { text } = (await (await openSearch(brokers))('q')).outcome
    expect(text.match(/^\[\d+\]/gm)).toEqual(['[1]', '[2]'])
  })

  test.each([
    [{ tag: 'timeout' }, 'search failed (timeout)'],
    [{ tag: 'rate_limited', httpStatus: 429 }, 'search failed (rate_limited, HTTP 429)'],
    [{ tag: 'http_error', httpStatus: 500 }, 'search failed (http_error, HTTP 500)'],
  ] as const)('S-37 reads of a failure %j its tag and status, no more', async (failure, text) => {
    const brokers = await openBrokers()
    brokers.search = async () => ({ status: 'failed', label: 'exa:main', ...failure })
    const result = await (await openSearch(brokers))('q')
    expect(result.outcome).toMatchObject({
      text: `[tool error] ${text}`,
      isError: true,
      shown: { failure, sources: [] },
    })
    expect(result.label).toBe('exa:main')
  })
})

describe('what is asked', () => {
  test('S-33 the count the declaration names, else the setting, else the deployment decides', async () => {
    const brokers = await openBrokers()
    await (await openSearch(brokers, { maxResults: 40 }, { webSearchMaxResults: 7 }))('q')
    await (await openSearch(brokers, {}, { webSearchMaxResults: 7 }))('q')
    await (await openSearch(brokers))('q')
    expect(brokers.asked.search.map(({ maxResults }) => maxResults)).toEqual([40, 7, undefined])
    expect(brokers.asked.search[0]).toMatchObject({ instance: 'main', tenancy, query: 'q' })
  })

  test('P-06 the rows of its instance price a search, P-07 the otari row any other', async () => {
    const brokers = await openBrokers()
    const own = await (await openSearch(brokers))('q')
    brokers.search = async () => ({ status: 'ok', label: 'org:exa', hits: [], reportedCost: '0.005' })
    const others = await (await openSearch(brokers))('q')
    expect(own.priceKeys).toEqual([
      { kind: 'search', key: 'main' },
      { kind: 'model', key: 'exa:main' },
      { kind: 'model', key: 'otari:web_search' },
    ])
    expect(others).toMatchObject({ label: 'org:exa', priceKeys: [{ key: 'otari:web_search' }], reportedCost: '0.005' })
    const legacy = { search: legacySearch, fetch: false, sandbox: false, intercept: false, executor: 'auto' } as const
    expect(webSearch.priceKeys(legacy)).toEqual([{ kind: 'model', key: 'otari:web_search' }])
  })

  test('stops the search when the request ends, and tells the model nothing', async () => {
    const brokers = await openBrokers()
    let stopped = false
    brokers.search = (_input, signal) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => {
          stopped = true
          reject(signal.reason)
        }),
      )
    const gone = new AbortController()
    const settings = defaultSettings
    const capabilities = {
      search: exaInstance,
      fetch: true,
      sandbox: true,
      intercept: false,
      executor: 'auto',
    } as const
    const use = { bus: brokers.bus, log: silent, settings, capabilities, webCalls: countWebCalls(settings) }
    const tool = await webSearch.open(noOptions, use, context())
    const running = tool.run({ query: 'q' }, { ...context(), signal: gone.signal })
    await expect.poll(() => brokers.asked.search.length).toBe(1)
    gone.abort()
    await expect(running).rejects.toMatchObject({ failure: 'cancelled' })
    await expect.poll(() => stopped).toBe(true)
  })
})

import { memoryBus } from '@tollgate/bus'
import { fakeSearxng } from '@tollgate/testing'
import { describe, expect, test } from 'vitest'
import { type SearchSettings, startSearchBroker } from '../src/index.ts'
import { CANARY_KEY, kept, openEngine } from './engines.ts'
import { openWorld, recordingLog } from './world.ts'

const good = { provider: 'exa', apiKey: 'k' }

async function start(settings: Partial<SearchSettings>): Promise<{ error: string | undefined; warnings: string[] }> {
  const { log, lines } = recordingLog()
  const bus = memoryBus({ log })
  try {
    const broker = await startSearchBroker({ bus, log, settings: { searchTools: {}, legacy: {}, ...settings } })
    await broker.close(Date.now())
    return { error: undefined, warnings: lines }
  } catch (error) {
    return { error: (error as Error).message, warnings: lines }
  } finally {
    await bus.drain(Date.now())
  }
}

describe('CFG-56 at the start', () => {
  test.each<[string, Record<string, unknown>, string]>([
    [
      'an unknown provider',
      { x: { provider: 'gogle', apiKey: 'k' } },
      'search_tools.x: unknown provider gogle; there is brave, deepseek, exa, mojeek, searxng, tavily',
    ],
    ['no provider, and a name that is none', { mine: { apiKey: 'k' } }, 'search_tools.mine: unknown provider mine'],
    ['a prototype member for a provider', { x: { provider: 'constructor' } }, 'unknown provider constructor'],
    ['no key where one is needed', { x: { provider: 'exa' } }, 'search_tools.x: exa needs an api_key'],
    ['an empty key', { x: { provider: 'brave', apiKey: '' } }, 'search_tools.x: brave needs an api_key'],
    [
      'http with a key',
      { x: { ...good, apiBase: 'http://exa.example.com' } },
      'api_base must be https when there is an api_key',
    ],
    ['http with a key to a private address', { x: { ...good, apiBase: 'http://10.0.0.1' } }, 'api_base must be https'],
    [
      'http with a key to a name like loopback',
      { x: { ...good, apiBase: 'http://127.0.0.1.example.com' } },
      'must be https',
    ],
    ['a base that is no URL', { x: { ...good, apiBase: 'exa' } }, 'search_tools.x: api_base must be a URL'],
    ['another scheme', { x: { ...good, apiBase: 'ftp://exa.example.com' } }, 'api_base must be an http or https URL'],
    [
      'a password in the base',
      { x: { ...good, apiBase: 'https://u:hunter2@exa.example.com' } },
      'api_base must have no user',
    ],
    [
      'a query in the base',
      { x: { ...good, apiBase: 'https://exa.example.com/?a=1' } },
      'api_base must have no user, query',
    ],
    ['a timeout of zero', { x: { ...good, timeoutMs: 0 } }, 'search_tools.x: timeout must be more than 0'],
    ['a negative timeout', { x: { ...good, timeoutMs: -1 } }, 'search_tools.x: timeout must be more than 0'],
    [
      'no number for a timeout',
      { x: { ...good, timeoutMs: Number.NaN } },
      'search_tools.x: timeout must be more than 0',
    ],
    ['options that are a list', { x: { ...good, options: ['type'] } }, 'search_tools.x: options must be a mapping'],
    ['options that are null', { x: { ...good, options: null } }, 'search_tools.x: options must be a mapping'],
    ['an empty fetch tool', { x: { ...good, fetchTool: ' ' } }, 'search_tools.x: fetch_tool must not be empty'],
    ['SP-06 an empty name', { '': good }, 'a name must not be empty or contain / or :'],
    ['SP-06 a slash in a name', { 'a/b': good }, 'a name must not be empty or contain / or :'],
    ['SP-06 a colon in a name', { 'a:b': good }, 'a name must not be empty or contain / or :'],
    ['SP-06 a reserved name', { None: good }, 'None is a reserved name'],
    ['SP-06 the built-in fetcher’s name', { BUILTIN_FETCH: good }, 'BUILTIN_FETCH is a reserved name'],
  ])('%s stops it', async (_name, searchTools, expected) => {
    const { error } = await start({ searchTools } as Partial<SearchSettings>)
    expect(error).toContain(expected)
    expect(error).not.toContain('hunter2')
  })

  test('every problem of every entry is told at once', async () => {
    const { error } = await start({
      searchTools: { a: { provider: 'exa', timeoutMs: 0 }, b: { provider: 'nope' }, c: good },
    })
    expect(error?.split('\n')).toEqual([
      'search_tools.a: exa needs an api_key',
      'search_tools.a: timeout must be more than 0',
      expect.stringContaining('search_tools.b: unknown provider nope'),
    ])
  })

  test.each<[string, Record<string, unknown>]>([
    ['https with a key', { x: { ...good, apiBase: 'https://exa.example.com' } }],
    ['http without a key', { x: { provider: 'searxng', apiBase: 'http://searxng:8080' } }],
    ['http with a key on loopback, where it leaves no machine', { x: { ...good, apiBase: 'http://127.0.0.1:9' } }],
    ['an entry named like its provider', { exa: { apiKey: 'k' } }],
    ['a name with dots and spaces', { 'my search.v2': good }],
    ['nothing at all', {}],
  ])('%s starts without a warning', async (_name, searchTools) => {
    expect(await start({ searchTools } as Partial<SearchSettings>)).toEqual({ error: undefined, warnings: [] })
  })

  test('unknown or unusable options are left out with a warning, the rest is used', async () => {
    const engine = await openEngine('exa')
    const tool = { ...engine.tool, options: { category: 'news', bogus: CANARY_KEY, type: 'wrong' } }
    const { query, log } = await openWorld({ settings: { searchTools: { exa: tool } } })
    await query({})
    expect(engine.fake.requests[0]?.body).toMatchObject({ category: 'news', type: 'auto' })
    expect(log).toEqual([
      expect.stringContaining('"option":"bogus"'),
      expect.stringMatching(/"option":"type".*must be one of auto, neural/),
    ])
    expect(log.join()).not.toContain(CANARY_KEY)
  })

  test('a fetch tool that names no instance is warned about, the built-in one and a known one are not', async () => {
    const fetchTools = { pages: { provider: 'tabstack', apiKey: 'k' } }
    const warned = async (fetchTool: string) =>
      (await start({ searchTools: { x: { ...good, fetchTool } }, fetchTools })).warnings
    expect(await warned('tabstack')).toHaveLength(1)
    expect(await warned('x')).toHaveLength(1)
    expect(await warned('builtin_fetch')).toEqual([])
    expect(await warned('pages')).toEqual([])
  })

  test('D-08 a SearXNG nobody gave an address starts with a warning, and is refused when it is asked', async () => {
    const { query, describe, log } = await openWorld({ settings: { searchTools: { searxng: {} } } })
    expect(log).toEqual([expect.stringContaining('no web_search_url to inherit')])
    expect(await describe()).toMatchObject({ instances: [{ name: 'searxng' }], inLoop: null })
    await expect(query({ instance: 'searxng' })).rejects.toMatchObject({
      failure: 'invalid_request',
      message: "Search tool 'searxng' has no api_base and no web_search_url to inherit.",
    })
  })
})

describe('FP-01 CFG-25 CFG-56 fetch instances at the start', () => {
  const tool = { provider: 'tabstack', apiKey: 'k' }

  test.each<[string, Record<string, unknown>, string]>([
    [
      'an unknown provider',
      { x: { provider: 'jina', apiKey: 'k' } },
      'fetch_tools.x: unknown provider jina; there is deepseek, exa, tabstack',
    ],
    ['a provider of searches', { x: { provider: 'brave', apiKey: 'k' } }, 'fetch_tools.x: unknown provider brave'],
    ['no provider, and a name that is none', { mine: { apiKey: 'k' } }, 'fetch_tools.mine: unknown provider mine'],
    ['FP-03 no key for DeepSeek', { deepseek: {} }, 'fetch_tools.deepseek: deepseek needs an api_key'],
    ['no key for Exa', { x: { provider: 'exa' } }, 'fetch_tools.x: exa needs an api_key'],
    ['FP-06 an empty key for Tabstack', { x: { provider: 'tabstack', apiKey: '' } }, 'x: tabstack needs an api_key'],
    ['http with a key', { x: { ...tool, apiBase: 'http://a.example.com' } }, 'fetch_tools.x: api_base must be https'],
    ['a timeout of zero', { x: { ...tool, timeoutMs: 0 } }, 'fetch_tools.x: timeout must be more than 0'],
    ['options that are a list', { x: { ...tool, options: [] } }, 'fetch_tools.x: options must be a mapping'],
    [
      'the built-in fetcher declared',
      { builtin_fetch: tool },
      'fetch_tools.builtin_fetch: builtin_fetch is a reserved',
    ],
    ['the built-in fetcher in any case', { Builtin_Fetch: tool }, 'Builtin_Fetch is a reserved name'],
    ['SP-06 a colon in a name', { 'a:b': tool }, 'a name must not be empty or contain / or :'],
    ['SP-06 a name that a search has', { main: tool }, 'fetch_tools.main: search_tools has an entry of this name'],
  ])('%s stops it', async (_name, fetchTools, expected) => {
    const { error } = await start({ searchTools: { main: good }, fetchTools } as Partial<SearchSettings>)
    expect(error).toContain(expected)
  })

  test('every problem of both maps is told at once', async () => {
    const { error } = await start({
      searchTools: { a: { provider: 'exa' } },
      fetchTools: { b: { provider: 'exa', timeoutMs: -1 }, a: tool },
    })
    expect(error?.split('\n')).toEqual([
      'search_tools.a: exa needs an api_key',
      'fetch_tools.b: exa needs an api_key',
      'fetch_tools.b: timeout must be more than 0',
      'fetch_tools.a: search_tools has an entry of this name as well',
    ])
  })

  test('CFG-23 an unknown default is worth a warning and counts as unset; a known and the built-in one are not', async () => {
    const fetchTools = { pages: tool }
    expect((await start({ fetchTools, webFetchDefaultTool: 'ghost' })).warnings).toEqual([
      expect.stringContaining('"web_fetch_default_tool":"ghost"'),
    ])
    expect((await start({ fetchTools, webFetchDefaultTool: 'pages' })).warnings).toEqual([])
    expect((await start({ fetchTools, webFetchDefaultTool: 'builtin_fetch' })).warnings).toEqual([])
    expect((await start({ fetchTools })).warnings).toEqual([])
  })

  test('FP-06 a timeout of 70 seconds is taken', async () =>
    expect(await start({ fetchTools: { x: { ...tool, timeoutMs: 70_000 } } })).toEqual({
      error: undefined,
      warnings: [],
    }))
})

describe('S-30 what a model-initiated search runs on', () => {
  /** Two instances, both kinds of legacy settings: each a backend of its own. */
  async function backends() {
    const [a, b, tavily, url] = await Promise.all([
      openEngine('exa'),
      openEngine('brave'),
      openEngine('tavily'),
      kept(fakeSearxng()),
    ])
    const one = { a: a.tool }
    const two = { a: a.tool, b: b.tool }
    const pair = { provider: 'tavily', apiKey: CANARY_KEY, apiBase: tavily.tool.apiBase }
    const asked = () =>
      Object.entries({ a: a.fake, b: b.fake, tavily: tavily.fake, url }).flatMap(([name, { requests }]) =>
        requests.length > 0 ? [name] : [],
      )
    return { one, two, pair, url: { url: url.url }, asked }
  }

  test.each<[string, (b: Awaited<ReturnType<typeof backends>>) => Partial<SearchSettings>, string | undefined]>([
    [
      'the named default before everything',
      (b) => ({ searchTools: b.two, webSearchDefaultTool: 'b', legacy: { ...b.pair, ...b.url } }),
      'b',
    ],
    [
      'the legacy provider before the legacy URL',
      (b) => ({ searchTools: b.one, legacy: { ...b.pair, ...b.url } }),
      'tavily',
    ],
    ['the legacy URL before the only instance', (b) => ({ searchTools: b.one, legacy: b.url }), 'url'],
    [
      'S-71 the URL when the provider has no key',
      (b) => ({ searchTools: b.one, legacy: { provider: 'tavily', ...b.url } }),
      'url',
    ],
    ['S-71 the URL when the key has no provider', (b) => ({ legacy: { apiKey: CANARY_KEY, ...b.url } }), 'url'],
    ['the only instance', (b) => ({ searchTools: b.one }), 'a'],
    ['nothing of several instances', (b) => ({ searchTools: b.two }), undefined],
    [
      'S-32 an unknown default counts as unset: legacy',
      (b) => ({ searchTools: b.two, webSearchDefaultTool: 'ghost', legacy: b.url }),
      'url',
    ],
    [
      'S-32 an unknown default counts as unset: only instance',
      (b) => ({ searchTools: b.one, webSearchDefaultTool: 'ghost' }),
      'a',
    ],
    [
      'S-32 an unknown default counts as unset: none',
      (b) => ({ searchTools: b.two, webSearchDefaultTool: 'ghost' }),
      undefined,
    ],
    ['none turns it off', (b) => ({ searchTools: b.one, webSearchDefaultTool: 'none', legacy: b.url }), undefined],
    ['NONE does too', (b) => ({ searchTools: b.one, webSearchDefaultTool: 'NONE' }), undefined],
    ['nothing configured', () => ({}), undefined],
  ])('%s', async (_name, settings, expected) => {
    const world = await backends()
    const { query, describe } = await openWorld({ settings: settings(world) })
    const { inLoop } = await describe()
    if (expected === undefined) {
      expect(inLoop).toBeNull()
      await expect(query({})).rejects.toMatchObject({
        failure: 'not_found',
        message: 'This deployment has no web search.',
      })
    } else expect(await query({})).toMatchObject({ status: 'ok', label: inLoop?.label })
    expect(world.asked()).toEqual(expected === undefined ? [] : [expected])
  })

  test('S-32 an unknown default is worth a warning, none and a known one are not', async () => {
    const searchTools = { exa: good }
    expect((await start({ searchTools, webSearchDefaultTool: 'ghost' })).warnings).toEqual([
      expect.stringContaining('"web_search_default_tool":"ghost"'),
    ])
    expect((await start({ searchTools, webSearchDefaultTool: 'none' })).warnings).toEqual([])
    expect((await start({ searchTools, webSearchDefaultTool: 'exa' })).warnings).toEqual([])
  })

  test('a named instance is used whatever the default is, and an unknown one is told by name', async () => {
    const world = await backends()
    const { query } = await openWorld({ settings: { searchTools: world.two, webSearchDefaultTool: 'a' } })
    expect(await query({ instance: 'b' })).toMatchObject({ label: 'brave:b' })
    await expect(query({ instance: 'ghost' })).rejects.toMatchObject({
      failure: 'not_found',
      message: "Unknown search tool 'ghost'.",
    })
    await expect(query({ instance: 'toString' })).rejects.toMatchObject({ failure: 'not_found' })
  })
})

describe('search.describe', () => {
  test('names what there is, and what a model-initiated search runs on', async () => {
    const searchTools = { main: good, own: { provider: 'searxng', apiBase: 'http://searxng.internal:8080' } }
    const { describe } = await openWorld({ settings: { searchTools, webSearchDefaultTool: 'main' } })
    expect(await describe()).toMatchObject({
      instances: [
        { name: 'main', kind: 'search', provider: 'exa', maxResults: 100 },
        { name: 'own', kind: 'search', provider: 'searxng' },
      ],
      inLoop: { kind: 'instance', label: 'exa:main', instance: 'main', provider: 'exa' },
    })
  })

  test('F-19 F-41 SP-02 names fetch instances, what fetches for models, and what of a page each provider reports', async () => {
    const fetchTools = { pages: { provider: 'tabstack', apiKey: CANARY_KEY, apiBase: 'https://secret.example.com' } }
    const unset = await openWorld({ settings: { fetchTools } })
    expect((await unset.describe()).inLoopFetch).toBeNull()
    const { describe } = await openWorld({ settings: { fetchTools, webFetchDefaultTool: 'pages' } })
    const described = await describe()
    expect(described).toMatchObject({
      instances: [{ name: 'pages', kind: 'fetch', provider: 'tabstack' }],
      inLoop: null,
      inLoopFetch: { label: 'tabstack:pages', instance: 'pages', provider: 'tabstack' },
    })
    expect(described.fetchProviders.map(({ id, reportsFinalUrl }) => [id, reportsFinalUrl])).toEqual([
      ['deepseek', false],
      ['exa', false],
      ['tabstack', false],
    ])
    expect(JSON.stringify(described)).not.toMatch(/canary|secret/)
  })

  test('S-78 the legacy settings are no instance', async () => {
    const { describe } = await openWorld({ settings: { legacy: { url: 'http://searxng.internal:8080' } } })
    expect(await describe()).toMatchObject({
      instances: [],
      inLoop: { kind: 'legacy', label: 'otari:web_search', instance: null, provider: 'searxng' },
    })
  })

  test('SP-01 SP-02 lists the providers with what a caller may set', async () => {
    const { describe } = await openWorld()
    const { providers } = await describe()
    expect(providers.map(({ id, requiresApiKey, maxResults }) => [id, requiresApiKey, maxResults])).toEqual([
      ['brave', true, 20],
      ['deepseek', true, 50],
      ['exa', true, 100],
      ['mojeek', true, 10],
      ['searxng', false, undefined],
      ['tavily', true, 20],
    ])
    const options = Object.fromEntries(providers.map(({ id, options }) => [id, options.map(({ name }) => name)]))
    expect(options.exa).toEqual(expect.arrayContaining(['type', 'category']))
    expect(options.tavily).toEqual(expect.arrayContaining(['search_depth', 'topic', 'time_range', 'include_answer']))
    expect(options.searxng).not.toContain('engines')
  })

  test('holds no key, no configured address and no operator’s option', async () => {
    const searchTools = {
      main: { ...good, apiKey: CANARY_KEY, apiBase: 'https://secret-base.example.com' },
      own: { provider: 'searxng', apiBase: 'http://searxng.internal:8080', options: { engines: 'secret-engine' } },
    }
    const legacy = { provider: 'brave', apiKey: CANARY_KEY, url: 'http://legacy.internal' }
    const { describe } = await openWorld({ settings: { searchTools, legacy } })
    expect(JSON.stringify(await describe())).not.toMatch(/canary|secret|internal|"engines"|operatorOnly/i)
  })
})

import { EmptyResultSchema, ErrorCode, type Tool } from '@modelcontextprotocol/sdk/types.js'
import { fakeBrave } from '@tollgate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { failure, plainText, searchResult, webpage } from './strict.ts'
import { html, openWorld, paragraphs, SITE, serving, sharedWorld } from './world.ts'

const world = sharedWorld()

test('WM-01 the server has its name and exactly the four tools', async () => {
  expect(world().client.getServerVersion()?.name).toBe('web-search-tools')
  const names = (await world().tools()).map(({ name }) => name)
  expect(names.toSorted()).toEqual(['fetch_image', 'fetch_webpage', 'format_search_results', 'web_search'])
})

test('WM-02 three tools work without a search provider, and web_search names what is missing', async () => {
  const { read, fails, answering } = world()
  answering(serving('text/html', html(paragraphs(3), '<title>Harbours</title>')))
  expect(await read(webpage, 'fetch_webpage', { url: `${SITE}/a` })).toMatchObject({ title: 'Harbours', status: 200 })
  expect(await read(plainText, 'format_search_results', { results: [] })).toBe('References:')
  answering(serving('text/plain', 'no image'))
  expect(await fails('fetch_image', { url: `${SITE}/b` })).toContain('not an image: text/plain')
  expect(await fails('web_search', { query: 'x' })).toContain('DPTTOOLS_WEB_SEARCH_PROVIDER')
})

describe('WM-03 a value outside a closed set', () => {
  test.each([
    ['fetch_webpage', { url: `${SITE}/a`, format: 'md' }, 'format'],
    ['web_search', { query: 'x', search_type: 'image' }, 'search_type'],
    ['web_search', { query: 'x', search_depth: 'deep' }, 'search_depth'],
  ])('WM-03 of %s %o is an error, and nothing is asked', async (tool, given, argument) => {
    const { fails, answering, site, dns } = world()
    answering(serving('text/plain', 'x'))
    expect(await fails(tool, given)).toMatch(new RegExp(`^invalid arguments: ${argument}: `))
    expect([site.requests, dns.lookups]).toEqual([[], []])
  })

  test.each([
    ['web_search', { query: ' \t ' }, 'query'],
    ['web_search', {}, 'query'],
    ['web_search', { query: 'x', num_results: 0 }, 'num_results'],
    ['web_search', { query: 'x', num_results: 2.5 }, 'num_results'],
    ['fetch_webpage', { url: SITE, max_length: 0 }, 'max_length'],
    ['fetch_webpage', { url: SITE, offset: -1 }, 'offset'],
    ['fetch_webpage', { url: SITE, include_assets: 'yes' }, 'include_assets'],
    ['fetch_webpage', { url: 7 }, 'url'],
    ['fetch_image', {}, 'url'],
    ['format_search_results', { results: 7 }, 'results'],
  ])('WM-04 of %s %o is an error', async (tool, given, argument) => {
    expect(await world().fails(tool, given)).toContain(`${argument}: `)
  })
})

test('WM-04 inputSchema carries names, types, defaults, enums and what is required', async () => {
  const shown = (await world().tools()).map(({ name, inputSchema: { type, properties = {}, required } }) => ({
    name,
    type,
    required,
    properties: Object.fromEntries(
      Object.entries(properties as Record<string, Record<string, unknown>>).map(
        ([property, { description: _shown, anyOf: _forms, ...rules }]) => [property, rules],
      ),
    ),
  }))
  expect(shown).toEqual([
    {
      name: 'web_search',
      type: 'object',
      required: ['query'],
      properties: {
        query: { type: 'string', pattern: '\\S', maxLength: 4096 },
        num_results: { type: 'integer', default: 5, minimum: 1 },
        search_type: { type: 'string', default: 'general', enum: ['general', 'news'] },
        search_depth: { type: 'string', default: 'basic', enum: ['basic', 'advanced', 'fast', 'ultra-fast'] },
      },
    },
    {
      name: 'fetch_webpage',
      type: 'object',
      required: ['url'],
      properties: {
        url: { type: 'string' },
        format: { type: 'string', default: 'text', enum: ['text', 'markdown', 'html'] },
        max_length: { type: 'integer', default: 10000, minimum: 1 },
        offset: { type: 'integer', default: 0, minimum: 0 },
        include_assets: { type: 'boolean', default: false },
        structured: { type: 'boolean', default: true },
        extract_text: { type: 'boolean', default: true },
      },
    },
    { name: 'fetch_image', type: 'object', required: ['url'], properties: { url: { type: 'string' } } },
    { name: 'format_search_results', type: 'object', required: ['results'], properties: { results: {} } },
  ])
})

test('WM-05 a blocked URL is a result, an unknown tool a protocol error', async () => {
  const blocked = await world().client.callTool({ name: 'fetch_webpage', arguments: { url: 'http://127.0.0.1/' } })
  expect(failure.parse(blocked).content[0].text).toContain('address not allowed')
  const unknown = world().client.callTool({ name: 'fetch_webpage_rendered', arguments: { url: SITE } })
  await expect(unknown).rejects.toMatchObject({ code: ErrorCode.InvalidParams })
})

test.each([
  ['no parameters', undefined],
  ['no name', {}],
  ['a name that is none', { name: 5 }],
  ['arguments that are no object', { name: 'fetch_webpage', arguments: [SITE] }],
])('WM-05 a call with %s is malformed, which is not the server’s fault', async (_what, params) => {
  const call = world().client.request({ method: 'tools/call', params }, EmptyResultSchema)
  await expect(call).rejects.toMatchObject({ code: ErrorCode.InvalidParams })
})

test('WM-06 a JSON result is one text that is one JSON document', async () => {
  world().answering(serving('application/json', '{"a": 1}'))
  const { content } = await world().client.callTool({ name: 'fetch_webpage', arguments: { url: SITE } })
  expect(content).toHaveLength(1)
  const [{ text }] = content as [{ text: string }]
  expect(JSON.stringify(JSON.parse(text))).toBe(text)
})

test('WM-07 the description speaks of fetch_webpage_rendered only where there is one', async () => {
  const { tools, connect } = world()
  const describing = (listed: Tool[]) => listed.find(({ name }) => name === 'fetch_webpage')?.description
  expect(describing(await tools())).not.toContain('fetch_webpage_rendered')
  const withBrowser = await (await connect({ rendererAvailable: true })).listTools()
  expect(describing(withBrowser.tools)).toMatch(/likely_js_rendered.*fetch_webpage_rendered/)
  expect(withBrowser.tools).toHaveLength(4)
})

test('WM-09 cancelling a call frees its worker', async () => {
  const { client, answering, busy } = world()
  answering((_request, response) => void response.writeHead(200, { 'content-type': 'text/plain' }).write('begun'))
  const leave = new AbortController()
  const call = client.callTool({ name: 'fetch_webpage', arguments: { url: `${SITE}/stalls` } }, undefined, {
    signal: leave.signal,
  })
  await expect.poll(() => busy()['tg.v1.fetch.page']).toBe(1)
  leave.abort()
  await expect(call).rejects.toThrow()
  await expect.poll(() => busy()['tg.v1.fetch.page']).toBe(0)
})

test('WM-08 neither the sandbox’s timeout nor the output limit of other tools cuts anything here', async () => {
  process.env.DPTTOOLS_SANDBOX_TIMEOUT = '1'
  process.env.DPTTOOLS_OUTPUT_TRUNCATION_LIMIT = '10'
  const brave = await fakeBrave({ apiKey: 'k' })
  brave.finds(
    Array.from({ length: 20 }, (_, n) => ({
      title: `T${n}`,
      url: `https://s.test/${n}`,
      description: 'd'.repeat(300),
    })),
  )
  const own = await openWorld({ search: { provider: 'brave', apiKey: 'k', apiBase: brave.url } })
  onTestFinished(async () => {
    delete process.env.DPTTOOLS_SANDBOX_TIMEOUT
    delete process.env.DPTTOOLS_OUTPUT_TRUNCATION_LIMIT
    await own.close()
    await brave.close()
  })
  own.answering((_request, response) => {
    response.writeHead(200, { 'content-type': 'text/plain' }).write('first, ')
    setTimeout(() => response.end('last'), 2_000)
  })
  const [page, found] = await Promise.all([
    own.read(webpage, 'fetch_webpage', { url: SITE }),
    own.read(searchResult, 'web_search', { query: 'x', num_results: 20 }),
  ])
  expect(page.text).toBe('first, last')
  expect(found.results).toHaveLength(20)
  expect(found.results.every(({ snippet }) => snippet.length === 300)).toBe(true)
})

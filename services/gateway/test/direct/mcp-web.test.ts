import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { Fault, fetchRendered } from '@tollgate/contracts'
import { describe, expect, test } from 'vitest'
import { defaultSettings } from '../../src/settings.ts'
import { never, startDirect } from './serving.ts'

const PAGE = 'https://site.test/page'
const call = (client: Client, name: string, given: Record<string, unknown>) =>
  client.callTool({ name, arguments: given }) as Promise<{
    content: { type: string; text: string }[]
    isError?: boolean
  }>
const rpc = (method: string, params: object, id: number | undefined = 1) => ({
  jsonrpc: '2.0',
  method,
  params,
  ...(id !== undefined && { id }),
})
const fetchCall = (id = 1) => rpc('tools/call', { name: 'fetch_webpage', arguments: { url: PAGE } }, id)
const streaming = { accept: 'application/json, text/event-stream' }

describe('the web MCP server over HTTP', () => {
  test.each(['/api/v1/mcp/web', '/v1/mcp/web', '/mcp/web'])('WM-01 is at %s', async (path) => {
    const client = await (await startDirect()).connect({ path })
    expect(client.getServerVersion()).toEqual({ name: 'web-search-tools', version: '0.0.0-test' })
    expect((await client.listTools()).tools).toHaveLength(4)
  })

  test('answers a page, an image and a search, each settled as a call of its kind', async () => {
    const { connect, brokers } = await startDirect()
    const client = await connect()
    const page = await call(client, 'fetch_webpage', { url: PAGE })
    expect(JSON.parse(page.content[0]?.text ?? '')).toMatchObject({ url: PAGE, text: 'Page text', total_chars: 9 })
    const image = await call(client, 'fetch_image', { url: PAGE })
    expect(image.content.map(({ type }) => type)).toEqual(['text', 'image'])
    const search = await call(client, 'web_search', { query: 'x' })
    expect(JSON.parse(search.content[0]?.text ?? '')).toMatchObject({ provider: 'serper', query: 'x' })
    await call(client, 'format_search_results', { results: [] })

    await expect.poll(() => brokers.settled).toHaveLength(3)
    const about = brokers.settled.map(({ endpoint, status, model, provider, priceKeys, tokens, lines }) => ({
      endpoint,
      status,
      served: `${provider}:${model}`,
      priceKeys,
      tokens: tokens.input + tokens.output,
      lines: lines.map(({ tool, label, outcome, priceKeys: keys }) => [tool, label, outcome, keys.at(-1)?.key]),
    }))
    const row = { endpoint: '/api/v1/mcp/web', status: 'success', priceKeys: [], tokens: 0 }
    const fetched = {
      ...row,
      served: 'builtin:builtin_fetch',
      lines: [['web_fetch', 'builtin:builtin_fetch', 'ok', 'otari:web_fetch']],
    }
    const searched = {
      ...row,
      served: 'otari:web_search',
      lines: [['web_search', 'otari:web_search', 'ok', 'otari:web_search']],
    }
    expect(about).toEqual([fetched, fetched, searched])
    expect(brokers.asked.reserved.map(({ modelKeys, tools }) => [modelKeys, tools.map(({ tool }) => tool)])).toEqual([
      [[], ['web_fetch']],
      [[], ['web_fetch']],
      [[], ['web_search']],
    ])
  })

  test('a failure is recorded as an error, and an argument of the wrong form as nothing', async () => {
    const { connect, brokers } = await startDirect()
    const client = await connect()
    expect((await call(client, 'fetch_webpage', { url: PAGE, format: 'md' })).isError).toBe(true)
    brokers.fetch = async () => ({
      status: 'failed',
      failure: 'network',
      stage: 'connect',
      label: 'builtin:builtin_fetch',
    })
    expect(await call(client, 'fetch_webpage', { url: PAGE })).toEqual({
      content: [{ type: 'text', text: 'fetch_webpage failed: could not connect' }],
      isError: true,
    })
    await expect.poll(() => brokers.settled).toHaveLength(1)
    expect(brokers.settled[0]).toMatchObject({ status: 'error', error: 'upstream', lines: [{ outcome: 'error' }] })
  })

  test('what billing refuses is the text of a failure, and nothing is fetched', async () => {
    const { connect, brokers } = await startDirect()
    brokers.reserve = async () => {
      throw new Fault('pricing_required', "The gateway tool 'web_fetch' has no pricing")
    }
    const result = await call(await connect(), 'fetch_webpage', { url: PAGE })
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('has no pricing') }] })
    expect(brokers.asked.fetch).toEqual([])
  })

  test('sends the rules of its surface with a page', async () => {
    const { connect, brokers, settings } = await startDirect()
    await call(await connect(), 'fetch_webpage', {
      url: PAGE,
      max_length: 3,
      offset: 2,
      include_assets: true,
      structured: false,
    })
    const { maxPageBytes, maxRedirects, operationTimeoutMs } = settings.mcpWeb.tools
    expect(brokers.asked.fetch[0]).toMatchObject({
      url: PAGE,
      reads: 'text',
      anyStatus: true,
      format: 'text',
      part: 'whole',
      assets: true,
      window: { offset: 2, maxChars: 3 },
      timeoutMs: 120_000,
      rules: {
        maxBodyBytes: maxPageBytes,
        maxRedirects,
        operationTimeoutMs,
        allowDowngrade: true,
        direct: true,
        allowedHosts: [],
      },
    })
  })
})

describe('who may call', () => {
  test('nobody without a key, a wrong one, or the master key; nobody who is blocked', async () => {
    const { send, masterKey, makeKey } = await startDirect()
    const ask = (key?: string) => send('POST', '/mcp/web', { ...(key && { key }), body: rpc('tools/list', {}) })
    expect((await ask()).status).toBe(401)
    expect((await ask('gw-nobody')).status).toBe(401)
    expect((await ask(masterKey)).status).toBe(403)
    await send('POST', '/api/v1/users', { key: masterKey, body: { user_id: 'ada', blocked: true } })
    const { key } = await makeKey({ user_id: 'ada' })
    expect((await ask(key)).status).toBe(403)
  })

  test('A-18 a user’s tool calls are counted, and only those', async () => {
    const { send, firstKey: key } = await startDirect({ rateLimitRpm: 2 })
    const ask = (body: object) => send('POST', '/mcp/web', { key, body })
    for (let n = 0; n < 5; n++) expect((await ask(rpc('tools/list', {}))).status).toBe(200)
    expect((await ask([fetchCall(1), fetchCall(2)])).status).toBe(200)
    const refused = await ask(fetchCall())
    expect(refused).toMatchObject({ status: 429, body: { detail: 'Rate limit exceeded' } })
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  })

  test.each([
    ['http://localhost:6274', 200],
    ['https://tools.example.com', 200],
    ['https://chat.example.com', 200],
    ['https://evil.test', 403],
    ['null', 403],
  ])('a browser at %s gets %d', async (origin, status) => {
    const mcpWeb = { ...defaultSettings.mcpWeb, allowedOrigins: ['https://chat.example.com'] }
    const { send, firstKey: key } = await startDirect({ publicBaseUrl: 'https://tools.example.com/gateway', mcpWeb })
    expect(await send('POST', '/mcp/web', { key, body: rpc('ping', {}), headers: { origin } })).toMatchObject({
      status,
    })
  })

  test('nobody where the operator switched it off', async () => {
    const { send, firstKey: key } = await startDirect({ mcpWeb: { ...defaultSettings.mcpWeb, enabled: false } })
    expect((await send('POST', '/mcp/web', { key, body: rpc('ping', {}) })).status).toBe(404)
  })

  test('W-40 nobody where workspaces have no web access', async () => {
    const { connect, brokers } = await startDirect({ webSearchWorkspaceDefault: false })
    const client = await connect()
    const said = async (name: string, given: Record<string, unknown>) =>
      (await call(client, name, given)).content[0]?.text
    expect(await said('fetch_webpage', { url: PAGE })).toContain('web access is not enabled for this workspace')
    expect(await said('web_search', { query: 'x' })).toContain('web search is not enabled for this workspace')
    expect([brokers.asked.fetch, brokers.asked.searchMcp]).toEqual([[], []])
  })
})

describe('the transport', () => {
  test('takes POST alone', async () => {
    const { send, firstKey: key } = await startDirect()
    for (const method of ['GET', 'DELETE']) {
      const answer = await send(method, '/mcp/web', { key })
      expect([answer.status, answer.headers.get('allow')]).toEqual([405, 'POST'])
    }
  })

  test('answers JSON to whoever does not stream, and keeps no session', async () => {
    const { send, firstKey: key } = await startDirect()
    const answer = await send<{ result: { tools: unknown[] } }>('POST', '/mcp/web', {
      key,
      body: rpc('tools/list', {}),
    })
    expect(answer.headers.get('content-type')).toMatch(/^application\/json/)
    expect(answer.body.result.tools).toHaveLength(4)
    const page = await send<{ result: { content: unknown[] } }>('POST', '/mcp/web', { key, body: fetchCall() })
    expect(page.body.result.content).toHaveLength(1)
  })

  test('BR-166 answers a call by an event stream that says at once that it lives', async () => {
    const { url, firstKey, brokers } = await startDirect({ streamingKeepaliveIntervalMs: 20 })
    let finish = () => {}
    const waiting = new Promise<void>((done) => {
      finish = done
    })
    const page = brokers.fetch
    brokers.fetch = async (...asked) => {
      await waiting
      return page(...asked)
    }
    const response = await fetch(`${url}/mcp/web`, {
      method: 'POST',
      headers: { authorization: `Bearer ${firstKey}`, 'content-type': 'application/json', ...streaming },
      body: JSON.stringify(fetchCall()),
    })
    expect(response.headers.get('content-type')).toBe('text/event-stream')
    expect(response.headers.get('x-accel-buffering')).toBe('no')
    expect(response.headers.get('content-encoding')).toBeNull()
    const reader = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    while (!text.includes(': keepalive')) text += (await reader.read()).value ?? ''
    finish()
    for (let step = await reader.read(); !step.done; step = await reader.read()) text += step.value
    const data = text.split('\n').flatMap((line) => (line.startsWith('data: ') ? [JSON.parse(line.slice(6))] : []))
    expect(data).toMatchObject([{ id: 1, result: { content: [{ type: 'text' }] } }])
  })

  test('WM-05 a body that is no JSON, or no message, is a protocol error', async () => {
    const { send, firstKey: key } = await startDirect()
    for (const body of ['{', { jsonrpc: '1.0' }, 7, { method: 'tools/call', id: 1 }]) {
      expect(await send('POST', '/mcp/web', { key, body })).toMatchObject({
        status: 400,
        body: { jsonrpc: '2.0', error: { code: -32700 }, id: null },
      })
    }
  })

  test('refuses more tool calls at once than it says', async () => {
    const { send, firstKey: key, brokers } = await startDirect()
    const body = Array.from({ length: 21 }, (_, n) => fetchCall(n))
    expect((await send('POST', '/mcp/web', { key, body })).status).toBe(400)
    expect(brokers.asked.fetch).toEqual([])
  })

  test('the usage row of a call has the id of its response', async () => {
    const { send, firstKey: key, brokers } = await startDirect()
    const { headers } = await send('POST', '/mcp/web', { key, body: fetchCall() })
    await expect
      .poll(() => brokers.settled.map(({ tenancy }) => tenancy.request))
      .toEqual([headers.get('x-request-id')])
  })
})

describe('WM-09 a call nobody waits for any more', () => {
  test('WM-09 that its client cancelled ends, frees its worker, and is not billed', async () => {
    const { connect, brokers } = await startDirect()
    let stopped = false
    brokers.fetch = (_input, signal) => never(signal).finally(() => (stopped = true))
    const client = await connect()
    const leave = new AbortController()
    const asked = client.callTool({ name: 'fetch_webpage', arguments: { url: PAGE } }, undefined, {
      signal: leave.signal,
    })
    await expect.poll(() => brokers.asked.fetch).toHaveLength(1)
    leave.abort()
    await expect(asked).rejects.toThrow()
    await expect.poll(() => stopped).toBe(true)
    await expect.poll(() => brokers.asked.released).toHaveLength(1)
    expect([brokers.settled, brokers.toolLines]).toEqual([[], []])
  })

  test('WM-09 that another client of the key has under the same id goes on', async () => {
    const { connect, brokers } = await startDirect()
    let ended = 0
    brokers.fetch = (_input, signal) => never(signal).finally(() => (ended += 1))
    const leave = new AbortController()
    for (const signal of [leave.signal, new AbortController().signal]) {
      const client = await connect()
      void client.callTool({ name: 'fetch_webpage', arguments: { url: PAGE } }, undefined, { signal }).catch(() => {})
    }
    await expect.poll(() => brokers.asked.fetch).toHaveLength(2)
    leave.abort()
    await expect.poll(() => brokers.asked.released).toHaveLength(1)
    expect(ended).toBe(1)
  })

  test.each([streaming, { accept: 'application/json' }])(
    'WM-09 whose client left, having asked for %o',
    async (headers) => {
      const { url, firstKey, brokers } = await startDirect()
      brokers.fetch = (_input, signal) => never(signal)
      const leave = new AbortController()
      const asked = fetch(`${url}/mcp/web`, {
        method: 'POST',
        headers: { authorization: `Bearer ${firstKey}`, 'content-type': 'application/json', ...headers },
        body: JSON.stringify(fetchCall()),
        signal: leave.signal,
      }).then((response) => response.text())
      asked.catch(() => {})
      await expect.poll(() => brokers.asked.fetch).toHaveLength(1)
      leave.abort()
      await expect(asked).rejects.toThrow()
      await expect.poll(() => brokers.asked.released).toHaveLength(1)
      expect(brokers.settled).toEqual([])
    },
  )

  test('BR-159 a gateway that must end says so in the result', async () => {
    const { connect, brokers, drain } = await startDirect()
    brokers.fetch = (_input, signal) => never(signal)
    const asked = call(await connect(), 'fetch_webpage', { url: PAGE })
    await expect.poll(() => brokers.asked.fetch).toHaveLength(1)
    const drained = drain(Date.now() + 1_000)
    expect(await asked).toMatchObject({ isError: true, content: [{ text: expect.stringContaining('shutting down') }] })
    await drained
  })
})

describe('the browser server', () => {
  const mcpWeb = { ...defaultSettings.mcpWeb, tools: { ...defaultSettings.mcpWeb.tools, rendererAvailable: true } }

  test('WM-01 WM-07 is a server of its own, and only where pages can be rendered', async () => {
    const { connect, send, firstKey: key } = await startDirect({ mcpWeb })
    const tools = (await (await connect({ path: '/mcp/browser' })).listTools()).tools
    expect(tools.map(({ name }) => name)).toEqual(['fetch_webpage_rendered'])
    const web = (await (await connect()).listTools()).tools
    expect(web).toHaveLength(4)
    expect(web.find(({ name }) => name === 'fetch_webpage')?.description).toContain('fetch_webpage_rendered')
    const without = await startDirect()
    const asked = await without.send('POST', '/mcp/browser', { key: without.firstKey, body: rpc('ping', {}) })
    expect(asked.status).toBe(404)
    expect((await send('POST', '/mcp/browser', { key, body: rpc('ping', {}) })).status).toBe(200)
  })

  test('WM-07 answers the object of fetch_webpage and rendered, settled as a fetch', async () => {
    const { connect, brokers } = await startDirect({ mcpWeb })
    await brokers.bus.serve(fetchRendered, async ({ url, format }) => ({
      status: 'ok' as const,
      requestedUrl: url,
      finalUrl: url,
      title: 'App',
      format,
      extractor: 'main' as const,
      text: 'Made by scripts',
      totalChars: 15,
      bytes: 9,
      label: 'builtin:builtin_fetch',
    }))
    const client = await connect({ path: '/mcp/browser' })
    const { content } = await call(client, 'fetch_webpage_rendered', { url: PAGE, format: 'markdown' })
    const value = JSON.parse(content[0]?.text ?? '')
    expect(value).toMatchObject({ url: PAGE, text: 'Made by scripts', format: 'markdown', rendered: true })
    expect(Object.keys(value)).toHaveLength(16)
    await expect.poll(() => brokers.settled).toHaveLength(1)
    expect(brokers.settled[0]).toMatchObject({
      endpoint: '/api/v1/mcp/browser',
      lines: [{ tool: 'web_fetch', outcome: 'ok' }],
    })
  })
})

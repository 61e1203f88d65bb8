import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { JSONRPCMessageSchema } from '@modelcontextprotocol/sdk/types.js'
import { type FakeSite, fakeSerper, openSite, type SearchFake, type SerperResult } from '@tollgate/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bareEnvironment, root } from '../system/service-process.ts'
import { failure, plainText, searchResult, webpage } from './strict.ts'
import { html, paragraphs } from './world.ts'

/** A first start compiles what it loads, on a machine that may be busy. */
const START_MS = 150_000
const KEY = 'canary-serper-key'
const args = ['--import', './scripts/ts.mjs', 'services/run.ts', 'mcp-web']

let site: FakeSite
let serper: SearchFake<SerperResult>
let environment: Record<string, string>
beforeAll(async () => {
  site = await openSite((request, response) => {
    if (request.url === '/slow') return void setTimeout(() => response.end('late, but whole'), 1_000)
    response.writeHead(200, { 'content-type': 'text/html' }).end(html(paragraphs(4), '<title>Harbours</title>'))
  })
  serper = await fakeSerper({ apiKey: KEY })
  serper.finds([{ title: 'T', link: 'https://hit.test/', snippet: 'S' }])
  environment = {
    ...bareEnvironment(),
    OTARI_LOG_LEVEL: 'debug',
    OTARI_MCP_WEB_SEARCH_API_BASE: serper.url,
    DPTTOOLS_WEB_SEARCH_PROVIDER: 'serper',
    DPTTOOLS_WEB_SEARCH_API_KEY: KEY,
    DPTTOOLS_WEB_FETCH_ALLOW_HOSTS: '127.0.0.1',
    // WM-24: nobody listens there
    HTTP_PROXY: 'http://127.0.0.1:9',
    HTTPS_PROXY: 'http://127.0.0.1:9',
  }
})
afterAll(() => Promise.all([site.close(), serper.close()]))

test('WM-01 WM-02 WM-24 a desktop client uses every tool of the process it starts, without a key of ours', async () => {
  const transport = new StdioClientTransport({
    command: process.execPath,
    args,
    cwd: root,
    env: environment,
    stderr: 'pipe',
  })
  let log = ''
  transport.stderr?.on('data', (text) => {
    log += text
  })
  const client = new Client({ name: 'desktop', version: '1' })
  await client.connect(transport, { timeout: START_MS })
  const call = (name: string, given: Record<string, unknown>) => client.callTool({ name, arguments: given })
  expect(client.getServerVersion()?.name).toBe('web-search-tools')
  expect((await client.listTools()).tools).toHaveLength(4)

  const url = `http://127.0.0.1:${site.port}/page`
  const page = webpage.parse(await call('fetch_webpage', { url, format: 'markdown' }))
  expect(page).toMatchObject({ url, title: 'Harbours', status: 200, format: 'markdown' })
  const found = searchResult.parse(await call('web_search', { query: 'tides' }))
  expect(found).toEqual({
    provider: 'serper',
    query: 'tides',
    results: [{ title: 'T', url: 'https://hit.test/', snippet: 'S' }],
    usage: { provider_reported: false },
  })
  expect(plainText.parse(await call('format_search_results', { results: found }))).toContain(
    '[1] T - https://hit.test/',
  )
  expect(failure.parse(await call('fetch_image', { url })).content[0].text).toContain('not an image: text/html')
  expect(failure.parse(await call('fetch_webpage', { url: 'http://10.0.0.1/' })).content[0].text).toContain(
    'not allowed',
  )
  await client.close()
  expect(log).toContain('"service":"mcp-web"')
  for (const secret of [KEY, 'tides', '/page']) expect(log).not.toContain(secret)
}, 180_000)

test('standard output holds nothing but messages, what was asked before its end is answered, and the process ends well', async () => {
  const child = spawn(process.execPath, args, { cwd: root, env: environment, stdio: ['pipe', 'pipe', 'ignore'] })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  const send = (message: object) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const clientInfo = { name: 'raw', version: '1' }
  send({ id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo } })
  send({ method: 'notifications/initialized' })
  child.stdin.write('this is no message\n')
  send({
    id: 2,
    method: 'tools/call',
    params: { name: 'fetch_webpage', arguments: { url: `http://127.0.0.1:${site.port}/slow` } },
  })
  child.stdin.end()
  const [code] = await once(child, 'close')
  expect(code).toBe(0)
  const messages = output
    .trim()
    .split('\n')
    .map((line) => JSONRPCMessageSchema.parse(JSON.parse(line)))
  expect(messages).toMatchObject([
    { id: 1 },
    { id: 2, result: { content: [{ text: expect.stringContaining('late, but whole') }] } },
  ])
}, 180_000)

import type { RequestListener } from 'node:http'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import type { Tool } from '@modelcontextprotocol/sdk/types.js'
import { memoryBus } from '@tollgate/bus'
import { startFetchWorker } from '@tollgate/fetch-worker'
import { defaultWebSettings, type WebSettings, webServer, webTools } from '@tollgate/mcp-web'
import { type SearchSettings, startSearchBroker } from '@tollgate/search-broker'
import { openLog } from '@tollgate/telemetry'
import { dnsStub, type FakeSite, loopbackDialer, openSite } from '@tollgate/testing'
import { afterAll, beforeAll } from 'vitest'
import type { z } from 'zod'
import { failure } from './strict.ts'

export const PUBLIC = '93.184.216.34'
export const SITE = 'http://site.test'

export interface World {
  site: FakeSite
  /** What names lead to may be changed. */
  dns: ReturnType<typeof dnsStub> & { answers: Record<string, string[] | string[][]> }
  dialer: ReturnType<typeof loopbackDialer>
  client: Client
  /** Everything that was logged, as text. */
  logged(): string
  /** Calls that a worker is busy with, by subject. */
  busy(): Record<string, number>
  /** From now on the site answers like this, and what was counted starts again. */
  answering(answer: RequestListener): void
  tools(): Promise<Tool[]>
  /** The result as a strict client reads it. */
  read<S extends z.ZodType>(shape: S, tool: string, given: Record<string, unknown>): Promise<z.output<S>>
  /** The text of the failure that must come. */
  fails(tool: string, given: Record<string, unknown>): Promise<string>
  /** A client of another server over the same workers. */
  connect(settings: Partial<WebSettings>): Promise<Client>
  close(): Promise<void>
}

interface WorldOptions {
  web?: Partial<WebSettings>
  search?: SearchSettings['mcp']
  dns?: Record<string, string[] | string[][]>
}

/** The web server with its workers in this process, before a site that `site.test` and `two.test` lead to. */
export async function openWorld({ web, search, dns: names }: WorldOptions = {}): Promise<World> {
  let current: RequestListener = (_request, response) => response.end()
  const lines: string[] = []
  const log = openLog({ service: 'mcp-web', level: 'debug', write: (line) => lines.push(line) })
  const bus = memoryBus({ log })
  const site = await openSite((...exchange) => current(...exchange))
  const answers = { 'site.test': [PUBLIC], 'two.test': ['1.1.1.1'], ...names }
  const dns = dnsStub(answers)
  const dialer = loopbackDialer({ [PUBLIC]: site.port, '1.1.1.1': site.port })
  const worker = await startFetchWorker({
    bus,
    log,
    settings: { slots: 4, threads: 1 },
    resolve: (host) => dns.resolve(host),
    dialer,
  })
  const broker = await startSearchBroker({ bus, log, settings: { searchTools: {}, legacy: {}, mcp: search } })
  const clients: Client[] = []

  const connect = async (settings: Partial<WebSettings>): Promise<Client> => {
    const [near, far] = InMemoryTransport.createLinkedPair()
    const server = webServer(webTools(bus, { ...defaultWebSettings, ...settings }), {
      version: '0.0.0-test',
      log,
      runFor: (_call, signal) => (_kind, run) => run({ tenancy, signal, deadline: Date.now() + 60_000 }),
    })
    await server.connect(far)
    const client = new Client({ name: 'strict', version: '1' })
    await client.connect(near)
    clients.push(client)
    return client
  }
  const client = await connect(web ?? {})
  const call = (tool: string, given: Record<string, unknown>) => client.callTool({ name: tool, arguments: given })

  return {
    site,
    dns: Object.assign(dns, { answers }),
    dialer,
    client,
    connect,
    logged: () => lines.join(''),
    busy: () => Object.fromEntries(Object.entries(bus.status().serving).map(([name, { busy }]) => [name, busy])),
    answering(answer) {
      current = answer
      for (const list of [site.requests, dns.lookups, dialer.dialed]) list.length = 0
    },
    tools: async () => (await client.listTools()).tools,
    async read(shape, tool, given) {
      const result = await call(tool, given)
      const { data } = failure.safeParse(result)
      if (data) throw new Error(data.content[0].text)
      return shape.parse(result)
    },
    fails: async (tool, given) => failure.parse(await call(tool, given)).content[0].text,
    async close() {
      for (const each of clients) await each.close()
      await bus.drain(Date.now())
      await worker.close(Date.now())
      await broker.close(Date.now())
      await site.close()
    },
  }
}

/** One world for all tests of a file: what it takes to start an extracting process is paid once. */
export function sharedWorld(options: WorldOptions = {}): () => World {
  let world: World | undefined
  beforeAll(async () => {
    world = await openWorld(options)
  })
  afterAll(() => world?.close())
  return () => {
    if (!world) throw new Error('the world opens before the first test')
    return world
  }
}

/** A site that answers one body, with its `Content-Type` unless there is none. */
export const serving =
  (contentType: string | undefined, body: string | Uint8Array, status = 200): RequestListener =>
  (_request, response) =>
    void response.writeHead(status, contentType === undefined ? {} : { 'content-type': contentType }).end(body)

export const html = (body: string, head = ''): string =>
  `<!doctype html><html><head>${head}</head><body>${body}</body></html>`

export const paragraphs = (count: number, about = 'harbours'): string =>
  Array.from({ length: count }, (_, n) => `<p>${sentence(n, about)}</p>`).join('\n')

const sentence = (n: number, about: string): string =>
  `Paragraph ${n + 1} tells at some length what there is to know about ${about}, their tides, their pilots and the long winters of the coast.`

const tenancy = { organization: 'o', workspace: 'w', user: 'u', key: 'k', request: 'r', attempt: 0 }

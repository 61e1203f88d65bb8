import type { ChildProcess } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { RequestListener } from 'node:http'
import { type Bus, type CallOptions, memoryBus } from '@tollgate/bus'
import { fetchPage, type Tenancy } from '@tollgate/contracts'
import type { Running } from '@tollgate/service'
import { type Log, openLog } from '@tollgate/telemetry'
import { dnsStub, type FakeSite, loopbackDialer, openSite } from '@tollgate/testing'
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import type { z } from 'zod'
import { type FetchWorkerSettings, startFetchWorker } from '../src/index.ts'

export const PUBLIC = '93.184.216.34'
export const tenancy: Tenancy = {
  organization: 'org_1',
  workspace: 'ws_1',
  user: 'user_1',
  key: 'key_1',
  request: 'req_1',
  attempt: 0,
}

export type Page = z.output<(typeof fetchPage)['output']>
export type PageEvent = z.output<NonNullable<(typeof fetchPage)['event']>>
type NameServer = Omit<ReturnType<typeof dnsStub>, 'resolve'> & {
  resolve(host: string, signal?: AbortSignal): Promise<string[]>
}
type PageInput = Partial<z.input<(typeof fetchPage)['input']>>

export interface World {
  bus: Bus
  worker: Running
  site: FakeSite
  /** May be given another `resolve`. */
  dns: NameServer
  dialer: ReturnType<typeof loopbackDialer>
  /** Where addresses lead. What is not listed is really dialled on this machine, and nowhere else. */
  ports: Record<string, number>
  /** What the service and the bus logged. */
  log: string[]
  /** Extracting processes that were started, in order. */
  hosts: ChildProcess[]
  fetch(url: string, input?: PageInput, options?: Partial<CallOptions<PageEvent>>): Promise<Page>
  /** From now on the site answers like this, and everything that was counted starts again. */
  answering(answer: RequestListener): World
}

interface WorldOptions {
  settings?: Partial<FetchWorkerSettings>
  dns?: Record<string, string[] | string[][]>
  tls?: { key: string; cert: string }
  /** Ends the world; at the end of the test when absent. */
  atEnd?: (close: () => Promise<void>) => void
}

/** The service on a bus, before a site that `site.test` and `two.test` lead to. */
export async function openWorld(answer: RequestListener, options: WorldOptions = {}): Promise<World> {
  let current = answer
  const site = await openSite((...exchange) => current(...exchange), options.tls ? { tls: options.tls } : {})
  const dns: NameServer = dnsStub({ 'site.test': [PUBLIC], 'two.test': ['1.1.1.1'], ...options.dns })
  const ports: Record<string, number> = { [PUBLIC]: site.port, '1.1.1.1': site.port }
  const dialer = loopbackDialer(ports)
  const log: string[] = []
  const logger: Log = openLog({ service: 'fetch-worker', level: 'debug', write: (line) => log.push(line) })
  const bus = memoryBus({ log: logger })
  const children = watchChildren()
  const close = async () => {
    children.stop()
    await bus.drain(Date.now())
    await worker?.close(Date.now())
    await site.close()
  }
  let worker: Running | undefined
  if (options.atEnd) options.atEnd(close)
  else onTestFinished(close)
  worker = await startFetchWorker({
    bus,
    log: logger,
    settings: { slots: 8, threads: 1, pageCache: { ms: 0 }, ...options.settings },
    resolve: (host, signal) => dns.resolve(host, signal),
    dialer,
    ...(options.tls ? { ca: [options.tls.cert] } : {}),
  })
  const world: World = {
    bus,
    worker,
    site,
    dns,
    dialer,
    ports,
    log,
    hosts: children.started,
    fetch: (url, input = {}, callOptions = {}) =>
      bus.call(fetchPage, { tenancy, url, ...input }, { deadline: Date.now() + 60_000, ...callOptions }),
    answering(next) {
      current = next
      site.connections = 0
      for (const list of [site.requests, dns.lookups, dialer.dialed, log]) list.length = 0
      return world
    },
  }
  return world
}

/** One world for all tests of a file: what it takes to start an extracting process is paid once. */
export function sharedWorld(options: Omit<WorldOptions, 'atEnd'> = {}): () => World {
  let world: World | undefined
  let end = async () => {}
  beforeAll(async () => {
    world = await openWorld((_request, response) => response.end(), { ...options, atEnd: (close) => (end = close) })
  })
  afterAll(() => end())
  return () => {
    if (!world) throw new Error('the world opens before the first test')
    return world
  }
}

/** Every process this one starts from now on. */
function watchChildren() {
  const started: ChildProcess[] = []
  const see = (message: unknown) => {
    started.push((message as { process: ChildProcess }).process)
  }
  subscribe('child_process', see)
  return { started, stop: () => unsubscribe('child_process', see) }
}

/** Resolves once an extracting process has begun to read a body. */
export const readingBegins = (host: ChildProcess): Promise<void> =>
  new Promise((begun) => {
    const hear = (message: { type: string }) => {
      if (message.type !== 'started') return
      host.off('message', hear)
      begun()
    }
    host.on('message', hear)
  })

/** A site that answers by path: a body, with its `Content-Type` unless there is none. */
export const serving =
  (
    pages: Record<string, [contentType: string | undefined, body: string | Uint8Array, status?: number | undefined]>,
  ): RequestListener =>
  (request, response) => {
    const [contentType, body, status = 200] = pages[request.url ?? ''] ?? ['text/plain', 'no such page', 404]
    response.writeHead(status, contentType === undefined ? {} : { 'content-type': contentType }).end(body)
  }

/** What a page came to, in a word or its text. */
export const textOf = (page: Page): string => (page.status === 'ok' ? page.text : page.failure)

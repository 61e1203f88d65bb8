import { type Bus, memoryBus } from '@tollgate/bus'
import {
  builtinFetchLabel,
  type FetchedPage,
  type FetchFailed,
  fetchPage,
  searchDescribe,
  searchFetch,
  searchQuery,
  type Tenancy,
} from '@tollgate/contracts'
import type { Running } from '@tollgate/service'
import { describeError, type Log } from '@tollgate/telemetry'
import { onTestFinished } from 'vitest'
import type { z } from 'zod'
import { type SearchSettings, startSearchBroker } from '../src/index.ts'

export const tenancy: Tenancy = {
  organization: 'org_1',
  workspace: 'ws_1',
  user: 'user_1',
  key: 'key_1',
  request: 'req_1',
  attempt: 0,
}

type PageCall = z.output<(typeof fetchPage)['input']>
export type PageAnswer = Partial<FetchedPage> | FetchFailed | Error

export interface FetchWorld {
  /** Pages asked for, in order. */
  calls: PageCall[]
  inFlight: number
  mostInFlight: number
  /** Calls whose signal fired before they were answered. */
  stopped: number
}

export interface World {
  bus: Bus
  broker: Running
  /** What the broker logged, and what the bus did. */
  log: string[]
  busLog: string[]
  fetches: FetchWorld
  query(request: Partial<z.input<(typeof searchQuery)['input']>>, options?: CallOptions): Promise<SearchReply>
  /** By the instance `main` unless another is named. */
  fetch(request: Partial<z.input<(typeof searchFetch)['input']>>, options?: CallOptions): Promise<FetchReply>
  describe(): Promise<z.output<(typeof searchDescribe)['output']>>
}
export type FetchReply = z.output<(typeof searchFetch)['output']>
type SearchReply = z.output<(typeof searchQuery)['output']>
interface CallOptions {
  timeoutMs?: number
  signal?: AbortSignal
  onEvent?: (event: { type: string }) => void
}

interface WorldOptions {
  settings?: Partial<SearchSettings>
  /** What the fetcher answers; a page with the URL as its text unless said otherwise. */
  page?: (call: PageCall, signal: AbortSignal) => Promise<PageAnswer> | PageAnswer
  /** False: nobody serves `fetch.page`. */
  fetcher?: boolean
}

/** A broker on a bus with a fetcher, as the gateway meets it. Closed when the test ends. */
export async function openWorld({ settings, page, fetcher = true }: WorldOptions = {}): Promise<World> {
  const busLog = recordingLog()
  const bus = memoryBus({ log: busLog.log })
  const { log, lines } = recordingLog()
  const fetches: FetchWorld = { calls: [], inFlight: 0, mostInFlight: 0, stopped: 0 }
  if (fetcher) await serveFetch(bus, fetches, page)
  const broker = await startSearchBroker({ bus, log, settings: { searchTools: {}, legacy: {}, ...settings } })
  onTestFinished(async () => {
    await broker.close(Date.now())
    await bus.drain(Date.now())
  })
  return {
    bus,
    broker,
    log: lines,
    busLog: busLog.lines,
    fetches,
    query: (request, { timeoutMs = 20_000, ...options } = {}) =>
      bus.call(
        searchQuery,
        { tenancy, instance: null, query: 'tollgate', ...request },
        { deadline: Date.now() + timeoutMs, ...options },
      ),
    fetch: (request, { timeoutMs = 20_000, ...options } = {}) =>
      bus.call(
        searchFetch,
        { tenancy, instance: 'main', url: 'https://a.test/', maxCharacters: 50_000, ...request },
        { deadline: Date.now() + timeoutMs, ...options },
      ),
    describe: () => bus.call(searchDescribe, {}, { deadline: Date.now() + 5_000 }),
  }
}

async function serveFetch(bus: Bus, seen: FetchWorld, page: WorldOptions['page']): Promise<void> {
  await bus.serve(
    fetchPage,
    async (call, { signal }) => {
      seen.calls.push(call)
      seen.inFlight += 1
      seen.mostInFlight = Math.max(seen.mostInFlight, seen.inFlight)
      signal.addEventListener('abort', () => (seen.stopped += 1), { once: true })
      try {
        const answer = (await page?.(call, signal)) ?? {}
        if (answer instanceof Error) throw answer
        if (answer.status === 'failed') return answer
        return {
          status: 'ok' as const,
          requestedUrl: call.url,
          finalUrl: call.url,
          text: `page of ${call.url}`,
          bytes: 100,
          label: builtinFetchLabel,
          ...answer,
        }
      } finally {
        seen.inFlight -= 1
      }
    },
    { slots: 100 },
  )
}

/** Everything that is logged, at every level, as the text that would be written. */
export function recordingLog(): { log: Log; lines: string[] } {
  const lines: string[] = []
  const write =
    (level: string) =>
    (first: unknown, ...rest: unknown[]): void => {
      const shown = (_name: string, value: unknown) => (value instanceof Error ? describeError(value) : value)
      lines.push(JSON.stringify([level, first, ...rest], shown))
    }
  const log = {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: () => log,
  } as Log
  return { log, lines }
}

/** `n` hits of some provider's making. */
export const times = <T>(n: number, make: (index: number) => T): T[] =>
  Array.from({ length: n }, (_, index) => make(index))

/** The reply's hits, or a failure of the test that says what came instead. */
export function hitsOf(reply: SearchReply): Extract<SearchReply, { status: 'ok' }>['hits'] {
  if (reply.status !== 'ok') throw new Error(`the search failed: ${reply.tag} ${reply.httpStatus}`)
  return reply.hits
}

/** Work that ends only by its signal. */
export const never = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))

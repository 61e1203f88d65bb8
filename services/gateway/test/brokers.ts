import { type Bus, memoryBus } from '@tollgate/bus'
import {
  billingQuote,
  billingRelease,
  billingReserve,
  type Fault,
  fetchImage,
  fetchPage,
  sandboxClose,
  sandboxDescribe,
  sandboxExec,
  sandboxOpen,
  sandboxRenew,
  sandboxSeed,
  searchDescribe,
  searchFetch,
  searchMcp,
  searchQuery,
  type UsageSettled,
  usageSettled,
  usageTool,
} from '@tollgate/contracts'
import { type Log, openLog } from '@tollgate/telemetry'
import type { z } from 'zod'
import type { InLoopSearch } from '../src/tools/capabilities.ts'

type In<R extends { input: z.ZodType }> = z.output<R['input']>
type Emit = (event: z.input<NonNullable<typeof sandboxExec.event>>) => void
type Out<R extends { output: z.ZodType }> = z.input<R['output']>

export const silent: Log = openLog({ service: 'test', level: 'silent' })

/** What the services behind the bus were asked, and what they are to answer; each answer may be replaced by a test. */
export interface Brokers {
  bus: Bus
  asked: {
    search: In<typeof searchQuery>[]
    fetch: In<typeof fetchPage>[]
    fetchBy: In<typeof searchFetch>[]
    image: In<typeof fetchImage>[]
    searchMcp: In<typeof searchMcp>[]
    opened: In<typeof sandboxOpen>[]
    exec: In<typeof sandboxExec>[]
    seeded: In<typeof sandboxSeed>[]
    closed: string[]
    closes: In<typeof sandboxClose>[]
    renewed: string[]
    quoted: In<typeof billingQuote>[]
    reserved: In<typeof billingReserve>[]
    released: string[]
    describes: number
  }
  settled: UsageSettled[]
  toolLines: z.output<typeof usageTool.event>[]
  search(input: In<typeof searchQuery>, signal: AbortSignal): Promise<Out<typeof searchQuery>>
  fetch(input: In<typeof fetchPage>, signal: AbortSignal): Promise<Out<typeof fetchPage>>
  /** By a fetch instance. */
  fetchBy(input: In<typeof searchFetch>, signal: AbortSignal): Promise<Out<typeof searchFetch>>
  image(input: In<typeof fetchImage>, signal: AbortSignal): Promise<Out<typeof fetchImage>>
  searchMcp(input: In<typeof searchMcp>, signal: AbortSignal): Promise<Out<typeof searchMcp>>
  open(
    input: In<typeof sandboxOpen>,
    emit: (event: z.input<NonNullable<typeof sandboxOpen.event>>) => void,
  ): Promise<Out<typeof sandboxOpen>>
  renew(input: In<typeof sandboxRenew>): Promise<Out<typeof sandboxRenew>>
  close(input: In<typeof sandboxClose>): Promise<Out<typeof sandboxClose>>
  seed(input: In<typeof sandboxSeed>): Promise<Out<typeof sandboxSeed>>
  exec(input: In<typeof sandboxExec>, signal: AbortSignal, emit: Emit): Promise<Out<typeof sandboxExec>>
  quote(input: In<typeof billingQuote>): Promise<Out<typeof billingQuote>>
  reserve(input: In<typeof billingReserve>): Promise<Out<typeof billingReserve>>
  inLoop: z.input<typeof searchDescribe.output>['inLoop']
  inLoopFetch: z.input<typeof searchDescribe.output>['inLoopFetch']
  instances: z.input<typeof searchDescribe.output>['instances']
  sandbox: boolean
  describeFails: Fault | undefined
  sandboxDescribeFails: Fault | undefined
}

export const exaInstance: InLoopSearch = {
  kind: 'instance',
  label: 'exa:main',
  instance: 'main',
  provider: 'exa',
  options: [{ name: 'category', type: 'string', description: 'kind of page' }],
}
export const legacySearch: InLoopSearch = {
  kind: 'legacy',
  label: 'otari:web_search',
  instance: null,
  provider: 'searxng',
  options: [],
}

export const hit = (n: number) => ({ title: `Title ${n}`, url: `https://site.test/${n}`, text: `Text ${n}` })

const exaEntry = {
  id: 'exa',
  requiresApiKey: true,
  requiresApiBase: false,
  docUrl: 'https://exa.test/docs',
  queryInUrl: false,
  keyInUrl: false,
  options: [...exaInstance.options],
}

/** The services as they are when all is well, on a memory bus. */
export async function openBrokers(): Promise<Brokers> {
  const bus = memoryBus({ log: silent })
  const brokers: Brokers = {
    bus,
    asked: {
      search: [],
      fetch: [],
      fetchBy: [],
      image: [],
      searchMcp: [],
      opened: [],
      exec: [],
      seeded: [],
      closed: [],
      closes: [],
      renewed: [],
      quoted: [],
      reserved: [],
      released: [],
      describes: 0,
    },
    settled: [],
    toolLines: [],
    search: async () => ({ status: 'ok', label: 'exa:main', hits: [hit(1), hit(2)] }),
    fetch: async ({ url }) => ({
      status: 'ok',
      requestedUrl: url,
      finalUrl: url,
      contentType: 'text/html',
      text: 'Page text',
      totalChars: 9,
      bytes: 9,
      label: 'builtin:builtin_fetch',
    }),
    fetchBy: async ({ instance }) => ({ status: 'ok', label: `exa:${instance}`, text: 'Page text of Exa' }),
    image: async ({ url }) => ({
      status: 'ok',
      format: 'PNG',
      width: 1,
      height: 1,
      mimeType: 'image/png',
      data: 'iVBORw==',
      finalUrl: url,
      bytes: 4,
      label: 'builtin:builtin_fetch',
    }),
    searchMcp: async () => ({
      status: 'ok',
      provider: 'serper',
      results: [{ title: 'Title 1', url: 'https://site.test/1', snippet: 'Text 1' }],
      usage: { provider_reported: false },
      label: 'otari:web_search',
    }),
    open: async () => ({ session: `s${brokers.asked.opened.length}` }),
    renew: async () => ({ renewed: true }),
    close: async () => ({}),
    seed: async ({ files }) => ({ names: files.map(({ name }) => name) }),
    exec: async () => ({ status: 'ok', stdout: '1\n', stderr: '', returnCode: 0, files: [] }),
    quote: async ({ candidates }) => ({ candidates: candidates.map(() => ({ refusal: null, estimate: '0' })) }),
    reserve: async ({ tenancy }) => ({ hold: `hold-${tenancy.request}` }),
    inLoop: exaInstance,
    inLoopFetch: null,
    instances: [],
    sandbox: true,
    describeFails: undefined,
    sandboxDescribeFails: undefined,
  }
  const { asked } = brokers

  await bus.serve(searchDescribe, async () => {
    asked.describes += 1
    if (brokers.describeFails) throw brokers.describeFails
    const { instances, inLoop, inLoopFetch } = brokers
    return { instances, providers: [exaEntry], inLoop, inLoopFetch }
  })
  await bus.serve(sandboxDescribe, async () => {
    if (brokers.sandboxDescribeFails) throw brokers.sandboxDescribeFails
    return { available: brokers.sandbox, provider: 'protocol' }
  })
  await bus.serve(searchQuery, async (input, { signal }) => {
    asked.search.push(input)
    return brokers.search(input, signal)
  })
  await bus.serve(fetchPage, async (input, { signal }) => {
    asked.fetch.push(input)
    return brokers.fetch(input, signal)
  })
  await bus.serve(searchFetch, async (input, { signal }) => {
    asked.fetchBy.push(input)
    return brokers.fetchBy(input, signal)
  })
  await bus.serve(fetchImage, async (input, { signal }) => {
    asked.image.push(input)
    return brokers.image(input, signal)
  })
  await bus.serve(searchMcp, async (input, { signal }) => {
    asked.searchMcp.push(input)
    return brokers.searchMcp(input, signal)
  })
  await bus.serve(sandboxOpen, async (input, { emit }) => {
    asked.opened.push(input)
    return brokers.open(input, emit)
  })
  await bus.serve(sandboxExec, async (input, { signal, emit }) => {
    asked.exec.push(input)
    return brokers.exec(input, signal, emit)
  })
  await bus.serve(sandboxSeed, async (input) => {
    asked.seeded.push(input)
    return brokers.seed(input)
  })
  await bus.serve(sandboxClose, async (input) => {
    const { session } = input
    asked.closed.push(session)
    asked.closes.push(input)
    return brokers.close(input)
  })
  await bus.serve(sandboxRenew, async (input) => {
    asked.renewed.push(input.container)
    return brokers.renew(input)
  })
  await bus.serve(billingQuote, async (input) => {
    brokers.asked.quoted.push(input)
    return brokers.quote(input)
  })
  await bus.serve(billingReserve, async (input) => {
    asked.reserved.push(input)
    return brokers.reserve(input)
  })
  await bus.serve(billingRelease, async ({ hold }) => {
    asked.released.push(hold)
    return {}
  })
  await bus.consume(usageTool, { durable: 'test' }, async (events) => {
    brokers.toolLines.push(...events)
  })
  await bus.consume(usageSettled, { durable: 'test' }, async (events) => {
    brokers.settled.push(...events)
  })
  return brokers
}

export const tenancy = { organization: 'org', workspace: 'ws', user: 'ada', key: 'k1', request: 'r1', attempt: 0 }

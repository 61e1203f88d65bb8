import { startBilling } from '@tollgate/billing'
import { type Bus, natsBus } from '@tollgate/bus'
import { fetchPage } from '@tollgate/contracts'
import { openDb } from '@tollgate/db'
import { startSandboxBroker } from '@tollgate/sandbox-broker'
import { startSearchBroker } from '@tollgate/search-broker'
import type { Running } from '@tollgate/service'
import { openLog } from '@tollgate/telemetry'
import {
  callsTools,
  fakeExaContents,
  fakeOpenAi,
  fakeSearxng,
  fakeTavily,
  freshDatabase,
  freshPrefix,
  openFakeSandbox,
  says,
} from '@tollgate/testing'
import { inject } from 'vitest'
import { ensureFirstKey, ensureMasterKey, migrateGateway } from '../../src/auth/first-start.ts'
import { type GatewayNeeds, startGateway } from '../../src/gateway.ts'
import { defaultSettings } from '../../src/settings.ts'
import { sender } from '../sender.ts'

export const SANDBOX_TOKEN = 'sandbox-token-canary'
const API_KEY = 'provider-key-canary'
const hits = Array.from({ length: 8 }, (_, n) => ({
  url: `https://site.test/${n}`,
  title: `Hit ${n}`,
  content: 'words',
}))

/** A model that calls the tools its last message names, each as often as it stands there, and then says that it is done. */
const model = () =>
  fakeOpenAi(
    ({ messages }) => {
      const last = (messages as { role: string; content: string }[]).at(-1)
      const calls =
        last?.role === 'user' ? (last.content.match(/\b(web_search|web_fetch|code_execution)\b/g) ?? []) : []
      const input = {
        web_search: { query: 'otters' },
        web_fetch: { url: 'https://site.test/0' },
        code_execution: { code: 'print(1)' },
      }
      if (calls.length === 0) return says('done')
      return callsTools(calls.map((name) => ({ name, input: input[name as keyof typeof input] })))
    },
    { compatible: true },
  )

export interface ReplicasOptions extends Partial<Pick<GatewayNeeds, 'providers' | 'seats'>> {
  /** Happens while a page is being read, and the request that wants it waits. */
  onRead?: () => Promise<void>
}

/**
 * Two gateways and two search-brokers, a sandbox-broker and billing, over NATS and Postgres, with two of everything outside
 * that a setting may choose from. Without a setting, the first of each is in force.
 */
export async function startReplicas({ providers = {}, seats = {}, onRead }: ReplicasOptions = {}) {
  const log = openLog({ service: 'replicas', level: 'silent' })
  const database = await freshDatabase(inject('postgresUrl'))
  const prefix = freshPrefix()
  const [first, second, engine, tavily, pages, sandbox, otherSandbox, openai] = await Promise.all([
    fakeSearxng(),
    fakeSearxng(),
    fakeSearxng(),
    fakeTavily({ apiKey: API_KEY }),
    fakeExaContents({ apiKey: API_KEY }),
    openFakeSandbox({ token: SANDBOX_TOKEN }),
    openFakeSandbox({ token: SANDBOX_TOKEN }),
    model(),
  ])
  for (const one of [first, second, engine]) one.finds(hits)
  tavily.finds(hits)
  pages.finds([{ url: 'https://site.test/0', text: 'Page text of Exa' }])

  const buses: Bus[] = []
  const running: Running[] = []
  const open = async (name: string) => {
    const bus = await natsBus({ servers: inject('natsUrl'), name, log, prefix })
    buses.push(bus)
    return bus
  }
  const db = await openDb({ url: database.url, log, poolSize: 8 })
  const own = await migrateGateway(db)
  const masterKey = (await ensureMasterKey(own)) ?? ''
  const key = (await ensureFirstKey(own)) ?? ''

  const worker = await open('fetch-worker')
  /** What the built-in fetcher was asked for. */
  const read: { url: string; allowPrivateHosts: boolean }[] = []
  await worker.serve(fetchPage, async ({ url, allowPrivateHosts }) => {
    read.push({ url, allowPrivateHosts })
    await onRead?.()
    const text = 'Page text of our own'
    const about = { totalChars: text.length, bytes: text.length, contentType: 'text/html' }
    return { status: 'ok' as const, requestedUrl: url, finalUrl: url, text, label: 'builtin:builtin_fetch', ...about }
  })
  running.push(await startBilling({ bus: await open('billing'), log, db, requirePricing: false, sweepEveryMs: 60_000 }))
  const sandboxSettings = {
    provider: 'protocol',
    url: sandbox.url,
    token: SANDBOX_TOKEN,
    configuredToken: SANDBOX_TOKEN,
  }
  running.push(
    await startSandboxBroker({
      bus: await open('sandbox-broker'),
      log,
      settings: { ...sandboxSettings, execTimeoutSeconds: 10 },
    }),
  )
  for (const name of ['search-broker', 'search-broker']) {
    const searchTools = { engine: { provider: 'searxng', apiBase: engine.url } }
    const fetchTools = { pages: { provider: 'exa', apiKey: API_KEY, apiBase: pages.url } }
    const legacy = { apiKey: API_KEY, apiBase: tavily.url, url: first.url, extract: false }
    running.push(await startSearchBroker({ bus: await open(name), log, settings: { searchTools, fetchTools, legacy } }))
  }
  const gateways = []
  for (const name of ['gateway', 'gateway']) {
    const gateway = await startGateway({
      bus: await open(name),
      log,
      db,
      version: 'test',
      host: '127.0.0.1',
      port: 0,
      demoProvider: false,
      providers: { fake: { type: 'openai-compatible', apiBase: `${openai.url}/v1`, models: ['m'] }, ...providers },
      seats,
      settings: {
        ...defaultSettings,
        requirePricing: false,
        webFetchEnabled: true,
        sandboxUrl: sandbox.url,
        webSearchUrl: first.url,
        webSearchExtract: false,
      },
    })
    running.unshift(gateway)
    gateways.push({ send: sender(gateway.url) })
  }
  const [left, right] = gateways as [(typeof gateways)[number], (typeof gateways)[number]]

  return {
    left: left.send,
    right: right.send,
    key,
    masterKey,
    db: own,
    log,
    fakes: { first, second, engine, tavily, pages, sandbox, otherSandbox, openai },
    read,
    async close() {
      for (const one of running) await one.close(Date.now() + 2_000)
      for (const bus of buses) await bus.drain(Date.now() + 2_000)
      await db.close()
      await database.drop()
      await Promise.all([first, second, engine, tavily, pages, sandbox, otherSandbox, openai].map((one) => one.close()))
    },
  }
}

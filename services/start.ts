import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { startBilling } from '@tollgate/billing'
import { type Bus, memoryBus, natsBus } from '@tollgate/bus'
import type { Config } from '@tollgate/config'
import { type Database, openDb } from '@tollgate/db'
import { startFetchWorker } from '@tollgate/fetch-worker'
import { ensureFirstKey, ensureMasterKey, migrateGateway, startGateway } from '@tollgate/gateway'
import { startSandbox } from '@tollgate/sandbox'
import { startSandboxBroker } from '@tollgate/sandbox-broker'
import { startSearchBroker } from '@tollgate/search-broker'
import { type Life, type Running, runUntilSignal, startHealth } from '@tollgate/service'
import { type Log, startTelemetry } from '@tollgate/telemetry'
import { setStarterPrices, welcome } from './first-start.ts'
import * as slices from './slices.ts'

export const serviceNames = [
  'gateway',
  'search-broker',
  'fetch-worker',
  'sandbox-broker',
  'billing',
  'sandbox',
] as const
export type ServiceName = (typeof serviceNames)[number]
export const isServiceName = (name: string): name is ServiceName => (serviceNames as readonly string[]).includes(name)

interface Setup {
  config: Config
  env: NodeJS.ProcessEnv
  log: Log
}

interface Shared extends Setup {
  bus: Bus
  version: string
}

const root = join(import.meta.dirname, '..')
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }

/** Runs one service over NATS and Postgres, or all of them in this process, until a signal. */
export function start(what: 'all' | ServiceName, setup: Setup): Promise<never> {
  const { config, log } = setup
  return runUntilSignal((life) => (what === 'all' ? startAll(life, setup) : startOne(what, life, setup)), {
    log,
    drainMs: config.drain_sec * 1_000,
    readinessDelayMs: config.drain_delay_sec * 1_000,
  })
}

async function startOne(name: ServiceName, life: Life, setup: Setup): Promise<void> {
  const { config, log } = setup
  await openProcess(name, life, setup, config.health_port)
  if (name === 'sandbox') {
    life.keep('sandbox', await startSandbox({ log, settings: slices.sandboxSettings(config) }))
    return
  }
  const needsDb = name === 'gateway' || name === 'billing'
  const db = needsDb ? await openPostgres(name, life, setup) : undefined
  if (config.nats_url === undefined)
    throw new Error(`${name} meets the other services on NATS: set nats_url (OTARI_NATS_URL), or run \`all\``)
  const bus = await natsBus({
    servers: config.nats_url,
    name,
    log,
    prefix: config.nats_prefix,
    streamReplicas: config.nats_replicas,
  })
  const shared: Shared = { ...setup, bus, version }
  if (name === 'gateway' && db) {
    // its streams use the bus to the end, so the bus closes after it
    life.keep('bus', busPart(bus))
    life.keep(name, await openGateway(db, shared))
    return
  }
  // calls under way end with the bus, and need the service until then
  const service = name === 'billing' && db ? await openBilling(db, shared) : await openBroker(name, shared)
  life.keep(name, service)
  life.keep('bus', busPart(bus))
}

/** One process: the memory bus, an embedded database in the data folder, and a sandbox when none is configured. */
async function startAll(life: Life, setup: Setup): Promise<void> {
  const { config, log } = setup
  // a port of its own for probes is for a cluster; here the gateway answers /health
  await openProcess('tollgate', life, setup, setup.env.OTARI_HEALTH_PORT ? config.health_port : 0)
  mkdirSync(config.data_dir, { recursive: true })
  const db = await openDb({
    url: config.database_url ?? join(config.data_dir, 'db'),
    log,
    poolSize: config.database_pool,
  })
  life.keep('database', { close: () => db.close().then(() => true) })

  const bus = memoryBus({ log })
  const shared: Shared = { ...setup, bus, version }
  const sandbox = config.sandbox_url === undefined ? await openBundledSandbox(life, setup) : { url: config.sandbox_url }
  life.keep('billing', await openBilling(db, shared))
  life.keep('sandbox-broker', await openSandboxBroker(shared, sandbox.url, sandbox.why))
  life.keep('search-broker', await openBroker('search-broker', shared))
  life.keep('fetch-worker', await openBroker('fetch-worker', shared))
  life.keep('bus', busPart(bus))

  const tables = await migrateGateway(db)
  const masterKey = config.master_key === undefined ? await ensureMasterKey(tables) : undefined
  const firstKey = await ensureFirstKey(tables)
  if (firstKey !== undefined) await setStarterPrices(bus)
  const gateway = await serveGateway(db, shared)
  life.keep('gateway', gateway)
  console.log(await welcome({ config, masterKey, firstKey, bus, url: gateway.url }))
}

async function openBundledSandbox(life: Life, { config, log }: Setup): Promise<{ url?: string; why?: string }> {
  if (!config.sandbox_bundled) return { why: 'the bundled sandbox is switched off and no sandbox_url is set' }
  try {
    const sandbox = await startSandbox({ log, settings: { ...slices.sandboxSettings(config), port: 0 } })
    life.keep('sandbox', sandbox)
    return { url: sandbox.url }
  } catch (error) {
    const why = error instanceof Error ? error.message : 'it did not start'
    log.warn({ err: error }, 'the bundled sandbox did not start: code execution is not available')
    return { why: `the bundled sandbox did not start: ${why}` }
  }
}

/** Telemetry and the probes: they stand first and go last. */
async function openProcess(service: string, life: Life, { config, log }: Setup, healthPort: number): Promise<void> {
  const telemetry = startTelemetry({
    service,
    version,
    log,
    sampleRatio: config.trace_sample_ratio,
    ...(config.otlp_endpoint === undefined ? {} : { otlpEndpoint: config.otlp_endpoint }),
  })
  if (healthPort > 0) {
    const { metricsText } = telemetry
    life.keep(
      'health',
      await startHealth({ port: healthPort, host: config.health_host, notReady: life.notReady, metricsText }),
    )
  }
  life.keep('telemetry', { close: () => telemetry.shutdown().then(() => true) })
}

async function openPostgres(name: string, life: Life, { config, log }: Setup): Promise<Database> {
  if (config.database_url === undefined)
    throw new Error(`${name} keeps its rows in Postgres: set database_url (OTARI_DATABASE_URL), or run \`all\``)
  const db = await openDb({ url: config.database_url, log, poolSize: config.database_pool, name: `tollgate-${name}` })
  life.keep('database', { close: () => db.close().then(() => true) })
  return db
}

async function openGateway(db: Database, shared: Shared): Promise<Running> {
  const tables = await migrateGateway(db)
  const masterKey = shared.config.master_key === undefined ? await ensureMasterKey(tables) : undefined
  if (masterKey !== undefined) console.log(`master key, shown this once: ${masterKey}`)
  return serveGateway(db, shared)
}

const serveGateway = (db: Database, { config, bus, log, version }: Shared) =>
  startGateway({
    bus,
    log,
    db,
    version,
    settings: slices.gatewaySettings(config),
    host: config.host,
    port: config.port,
    providers: slices.providers(config),
    demoProvider: config.demo_provider,
    ...(config.master_key === undefined ? {} : { masterKey: config.master_key }),
  })

const openBilling = (db: Database, { config, bus, log }: Shared) =>
  startBilling({
    bus,
    log,
    db,
    requirePricing: config.require_pricing,
    sweepEveryMs: config.sweep_interval_sec * 1_000,
    sweepGraceMs: config.sweep_grace_sec * 1_000,
    configuredPrices: slices.configuredPrices(config),
  })

const openSandboxBroker = ({ config, bus, log }: Shared, url: string | undefined, why?: string) =>
  startSandboxBroker({ bus, log, settings: slices.sandboxBrokerSettings(config, url, why) })

function openBroker(name: Exclude<ServiceName, 'gateway' | 'billing' | 'sandbox'>, shared: Shared): Promise<Running>
function openBroker(name: ServiceName, shared: Shared): Promise<Running>
function openBroker(name: ServiceName, shared: Shared): Promise<Running> {
  const { config, env, bus, log } = shared
  switch (name) {
    case 'search-broker':
      return startSearchBroker({ bus, log, settings: slices.searchSettings(config) })
    case 'fetch-worker':
      return startFetchWorker({ bus, log, settings: slices.fetchSettings(config, env) })
    case 'sandbox-broker':
      return openSandboxBroker(shared, config.sandbox_url)
    default:
      throw new Error(`${name} is not a service of this kind`)
  }
}

const busPart = (bus: Bus): Running => ({
  notReady: async () => (bus.status().connected ? undefined : 'not connected'),
  close: (deadline) => bus.drain(deadline),
})

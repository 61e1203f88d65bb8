import { randomBytes } from 'node:crypto'
import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from '@tollgate/db'
import { type Life, runUntilSignal, startHealth } from '@tollgate/service'
import { startTelemetry } from '@tollgate/telemetry'
import { keyLines, setStarterPrices, welcome } from './first-start.ts'
import { natsAccess } from './nats-access.ts'
import {
  busPart,
  open,
  openFiles,
  openSandbox,
  type SandboxAt,
  type ServiceName,
  type Setup,
  type Shared,
} from './open.ts'
import { webServerSettings } from './slices.ts'

// As each service's code, the bus and the database are loaded where they are used: a sandbox needs neither.

const root = join(import.meta.dirname, '..')
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { version: string }

/** What can be run: one service over NATS and Postgres, all of them in this process, or the web MCP server for a desktop. */
export type Runnable = 'all' | 'mcp-web' | ServiceName

/** Runs it until a signal. */
export function start(what: Runnable, setup: Setup): Promise<never> {
  const { config, log } = setup
  const begin = (life: Life) => {
    if (what === 'all') return startAll(life, setup)
    return what === 'mcp-web' ? startMcpWeb(life, setup) : startOne(what, life, setup)
  }
  return runUntilSignal(begin, {
    log,
    drainMs: config.drain_sec * 1_000,
    readinessDelayMs: config.drain_delay_sec * 1_000,
  })
}

async function startOne(name: ServiceName, life: Life, setup: Setup): Promise<void> {
  const { config, log } = setup
  await openProcess(name, life, setup)
  if (name === 'sandbox') {
    life.keep(name, await openSandbox(setup, { port: config.sandbox_port, token: config.sandbox_token }))
    return
  }
  const keepsRows =
    name === 'gateway' || name === 'billing' || (name === 'sandbox-broker' && config.database_url !== undefined)
  const db = keepsRows ? await openPostgres(name, life, setup) : undefined
  if (config.nats_url === undefined)
    throw new Error(`${name} meets the other services on NATS: set nats_url (OTARI_NATS_URL), or run \`all\``)
  const { natsBus } = await import('@tollgate/bus')
  const bus = await natsBus({
    ...natsAccess(config.nats_url),
    name,
    log,
    prefix: config.nats_prefix,
    streamReplicas: config.nats_replicas,
  })
  const shared: Shared = { ...setup, bus, version }
  switch (name) {
    case 'gateway': {
      // its streams use the bus to the end, so the bus closes after it
      life.keep('bus', busPart(bus))
      const gateway = await open.gateway({ ...shared, files: await openFiles(shared, false) }, needed(db))
      life.keep(name, gateway.running)
      for (const line of keyLines(gateway)) console.log(line)
      return
    }
    // everywhere else calls under way end with the bus, and need the service until then
    case 'billing':
      life.keep(name, await open.billing(shared, needed(db)))
      break
    case 'search-broker':
      life.keep(name, await open.searchBroker(shared))
      break
    case 'fetch-worker':
      life.keep(name, await open.fetchWorker(shared))
      break
    case 'render-worker':
      life.keep(name, await open.renderWorker(shared))
      break
    case 'sandbox-broker':
      life.keep(
        name,
        await open.sandboxBroker(
          { ...shared, files: await openFiles(shared, false) },
          { url: config.sandbox_url, token: config.sandbox_token },
          db,
        ),
      )
      break
    default:
      return name satisfies never
  }
  life.keep('bus', busPart(bus))
}

/** One process: the memory bus, an embedded database in the data folder, and a sandbox when none is configured. */
async function startAll(life: Life, setup: Setup): Promise<void> {
  const { config, log } = setup
  await openProcess('tollgate', life, setup)
  mkdirSync(config.data_dir, { recursive: true })
  const { openDb } = await import('@tollgate/db')
  const db = await openDb({
    url: config.database_url ?? join(config.data_dir, 'db'),
    log,
    poolSize: config.database_pool,
  })
  life.keep('database', databasePart(db))

  const { memoryBus } = await import('@tollgate/bus')
  const bus = memoryBus({ log })
  const alone: Shared = { ...setup, bus, version }
  const shared: Shared = { ...alone, files: await openFiles(alone, true) }
  const sandbox =
    config.sandbox_url === undefined && config.sandbox_provider === 'protocol'
      ? await openBundledSandbox(life, setup)
      : { url: config.sandbox_url, token: config.sandbox_token }
  life.keep('billing', await open.billing(shared, db))
  life.keep('sandbox-broker', await open.sandboxBroker(shared, sandbox, db))
  life.keep('search-broker', await open.searchBroker(shared))
  life.keep('fetch-worker', await open.fetchWorker(shared))
  if (config.mcp_browser_enabled) life.keep('render-worker', await open.renderWorker(shared))
  life.keep('bus', busPart(bus))

  const gateway = await open.gateway(shared, db)
  life.keep('gateway', gateway.running)
  if (gateway.firstKey !== undefined) await setStarterPrices(bus)
  console.log(await welcome({ ...gateway, config, bus, url: gateway.running.url }))
}

/** One process that a desktop client starts and speaks to over standard input and output: no database, no HTTP, no keys. */
async function startMcpWeb(life: Life, setup: Setup): Promise<void> {
  const { config, log } = setup
  await openProcess('mcp-web', life, setup)
  const { memoryBus } = await import('@tollgate/bus')
  const bus = memoryBus({ log })
  const shared: Shared = { ...setup, bus, version }
  life.keep('search-broker', await open.searchBroker(shared))
  life.keep('fetch-worker', await open.fetchWorker(shared))
  life.keep('bus', busPart(bus))
  const { serveStdio } = await import('@tollgate/mcp-web')
  // no browser is started in this process
  const settings = { ...webServerSettings(config), rendererAvailable: false }
  // a client that closes its side asks for the same end as a signal
  const onClosed = () => process.kill(process.pid, 'SIGTERM')
  life.keep('mcp-web', await serveStdio({ bus, log, settings, version, onClosed }))
}

/** For this process alone: whoever else is on this machine does not know its token. */
async function openBundledSandbox(life: Life, setup: Setup): Promise<SandboxAt> {
  if (!setup.config.sandbox_bundled) return { why: 'the bundled sandbox is switched off and no sandbox_url is set' }
  try {
    const token = setup.config.sandbox_token ?? randomBytes(32).toString('hex')
    const sandbox = await openSandbox(setup, { port: 0, token })
    life.keep('sandbox', sandbox)
    return { url: sandbox.url, token }
  } catch (error) {
    const why = `the bundled sandbox did not start: ${error instanceof Error ? error.message : 'unknown reason'}`
    setup.log.warn({ err: error }, why)
    return { why }
  }
}

/** Telemetry and the probes: they stand first and go last. */
async function openProcess(service: string, life: Life, { config, log, healthPort }: Setup): Promise<void> {
  const telemetry = startTelemetry({
    service,
    version,
    log,
    sampleRatio: config.trace_sample_ratio,
    ...(config.otlp_endpoint === undefined ? {} : { otlpEndpoint: config.otlp_endpoint }),
  })
  if (healthPort > 0) {
    const { metricsText } = telemetry
    const health = { port: healthPort, host: config.health_host, notReady: life.notReady, metricsText }
    life.keep('health', await startHealth(health))
  }
  life.keep('telemetry', { close: () => telemetry.shutdown().then(() => true) })
}

async function openPostgres(name: string, life: Life, { config, log }: Setup): Promise<Database> {
  if (config.database_url === undefined)
    throw new Error(`${name} keeps its rows in Postgres: set database_url (OTARI_DATABASE_URL), or run \`all\``)
  const { openDb } = await import('@tollgate/db')
  const db = await openDb({ url: config.database_url, log, poolSize: config.database_pool, name: `tollgate-${name}` })
  life.keep('database', databasePart(db))
  return db
}

const databasePart = (db: Database) => ({ close: () => db.close().then(() => true) })

function needed(db: Database | undefined): Database {
  if (!db) throw new Error('this service was started without its database')
  return db
}

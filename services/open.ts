import { resolve } from 'node:path'
import type { Bus } from '@tollgate/bus'
import type { Config } from '@tollgate/config'
import type { Database } from '@tollgate/db'
import type { FileStore } from '@tollgate/files'
import { openSecrets } from '@tollgate/secrets'
import type { Running } from '@tollgate/service'
import type { Log } from '@tollgate/telemetry'
import * as slices from './slices.ts'

export const serviceNames = [
  'gateway',
  'search-broker',
  'fetch-worker',
  'render-worker',
  'sandbox-broker',
  'billing',
  'sandbox',
] as const
export type ServiceName = (typeof serviceNames)[number]
export const isServiceName = (name: string): name is ServiceName => (serviceNames as readonly string[]).includes(name)

/** What the entry point read. */
export interface Setup {
  config: Config
  env: NodeJS.ProcessEnv
  log: Log
  /** 0: no probes. */
  healthPort: number
}

/** What the services of one process share. */
export interface Shared extends Setup {
  bus: Bus
  version: string
  /** Where the bytes of files lie; undefined where files are switched off, and where no service touches them. */
  files?: FileStore | undefined
}

// Each service's code is loaded when it is opened: a fetch-worker process never loads the HTTP API.

/** Opens each service with its own part of the configuration. */
export const open = {
  async gateway({ config, env, bus, log, version, files }: Shared, db: Database) {
    const { ensureFirstKey, ensureMasterKey, migrateGateway, startGateway } = await import('@tollgate/gateway')
    const tables = await migrateGateway(db)
    const masterKey = config.master_key === undefined ? await ensureMasterKey(tables) : undefined
    const firstKey = await ensureFirstKey(tables)
    const running = await startGateway({
      bus,
      log,
      db,
      version,
      settings: slices.gatewaySettings(config),
      host: config.host,
      port: config.port,
      providers: slices.providers(config),
      routing: slices.routing(config),
      seats: slices.seats(config),
      demoProvider: config.demo_provider,
      secrets: openSecrets(env.OTARI_SECRET_KEY),
      ...(files ? { files } : {}),
      ...(config.master_key === undefined ? {} : { masterKey: config.master_key }),
    })
    return { running, masterKey, firstKey }
  },

  async billing({ config, bus, log }: Shared, db: Database): Promise<Running> {
    const { startBilling } = await import('@tollgate/billing')
    return startBilling({
      bus,
      log,
      db,
      requirePricing: config.require_pricing,
      sweepEveryMs: config.sweep_interval_sec * 1_000,
      sweepGraceMs: config.sweep_grace_sec * 1_000,
      configuredPrices: slices.configuredPrices(config),
    })
  },

  async searchBroker({ config, bus, log }: Shared): Promise<Running> {
    const { startSearchBroker } = await import('@tollgate/search-broker')
    return startSearchBroker({ bus, log, settings: slices.searchSettings(config) })
  },

  async fetchWorker({ config, env, bus, log }: Shared): Promise<Running> {
    const { startFetchWorker } = await import('@tollgate/fetch-worker')
    return startFetchWorker({ bus, log, settings: slices.fetchSettings(config, env) })
  },

  async renderWorker({ config, bus, log }: Shared): Promise<Running> {
    const { findBrowser, startRenderWorker } = await import('@tollgate/render-worker')
    const executable = findBrowser(config.render_browser)
    if (executable === undefined)
      throw new Error('there is no Chromium to show pages in: install one, or say in render_browser where it is')
    return startRenderWorker({ bus, log, settings: slices.renderSettings(config, executable) })
  },

  /** Without a database it keeps no sandbox from one request to the next, and no key of a hosted provider. */
  async sandboxBroker({ config, env, bus, log, files }: Shared, sandbox: SandboxAt, db?: Database): Promise<Running> {
    const { startSandboxBroker } = await import('@tollgate/sandbox-broker')
    return startSandboxBroker({
      bus,
      log,
      settings: slices.sandboxBrokerSettings(config, sandbox),
      secrets: openSecrets(env.OTARI_SECRET_KEY),
      ...(db ? { db } : {}),
      ...(files ? { files } : {}),
      ...(env.E2B_API_KEY ? { environmentKey: env.E2B_API_KEY } : {}),
    })
  },
}

/** The store that gateway and sandbox-broker share: a folder when they are one process, else what the bus has for that. */
export async function openFiles({ config, bus }: Shared, together: boolean): Promise<FileStore | undefined> {
  if (!config.files_enabled) return undefined
  const { localFiles, objectFiles } = await import('@tollgate/files')
  const backend = config.files_backend ?? (together ? 'local' : 'objects')
  if (backend === 'objects') {
    return objectFiles(bus, config.files_objects_max_bytes).catch((cause: unknown) => {
      const why = cause instanceof Error ? cause.message : 'no reason given'
      throw new Error(`files cannot be kept (see files_backend and files_objects_max_bytes): ${why}`, { cause })
    })
  }
  return localFiles(resolve(config.data_dir, config.files_local_dir))
}

/** Where the sandbox is and what opens it, or why there is none. */
export interface SandboxAt {
  url?: string | undefined
  token?: string | undefined
  why?: string
}

/** The bundled code-execution backend; throws a sentence when this machine cannot run one. */
export async function openSandbox(
  { config, env, log }: Setup,
  at: { port: number; token: string | undefined },
): Promise<Running & { url: string }> {
  const { defaultSandboxSettings, startSandbox } = await import('@tollgate/sandbox')
  const settings = {
    ...defaultSandboxSettings,
    ...slices.sandboxSettings(config),
    port: at.port,
    ...(at.token === undefined ? {} : { token: at.token }),
  }
  return startSandbox({ log, settings, ...(env.PATH === undefined ? {} : { path: env.PATH }) })
}

export const busPart = (bus: Bus): Running => ({
  notReady: async () => (bus.status().connected ? undefined : 'not connected'),
  close: (deadline) => bus.drain(deadline),
})

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type FreshDatabase, freshDatabase, freshPrefix } from '@tollgate/testing'
import { inject } from 'vitest'
import { steadyPort } from './ports.ts'
import { bareEnvironment, type Ended, type ServiceProcess, startService } from './service-process.ts'

/** How one deployment is set up: `all` in one process with what it embeds, or a process a service over NATS and Postgres. */
export const kinds = ['standalone', 'services'] as const
export type Kind = (typeof kinds)[number]

const services = ['gateway', 'search-broker', 'fetch-worker', 'sandbox-broker', 'billing', 'sandbox'] as const
export type ServiceName = (typeof services)[number]
export type ProcessName = 'all' | ServiceName

export interface DeploymentOptions {
  /** Members of the config file of every process. */
  config?: Record<string, unknown>
  /** Environment of every process, beside what it needs to run at all. */
  env?: Record<string, string>
  /** The services that are started at first, where each is a process; all when absent. */
  only?: readonly ServiceName[]
  /** Another NATS than that of all tests. */
  natsUrl?: string
  /** Null: none is set, and the first start makes one. */
  masterKey?: string | null
}

export interface Deployment {
  kind: Kind
  url: string
  masterKey: string
  /** Undefined where the processes share no server. */
  databaseUrl: string | undefined
  /** The process that the service is in. */
  process(name: ServiceName): ServiceProcess
  /** Where `/livez`, `/readyz` and `/metrics` of its process are. */
  healthUrl(name: ServiceName): string
  /** Ends the process with a signal and waits until it is gone. */
  kill(name: ServiceName, signal: NodeJS.Signals): Promise<Ended>
  /** Starts the process, again or for the first time, on the same port; `env` lasts for this life. */
  start(name: ServiceName, env?: Record<string, string>): void
  /** One more process of a service, which is ready for work. It ends with the deployment. */
  replica(name: ServiceName, env?: Record<string, string>): Promise<ServiceProcess>
  /** Resolves once every process that runs can take work, or only the named one's. */
  ready(name?: ServiceName): Promise<void>
  /** What the process wrote, over all its lives. */
  logs(name: ServiceName): string
  allLogs(): string
  /** Ends every process in good order and removes what it left. Returns how each ended. */
  stop(): Promise<Map<ProcessName, Ended>>
}

const READY_MS = 200_000
const STOP_MS = 20_000

export async function startDeployment(kind: Kind, options: DeploymentOptions = {}): Promise<Deployment> {
  const { config = {}, env = {}, only = services, masterKey = 'gw-master-of-the-system-tests' } = options
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-system-'))
  const port = await steadyPort()
  const names: readonly ProcessName[] = kind === 'standalone' ? ['all'] : only
  const health = new Map<ProcessName, number>()
  for (const name of kind === 'standalone' ? names : services) health.set(name, await steadyPort())
  const configFile = join(folder, 'config.yml')
  // JSON is YAML
  writeFileSync(configFile, JSON.stringify(config))

  const database = kind === 'services' ? await freshDatabase(inject('postgresUrl')) : undefined
  const shared: Record<string, string> = {
    ...bareEnvironment(),
    OTARI_CONFIG: configFile,
    OTARI_HOST: '127.0.0.1',
    OTARI_PORT: String(port),
    OTARI_HEALTH_HOST: '127.0.0.1',
    OTARI_LOG_LEVEL: 'debug',
    OTARI_DRAIN_SEC: '10',
    OTARI_SWEEP_INTERVAL_SEC: '1',
    ...(masterKey === null ? {} : { OTARI_MASTER_KEY: masterKey }),
    ...(await meetingPoints(folder, database, options)),
    ...env,
  }

  const lives = new Map<ProcessName, ServiceProcess[]>()
  const replicas: ServiceProcess[] = []
  const placeOf = (name: ServiceName): ProcessName => (kind === 'standalone' ? 'all' : name)
  const livesOf = (place: ProcessName): ServiceProcess[] => {
    const found = lives.get(place)
    if (!found) throw new Error(`${place} is no process of this deployment`)
    return found
  }
  const latest = (place: ProcessName): ServiceProcess => livesOf(place).at(-1) as ServiceProcess
  const launch = (place: ProcessName, more: Record<string, string> = {}) => {
    const before = lives.get(place)?.at(-1)
    if (before && !before.end) throw new Error(`${place} runs already`)
    const process = startService(place, {
      env: { ...shared, OTARI_HEALTH_PORT: String(health.get(place)), ...more },
    })
    lives.set(place, [...(lives.get(place) ?? []), process])
  }
  const healthUrl = (place: ProcessName) => `http://127.0.0.1:${health.get(place)}`
  const logs = (place: ProcessName) =>
    livesOf(place)
      .map((life) => life.output())
      .join('\n')

  for (const name of names) launch(name)
  const deployment: Deployment = {
    kind,
    url: `http://127.0.0.1:${port}`,
    masterKey: masterKey ?? '',
    databaseUrl: database?.url,
    process: (name) => latest(placeOf(name)),
    healthUrl: (name) => healthUrl(placeOf(name)),
    async kill(name, signal) {
      const process = latest(placeOf(name))
      process.signal(signal)
      return process.ended
    },
    start: (name, more) => launch(placeOf(name), more),
    async replica(name, more) {
      const healthPort = await steadyPort()
      const process = startService(name, { env: { ...shared, OTARI_HEALTH_PORT: String(healthPort), ...more } })
      replicas.push(process)
      await untilReady(process, name, `http://127.0.0.1:${healthPort}`)
      return process
    },
    async ready(name) {
      const waited = name === undefined ? [...lives.keys()] : [placeOf(name)]
      const running = waited.filter((place) => latest(place).end === undefined)
      if (name !== undefined && running.length === 0) throw new Error(`${name} does not run:\n${logs(placeOf(name))}`)
      await Promise.all(running.map((place) => untilReady(latest(place), place, healthUrl(place))))
    },
    logs: (name) => logs(placeOf(name)),
    allLogs: () =>
      [...[...lives.keys()].map((place) => logs(place)), ...replicas.map((one) => one.output())].join('\n'),
    async stop() {
      const ends = new Map<ProcessName, Ended>()
      await Promise.all([
        ...[...lives.keys()].map(async (place) => ends.set(place, await stopProcess(latest(place)))),
        ...replicas.map(stopProcess),
      ])
      await database?.drop()
      rmSync(folder, { recursive: true, force: true })
      return ends
    },
  }
  try {
    await deployment.ready()
  } catch (error) {
    await deployment.stop()
    throw error
  }
  return deployment
}

/** Where the processes of a deployment find their data, the bus and the sandbox. */
async function meetingPoints(
  folder: string,
  database: FreshDatabase | undefined,
  { natsUrl = inject('natsUrl'), only = services }: DeploymentOptions,
): Promise<Record<string, string>> {
  if (database === undefined) return { OTARI_DATA_DIR: join(folder, 'data') }
  const sandboxPort = await steadyPort()
  return {
    OTARI_NATS_URL: natsUrl,
    // every deployment of a test run has a store of its own on the one server
    OTARI_FILES_OBJECTS_MAX_BYTES: String(256 * 1024 * 1024),
    OTARI_NATS_PREFIX: freshPrefix(),
    OTARI_DATABASE_URL: database.url,
    OTARI_SANDBOX_PORT: String(sandboxPort),
    ...(only.includes('sandbox') ? { OTARI_SANDBOX_URL: `http://127.0.0.1:${sandboxPort}` } : {}),
  }
}

async function untilReady(process: ServiceProcess, name: ProcessName, healthUrl: string): Promise<void> {
  let why = 'no answer'
  for (const until = Date.now() + READY_MS; Date.now() < until; await sleep(25)) {
    if (process.end)
      throw new Error(`${name} ended with ${process.end.signal ?? process.end.code}:\n${process.output()}`)
    const answer = await fetch(`${healthUrl}/readyz`, { signal: AbortSignal.timeout(2_000) }).catch(() => undefined)
    if (answer?.status === 200) return
    why = answer ? await answer.text() : why
  }
  throw new Error(`${name} was not ready in ${READY_MS} ms (${why}):\n${process.output()}`)
}

async function stopProcess(process: ServiceProcess): Promise<Ended> {
  if (process.end) return process.end
  process.signal('SIGTERM')
  const late = setTimeout(() => process.signal('SIGKILL'), STOP_MS)
  const end = await process.ended
  clearTimeout(late)
  return end
}

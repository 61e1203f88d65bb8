import type { Server } from 'node:http'
import { type Bus, memoryBus } from '@tollgate/bus'
import { openDb } from '@tollgate/db'
import { openLog } from '@tollgate/telemetry'
import { type FreshDatabase, freshDatabase } from '@tollgate/testing'
import type { FastifyInstance, FastifyPluginAsync, FastifyPluginCallback, FastifyPluginOptions } from 'fastify'
import { buildApp } from '../src/app.ts'
import { ensureFirstKey, ensureMasterKey, masterKeyHash, migrateGateway } from '../src/auth/first-start.ts'
import { type Identities, openIdentities } from '../src/auth/identities.ts'
import { keyStore } from '../src/auth/key-store.ts'
import { openModels } from '../src/models/registry.ts'
import { type KnownPolicies, openPolicies } from '../src/policies/known-policies.ts'
import { codePolicyRoutes } from '../src/routes/code-policy.ts'
import { keyRoutes } from '../src/routes/keys.ts'
import { type ListedModel, modelRoutes } from '../src/routes/models.ts'
import { pricingRoutes } from '../src/routes/pricing.ts'
import { toolRoutes } from '../src/routes/tools.ts'
import { usageRoutes } from '../src/routes/usage.ts'
import { userRoutes } from '../src/routes/users.ts'
import { webPolicyRoutes } from '../src/routes/web-policy.ts'
import { workspaceRoutes } from '../src/routes/workspaces.ts'
import { openRuntimeSeats } from '../src/seat-changes/runtime.ts'
import { defaultSettings, type GatewaySettings } from '../src/settings.ts'
import type { GatewayDb } from '../src/tables.ts'
import { openCapabilities } from '../src/tools/capabilities.ts'
import { type Send, sender } from './sender.ts'

type Plugin = (
  app: FastifyInstance,
  options: FastifyPluginOptions,
  done: (error?: Error) => void,
) => void | Promise<void>
type TestRoute = Plugin | { alsoBare: FastifyPluginCallback }

export interface RigOptions {
  postgresUrl: string
  /** The bus of a single process when absent. */
  bus?: Bus
  settings?: Partial<GatewaySettings>
  models?: ListedModel[]
  notReady?: () => Promise<string | undefined>
  /** Routes of the test's own, below `/api/v1`. */
  routes?: (given: {
    cut: AbortSignal
    identities: Identities
    policies: KnownPolicies
    settings: GatewaySettings
    db: GatewayDb
  }) => TestRoute[]
}

export interface Rig {
  url: string
  db: GatewayDb
  databaseUrl: string
  bus: Bus
  masterKey: string
  firstKey: string
  identities: Identities
  policies: KnownPolicies
  settings: GatewaySettings
  /** Every line logged so far, as text. */
  logged(): string
  lines(): Record<string, unknown>[]
  send: Send
  /** A key made by the operator. */
  makeKey(wanted?: object): Promise<{ id: string; key: string }>
  /** A second process of the same deployment. */
  replica(): Promise<Rig>
  server: Server
  drain(deadline: number): Promise<boolean>
  close(): Promise<void>
}

/** A gateway over HTTP with a real database and the bus of a single process. */
export async function startRig(options: RigOptions): Promise<Rig> {
  const database = await freshDatabase(options.postgresUrl)
  const lines: string[] = []
  const log = openLog({ service: 'gateway', level: 'debug', write: (line) => lines.push(line) })
  return startOn(database, options.bus ?? memoryBus({ log }), lines, options)
}

async function startOn(
  database: FreshDatabase,
  bus: Bus,
  lines: string[],
  options: RigOptions,
  made?: { masterKey: string; firstKey: string },
): Promise<Rig> {
  const log = openLog({ service: 'gateway', level: 'debug', write: (line) => lines.push(line) })
  const opened = await openDb({ url: database.url, log, poolSize: 4 })
  const db = await migrateGateway(opened)
  const masterKey = (await ensureMasterKey(db)) ?? made?.masterKey ?? ''
  const firstKey = (await ensureFirstKey(db)) ?? made?.firstKey ?? ''
  const settings = { ...defaultSettings, ...options.settings }
  const identities = openIdentities({ db, bus, masterKeyHash: await masterKeyHash(db, undefined), used: () => {} })
  const capabilities = openCapabilities({ bus, settings, log })
  const policies = openPolicies({ db, bus, settings })
  const models = openModels({ providers: {}, demo: false, log })
  const seats = await openRuntimeSeats({ db, bus, log, configured: {}, models })
  const { server, drain } = await buildApp({
    log,
    identities,
    version: '0.0.0-test',
    bodyLimitBytes: settings.bodyLimitBytes,
    unreadAnswerMs: settings.unreadAnswerMs,
    notReady: options.notReady ?? (async () => undefined),
    routes: (cut) => [
      keyRoutes({ keys: keyStore(db), identities }),
      userRoutes({ db, identities }),
      modelRoutes({ listModels: () => options.models ?? [], seats }),
      toolRoutes({ capabilities }),
      pricingRoutes({ bus }),
      usageRoutes({ bus }),
      workspaceRoutes({ db }),
      codePolicyRoutes({ db, policies, settings, capabilities }),
      webPolicyRoutes({ db, policies, settings, capabilities }),
      ...((options.routes?.({ cut, identities, policies, settings, db }) ?? []) as (
        | FastifyPluginAsync
        | { alsoBare: FastifyPluginCallback }
      )[]),
    ],
  })
  const url = await server.listen({ port: 0, host: '127.0.0.1' })
  const send = sender(url)
  const replicas: Rig[] = []

  return {
    url,
    db,
    databaseUrl: database.url,
    bus,
    masterKey,
    firstKey,
    identities,
    policies,
    settings,
    logged: () => lines.join(''),
    lines: () => lines.map((line) => JSON.parse(line)),
    send,
    async makeKey(wanted = {}) {
      const { status, body } = await send<{ id: string; key: string }>('POST', '/api/v1/keys', {
        key: masterKey,
        body: wanted,
      })
      if (status !== 200) throw new Error(`no key was made: ${JSON.stringify(body)}`)
      return body
    },
    async replica() {
      const rig = await startOn(database, bus, lines, options, { masterKey, firstKey })
      replicas.push(rig)
      return rig
    },
    server: server.server,
    drain: (deadline) => drain.close(deadline),
    async close() {
      for (const replica of replicas) await replica.close()
      await drain.close(Date.now() + 1_000)
      identities.close()
      policies.close()
      await Promise.all([seats.close(), models.close()])
      await opened.close()
      if (made === undefined) await database.drop()
    },
  }
}

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Bus, memoryBus } from '@tollgate/bus'
import { sandboxClose, sandboxExec, sandboxOpen, type Tenancy } from '@tollgate/contracts'
import { type Database, openDb } from '@tollgate/db'
import { type FileStore, localFiles } from '@tollgate/files'
import { type FakeSandboxOptions, freshDatabase, openFakeSandbox } from '@tollgate/testing'
import { sql } from 'kysely'
import { afterAll, beforeAll, inject, onTestFinished } from 'vitest'
import { type SandboxBrokerSettings, startSandboxBroker } from '../src/index.ts'
import type { SandboxTables } from '../src/tables.ts'
import { log, soon, tenancy } from './rig.ts'

let url = ''
let shared: Database | undefined

/** One Postgres database for the file. */
export function useDatabase(): void {
  let drop = async () => {}
  beforeAll(async () => {
    const fresh = await freshDatabase(inject('postgresUrl'))
    url = fresh.url
    shared = await openDb({ url, log, poolSize: 8 })
    drop = fresh.drop
  })
  afterAll(async () => {
    await shared?.close()
    await drop()
  })
}

export interface StartOptions extends FakeSandboxOptions {
  settings?: Partial<SandboxBrokerSettings>
  sweepEveryMs?: number
  /** Whether there is a store for files. */
  store?: boolean
}

/** A broker over Postgres with a backend of its own; `replica` is another process beside it. */
export async function startKeeping({ settings, sweepEveryMs, store = false, ...fake }: StartOptions = {}) {
  const backend = await openFakeSandbox({ idleTimeoutSeconds: 3_600, ...fake })
  onTestFinished(() => backend.close())
  const started = { provider: 'protocol', url: backend.url, execTimeoutSeconds: 60, ...settings }
  if (!shared) throw new Error('the file does not say useDatabase()')
  const folder = await mkdtemp(join(tmpdir(), 'broker-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const files = await localFiles(folder)
  const first = await startBroker(shared, started, { sweepEveryMs, ...(store && { files }) })
  const replica = async (otherwise: Partial<SandboxBrokerSettings> = {}) => {
    const db = await openDb({ url, log, poolSize: 8 })
    // what is registered last ends first
    onTestFinished(() => db.close())
    return startBroker(db, { ...started, ...otherwise })
  }
  return { backend, files, ...first, replica }
}

async function startBroker(
  db: Database,
  settings: SandboxBrokerSettings,
  { sweepEveryMs, files }: { sweepEveryMs?: number | undefined; files?: FileStore } = {},
) {
  const bus = memoryBus({ log })
  const more = { ...(sweepEveryMs ? { sweepEveryMs } : {}), ...(files && { files }) }
  const broker = await startSandboxBroker({ bus, log, db, settings, ...more })
  onTestFinished(async () => {
    await bus.drain(Date.now() + 1_000)
    await broker.close(Date.now())
  })
  return { bus, db, settings, ...requestsOn(bus), ...rowsOf(db) }
}

let requests = 0
/** Another request of the same user, unless it says whose. */
export const request = (whose: Partial<Tenancy> = {}): Tenancy => {
  requests += 1
  return { ...tenancy, request: `r${requests}`, ...whose }
}

const requestsOn = (bus: Bus) => ({
  open: (at: Tenancy, container?: string) => {
    const wish = container === 'auto' ? { kind: 'auto' as const } : { kind: 'id' as const, id: container ?? '' }
    return bus.call(sandboxOpen, { tenancy: at, ...(container === undefined ? {} : { container: wish }) }, soon())
  },
  run: (at: Tenancy, session: string, code: string) => bus.call(sandboxExec, { tenancy: at, session, code }, soon()),
  close: (at: Tenancy, { session, container }: { session: string; container?: { id: string } }, discard = false) =>
    bus.call(sandboxClose, { tenancy: at, session, container: container?.id, discard }, soon()),
})

const rowsOf = (db: Database) => {
  const { kysely } = db.typed<SandboxTables>()
  return {
    rows: () => kysely.selectFrom('sandbox.containers').selectAll().execute(),
    row: (id: string) => kysely.selectFrom('sandbox.containers').selectAll().where('id', '=', id).executeTakeFirst(),
    /** So much time passes for a container. */
    age: async (id: string, seconds: number) => {
      const passed = sql`make_interval(secs => ${seconds})`
      await sql`update sandbox.containers set ends_at = ends_at - ${passed}, hard_ends_at = hard_ends_at - ${passed},
        claim_ends_at = claim_ends_at - ${passed} where id = ${id}`.execute(kysely)
    },
    servedBy: async (id: string, provider: string) => {
      await kysely.updateTable('sandbox.containers').set({ provider }).where('id', '=', id).execute()
    },
  }
}

/** A request that keeps its sandbox and has ended. */
export async function kept(
  { open, run, close }: ReturnType<typeof requestsOn>,
  { at = request(), code }: { at?: Tenancy; code?: string } = {},
): Promise<{ id: string; session: string }> {
  const opened = await open(at, 'auto')
  if (!opened.container) throw new Error('nothing is kept')
  if (code) await run(at, opened.session, code)
  await close(at, opened as { session: string; container: { id: string } })
  return { id: opened.container.id, session: opened.session }
}

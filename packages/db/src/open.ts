import { setTimeout as sleep } from 'node:timers/promises'
import { Fault, parseUrl } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import { type Database, databaseOver } from './database.ts'
import type { Engine } from './engine.ts'
import { guarded } from './guarded.ts'
import { pgliteEngine } from './pglite.ts'
import { postgresEngine } from './postgres.ts'

export interface OpenOptions {
  /** `postgres://…`, or a folder for an embedded database, or `memory:` for one that is gone when it is closed. */
  url: string
  log: Pick<Log, 'warn'>
  /** Postgres connections of this process. */
  poolSize?: number
  /** Postgres cancels a statement that takes longer; the embedded database cannot. */
  statementTimeoutMs?: number
  /** Longest wait for a free connection. */
  acquireTimeoutMs?: number
  /** How long a server that is still starting is waited for. */
  startTimeoutMs?: number
  /** How the connections are called in Postgres's own lists. */
  name?: string
}

/** Opens a database that has answered once. Nothing is made in it: see `migrate`. */
export async function openDb<T = unknown>(options: OpenOptions): Promise<Database<T>> {
  const { url, acquireTimeoutMs = 5_000, startTimeoutMs = 15_000 } = options
  if (!/^postgres(ql)?:\/\//.test(url)) return databaseOver(guarded(await pgliteEngine(url, acquireTimeoutMs)))
  const engine = guarded(
    postgresEngine({
      url,
      poolSize: options.poolSize ?? 10,
      statementTimeoutMs: options.statementTimeoutMs ?? 10_000,
      acquireTimeoutMs,
      name: options.name ?? 'tollgate',
      onLost: (err) => options.log.warn({ err }, 'a database connection was lost'),
    }),
  )
  try {
    await answers(engine, Date.now() + startTimeoutMs)
  } catch (error) {
    await engine.close()
    throw new Error(`the database at ${whereabouts(url)} cannot be used: ${reason(error)}`, { cause: error })
  }
  return databaseOver(engine)
}

async function answers(engine: Engine, until: number): Promise<void> {
  for (;;) {
    try {
      const connection = await engine.connect()
      return connection.release()
    } catch (error) {
      // A wrong password stays wrong.
      if (!(error instanceof Fault) || Date.now() >= until) throw error
      await sleep(250)
    }
  }
}

/** Host and database, without who and with which password. */
function whereabouts(url: string): string {
  const read = parseUrl(url)
  return read ? read.host + read.pathname : 'a URL that cannot be read'
}

/** What the network or the server said, below our own words for it. */
function reason(error: unknown): string {
  const cause = error instanceof Fault ? error.cause : error
  return cause instanceof Error && cause.message ? cause.message : 'no answer'
}

import { Kysely, PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely'
import type { Engine } from './engine.ts'

/** Runs a prepared statement with these parameters. */
export type Statement<R> = (parameters: readonly unknown[]) => Promise<R[]>

/** An open database. Failures of the connection are `unavailable`, a statement that ran too long is `timeout`. */
export interface Database<T = unknown> {
  readonly kind: 'postgres' | 'pglite'
  /** For everything that is not hot. Its `transaction()` holds one connection: use its `tx`, never this, inside. */
  readonly kysely: Kysely<T>
  /**
   * A statement for a hot path: Postgres parses and plans it once a connection. `name` is its own in the whole process
   * and at most 63 characters; each run is a transaction of its own.
   */
  prepare<R>(name: string, sql: string): Statement<R>
  /** The same database as the tables of one service. */
  typed<U>(): Database<U>
  /** Undefined once the database answered, else why not; never takes longer than `withinMs`. */
  ping(withinMs: number): Promise<string | undefined>
  /** Waits a few seconds for whoever still holds a connection. */
  close(): Promise<void>
}

export function databaseOver<T>(engine: Engine): Database<T> {
  const kysely = new Kysely<T>({ dialect: new PostgresDialect({ pool: kyselyPool(engine) }) })
  const texts = new Map<string, string>()
  let closing: Promise<void> | undefined
  const database: Database<T> = {
    kind: engine.kind,
    kysely,
    prepare<R>(name: string, sql: string): Statement<R> {
      if (name.length > 63) throw new Error(`the statement name ${name} is longer than Postgres keeps`)
      if ((texts.get(name) ?? sql) !== sql) throw new Error(`the statement name ${name} is taken by another text`)
      texts.set(name, sql)
      return async (parameters) => {
        const connection = await engine.connect()
        try {
          return (await connection.query(sql, parameters, name)).rows as R[]
        } finally {
          connection.release()
        }
      }
    },
    typed: <U>() => database as unknown as Database<U>,
    ping: once((withinMs: number) => ping(engine, withinMs)),
    close() {
      closing ??= kysely.destroy().then(() => engine.close())
      return closing
    },
  }
  return database
}

/** Kysely's own Postgres dialect over either engine, which closes it by itself. */
function kyselyPool(engine: Engine): PostgresPool {
  return {
    async connect() {
      const connection = await engine.connect()
      return { query: connection.query, release: connection.release } as PostgresPoolClient
    },
    async end() {},
  }
}

/** A statement on a connection that is closed when its answer does not come: a dead server never says no. */
async function ping(engine: Engine, withinMs: number): Promise<string | undefined> {
  const until = Date.now() + withinMs
  try {
    const connection = await engine.connect(withinMs)
    let held = true
    const giveBack = (broken: boolean) => {
      if (held) connection.release(broken)
      held = false
    }
    const late = setTimeout(giveBack, Math.max(1, until - Date.now()), true)
    try {
      await connection.query('select 1', [])
      giveBack(false)
    } finally {
      clearTimeout(late)
      giveBack(true)
    }
    return undefined
  } catch {
    return `the database did not answer within ${withinMs} ms`
  }
}

/** Those who ask while an answer is awaited share it. */
function once<A extends unknown[], R>(run: (...given: A) => Promise<R>): (...given: A) => Promise<R> {
  let running: Promise<R> | undefined
  return (...given) => {
    running ??= run(...given).finally(() => {
      running = undefined
    })
    return running
  }
}

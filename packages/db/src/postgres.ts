import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@tollgate/contracts'
import pg from 'pg'
import type { Answer, Connection, Engine } from './engine.ts'
import { parameterText } from './parameters.ts'
import { parserOf } from './values.ts'

export interface PostgresOptions {
  url: string
  poolSize: number
  /** The server cancels a statement that runs longer. */
  statementTimeoutMs: number
  /** Longest wait for a free connection, or for a new one to be made. */
  acquireTimeoutMs: number
  /** How the connections call themselves in the server's own lists. */
  name: string
  /** Told about each connection that was lost; the pool makes a new one at the next need. */
  onLost(error: Error): void
}

/** Waiters beyond this are refused at once: they would only time out. */
const MOST_WAITING = 1_000
/** A holder that does not give its connection back by then is left behind with it: the process ends next. */
const LONGEST_CLOSE_MS = 5_000

export function postgresEngine(options: PostgresOptions): Engine {
  const pool = new pg.Pool({
    connectionString: options.url,
    application_name: options.name,
    max: options.poolSize,
    connectionTimeoutMillis: options.acquireTimeoutMs,
    statement_timeout: options.statementTimeoutMs,
    // Ends the wait for a server that no longer answers, when its own timeout cannot.
    query_timeout: options.statementTimeoutMs + 2_000,
    idleTimeoutMillis: 60_000,
    keepAlive: true,
    // Everything is asked for as text, so one table of parsers serves both databases.
    types: { getTypeParser: parserOf as pg.CustomTypesConfig['getTypeParser'] },
  })
  // A connection that breaks says so as an event beside the failing query, lent or not, and an `error` nobody listens to
  // ends the process.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', options.onLost))

  return {
    kind: 'postgres',
    async connect(withinMs) {
      if (pool.waitingCount >= MOST_WAITING) throw new Fault('unavailable', 'the database has too many calls waiting')
      return lend(await sooner(pool.connect(), withinMs))
    },
    async close() {
      const late = new AbortController()
      await Promise.race([pool.end(), sleep(LONGEST_CLOSE_MS, undefined, { signal: late.signal }).catch(() => {})])
      late.abort()
    },
  }
}

function lend(client: pg.PoolClient): Connection {
  return {
    async query(text, parameters, name) {
      const values = parameters.map(parameterText)
      return answerOf(await client.query(name === undefined ? { text, values } : { name, text, values }))
    },
    release: (broken) => client.release(broken),
  }
}

function answerOf(result: pg.QueryResult | pg.QueryResult[]): Answer {
  const last = Array.isArray(result) ? result.at(-1) : result
  return { command: last?.command ?? '', rowCount: last?.rowCount ?? 0, rows: last?.rows ?? [] }
}

/** The pool has one wait for everybody; a caller with less time leaves early, and its connection goes back when it comes. */
async function sooner(connecting: Promise<pg.PoolClient>, withinMs: number | undefined): Promise<pg.PoolClient> {
  if (withinMs === undefined) return connecting
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      connecting.then(
        (client) => client.release(),
        () => {}, // whoever waited was told already
      )
      reject(new Fault('unavailable', 'the database had no free connection in time'))
    }, withinMs)
  })
  try {
    return await Promise.race([connecting, late])
  } finally {
    clearTimeout(timer)
  }
}

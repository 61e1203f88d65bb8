import type { PGliteInterface } from '@electric-sql/pglite'
import { Fault } from '@tollgate/contracts'
import type { Answer, Connection, Engine } from './engine.ts'
import { parameterText } from './parameters.ts'

/** Holders waiting beyond this are refused at once. */
const MOST_WAITING = 10_000

interface Waiting {
  lend(): void
}

/**
 * PGlite has one connection. It is lent to one holder at a time, in the order of asking, so that a transaction is never
 * mixed with anybody else's statements; the holder's own statements go straight through. Code that holds it and asks for
 * another (a query on the outer handle inside a transaction) gets `unavailable` after `acquireTimeoutMs`, not a hang.
 */
export function pglitePool(db: PGliteInterface, acquireTimeoutMs: number, onClosed: () => Promise<void>): Engine {
  const waiting: Waiting[] = []
  let lent = false
  let closing: Promise<void> | undefined

  function pass(): void {
    const next = waiting.shift()
    if (next) next.lend()
    else lent = false
  }

  function turn(withinMs: number): Promise<void> {
    if (!lent) {
      lent = true
      return Promise.resolve()
    }
    if (waiting.length >= MOST_WAITING) {
      return Promise.reject(new Fault('unavailable', 'the database has too many calls waiting'))
    }
    return new Promise((resolve, reject) => {
      const place: Waiting = {
        lend() {
          clearTimeout(timer)
          resolve()
        },
      }
      const timer = setTimeout(() => {
        waiting.splice(waiting.indexOf(place), 1)
        reject(new Fault('unavailable', 'the database had no free connection in time'))
      }, withinMs)
      waiting.push(place)
    })
  }

  return {
    kind: 'pglite',
    async connect(withinMs = acquireTimeoutMs) {
      if (closing) throw new Fault('unavailable', 'the database is closed')
      await turn(withinMs)
      return lend(db, pass)
    },
    close() {
      closing ??= turn(acquireTimeoutMs)
        .catch(() => {}) // a holder that does not end is cut off: nothing is committed by closing
        .then(() => db.close())
        .then(onClosed)
      return closing
    },
  }
}

function lend(db: PGliteInterface, pass: () => void): Connection {
  let held = true
  return {
    async query(sql, parameters) {
      // Only a statement without parameters may be several.
      const result =
        parameters.length === 0
          ? (await db.exec(sql)).at(-1)
          : await db.query<unknown>(sql, parameters.map(parameterText))
      return answerOf(result)
    },
    release() {
      if (!held) throw new Error('a connection was given back twice')
      held = false
      pass()
    },
  }
}

function answerOf(result: { command?: string; rowCount?: number; rows: unknown[] } | undefined): Answer {
  return { command: result?.command ?? '', rowCount: result?.rowCount ?? 0, rows: result?.rows ?? [] }
}

import { randomBytes } from 'node:crypto'
import type { Log } from '@tollgate/telemetry'
import { observe } from '@tollgate/telemetry'
import type { Sandbox } from './drivers/driver.ts'
import { type EditHistory, openEditHistory } from './edit-history.ts'
import type { Pool } from './pool.ts'
import type { SandboxSettings } from './settings.ts'

export interface Session {
  readonly id: string
  readonly sandbox: Sandbox
  readonly history: EditHistory
  readonly idleSeconds: number
  readonly lifetimeSeconds: number
  readonly createdAt: Date
  lastActivityAt: Date
  /** Runs `work` after what was asked before it, and counts as activity until it is done. */
  inTurn<T>(work: () => Promise<T>): Promise<T>
  /** Counts as activity; may run beside others. */
  use<T>(work: () => Promise<T>): Promise<T>
}

export interface Lifetimes {
  idleSeconds?: number | undefined
  lifetimeSeconds?: number | undefined
}

export type Lease = { ok: true; session: Session } | { ok: false; why: string }

export interface Sessions {
  /** Refuses, never waits, when there are as many as may be. */
  lease(wanted: Lifetimes): Promise<Lease>
  /** Undefined for one that never was, and for one that is gone: nobody can tell the difference. */
  find(id: string): Session | undefined
  release(id: string): void
  readonly size: number
  /** Calls under way. */
  busy(): number
  close(): void
}

/** Calls that wait for their turn in one session. */
const MAX_WAITING = 16

export class TooManyCalls extends Error {
  override readonly name = 'TooManyCalls'
}

export function openSessions(pool: Pool, settings: SandboxSettings, log: Log): Sessions {
  const sessions = new Map<string, { session: Session; retire(): void; pending: number }>()
  let leasing = 0
  const stopObserving = observe(
    'sandbox_sessions',
    'Sessions leased, and ready for the next client',
    { state: ['leased', 'ready'] },
    () => [
      { value: sessions.size, values: { state: 'leased' } },
      { value: pool.waiting, values: { state: 'ready' } },
    ],
  )

  const remove = (id: string, why: string) => {
    const entry = sessions.get(id)
    if (!entry) return
    sessions.delete(id)
    entry.retire()
    entry.session.sandbox.end()
    log.info({ session: id, why, sessions: sessions.size }, 'session ended')
  }

  const add = (sandbox: Sandbox, { idleSeconds, lifetimeSeconds }: Lifetimes): Session => {
    const id = `sbx_${randomBytes(16).toString('hex')}`
    const idle = Math.min(idleSeconds ?? settings.idleSeconds, settings.idleSeconds)
    const lifetime = Math.min(lifetimeSeconds ?? settings.lifetimeSeconds, settings.lifetimeSeconds)
    let turn: Promise<unknown> = Promise.resolve()
    let idleTimer: NodeJS.Timeout | undefined
    const lifeTimer = setTimeout(() => remove(id, 'lifetime'), lifetime * 1_000).unref()
    const restart = () => {
      session.lastActivityAt = new Date()
      clearTimeout(idleTimer)
      idleTimer = setTimeout(() => remove(id, 'idle'), idle * 1_000).unref()
    }
    const session: Session = {
      id,
      sandbox,
      history: openEditHistory(),
      idleSeconds: idle,
      lifetimeSeconds: lifetime,
      createdAt: new Date(),
      lastActivityAt: new Date(),
      async use(work) {
        entry.pending += 1
        clearTimeout(idleTimer)
        try {
          return await work()
        } finally {
          entry.pending -= 1
          if (entry.pending === 0 && sessions.has(id)) restart()
        }
      },
      inTurn(work) {
        if (entry.pending >= MAX_WAITING)
          return Promise.reject(new TooManyCalls('too many calls wait for this session'))
        const mine = turn.then(() => work())
        turn = mine.catch(() => {}) // whoever asked for it hears of it; the next in line does not care
        return session.use(() => mine)
      },
    }
    const entry = {
      session,
      pending: 0,
      retire: () => {
        clearTimeout(idleTimer)
        clearTimeout(lifeTimer)
      },
    }
    sessions.set(id, entry)
    restart()
    void sandbox.ended.then(() => remove(id, 'lost'))
    return session
  }

  return {
    async lease(wanted) {
      if (sessions.size + leasing >= settings.maxSessions) return { ok: false, why: 'every session is taken' }
      leasing += 1
      try {
        const session = add(await pool.take(), wanted)
        log.info({ session: session.id, sessions: sessions.size }, 'session leased')
        return { ok: true, session }
      } catch (error) {
        log.error({ err: error }, 'no session could be made')
        return { ok: false, why: 'no session can be made just now' }
      } finally {
        leasing -= 1
      }
    },
    find: (id) => sessions.get(id)?.session,
    release: (id) => remove(id, 'released'),
    get size() {
      return sessions.size
    },
    busy: () => [...sessions.values()].reduce((sum, { pending }) => sum + pending, 0),
    close() {
      stopObserving()
      for (const id of [...sessions.keys()]) remove(id, 'closing')
    },
  }
}

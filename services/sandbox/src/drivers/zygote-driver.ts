import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '@tollgate/telemetry'
import type { IsolationLevel, SandboxSettings } from '../settings.ts'
import type { Driver } from './driver.ts'
import { zygoteConfig } from './environment.ts'
import { selfTest } from './self-test.ts'
import { startZygote, type Zygote } from './zygote.ts'

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 30_000
const LIVED_MS = 500
/** How long a client waits for one that is being started. */
const RESTART_MS = 3_000

/**
 * Sandboxes forked from a Python process that is started anew when it dies. Rejects with the reason when this machine
 * does not give the level, or gives it in a way that does not hold.
 */
export async function openZygoteDriver(
  level: IsolationLevel,
  python: string,
  settings: SandboxSettings,
  log: Log,
): Promise<Driver> {
  const start = () => startZygote(python, zygoteConfig(level, python, settings), log)
  let zygote: Zygote | undefined = await start()
  const { description, python: version } = zygote
  const fault = await selfTest(zygote, level)
  if (fault !== undefined) {
    await zygote.close()
    throw new Error(fault)
  }
  const closing = new AbortController()
  /** Those who wait for the next one. */
  const waiting = new Set<() => void>()
  const kept = keep(zygote)

  const arrival = (): Promise<void> =>
    new Promise((resolve) => {
      const done = () => {
        clearTimeout(late)
        waiting.delete(done)
        resolve()
      }
      const late = setTimeout(done, RESTART_MS)
      waiting.add(done)
    })

  /** One at a time, for as long as the driver is open. */
  async function keep(first: Zygote): Promise<void> {
    let pause = FIRST_PAUSE_MS
    let current: Zygote | undefined = first
    while (!closing.signal.aborted) {
      if (current) {
        const began = Date.now()
        await current.ended
        zygote = undefined
        if (closing.signal.aborted) return
        log.error('the process that sessions are forked from has ended, and all sessions with it')
        // only one that ends as soon as it has begun is waited for longer each time
        if (Date.now() - began > LIVED_MS) pause = FIRST_PAUSE_MS
      }
      await sleep(pause, undefined, { signal: closing.signal }).catch(() => {}) // closing ends the wait
      pause = Math.min(2 * pause, LONGEST_PAUSE_MS)
      if (closing.signal.aborted) return
      current = await start().catch((error: unknown) => {
        log.error({ err: error }, 'no process to fork sessions from; the next try follows')
        return undefined
      })
      zygote = current
      for (const told of waiting) told()
    }
  }

  return {
    level,
    description,
    python: version,
    down: () => (zygote ? undefined : 'the process that sessions are forked from is not running'),
    async create() {
      if (!zygote && !closing.signal.aborted) await arrival()
      if (!zygote) throw new Error('the process that sessions are forked from is not running')
      return zygote.create()
    },
    async close() {
      closing.abort()
      for (const told of waiting) told()
      await zygote?.close()
      await kept
      await zygote?.close() // one that was starting meanwhile
    },
  }
}

import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '@tollgate/telemetry'
import type { IsolationLevel, SandboxSettings } from '../settings.ts'
import type { Driver } from './driver.ts'
import { zygoteConfig } from './environment.ts'
import { selfTest } from './self-test.ts'
import { startZygote, type Zygote } from './zygote.ts'

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 30_000

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
  const kept = keep(zygote)

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
        if (Date.now() - began > LONGEST_PAUSE_MS) pause = FIRST_PAUSE_MS
      }
      await sleep(pause, undefined, { signal: closing.signal }).catch(() => {}) // closing ends the wait
      pause = Math.min(2 * pause, LONGEST_PAUSE_MS)
      if (closing.signal.aborted) return
      current = await start().catch((error: unknown) => {
        log.error({ err: error }, 'no process to fork sessions from; the next try follows')
        return undefined
      })
      zygote = current
    }
  }

  return {
    level,
    description,
    python: version,
    down: () => (zygote ? undefined : 'the process that sessions are forked from is not running'),
    async create() {
      if (!zygote) throw new Error('the process that sessions are forked from is not running')
      return zygote.create()
    },
    async close() {
      closing.abort()
      await zygote?.close()
      await kept
      await zygote?.close() // one that was starting meanwhile
    },
  }
}

import { setTimeout as sleep } from 'node:timers/promises'
import { type Running, runUntilSignal, startHealth } from '@tollgate/service'
import { openLog } from '@tollgate/telemetry'

/** A process with parts that behave as its argument (JSON) says; used by the lifecycle tests. */
interface Play {
  drainMs: number
  readinessDelayMs: number
  /** How long the start takes, and whether it heeds the signal meanwhile. */
  startMs: number
  heedsStop: boolean
  failStart: boolean
  parts: {
    name: string
    closeMs: number
    cutOff: boolean
    throws: boolean
    neverEnds: boolean
    notReady: string | null
  }[]
}

const play = JSON.parse(process.argv[2] ?? '{}') as Play
const log = openLog({ service: 'parts', level: 'info' })

const part = ({ closeMs, cutOff, throws, neverEnds, notReady }: Play['parts'][number]): Running => ({
  notReady: async () => notReady ?? undefined,
  async close() {
    if (throws) throw new Error('this part breaks when it is closed')
    if (neverEnds) setInterval(() => {}, 1_000)
    await (neverEnds ? new Promise(() => {}) : sleep(closeMs))
    return !cutOff
  },
})

await runUntilSignal(
  async (life) => {
    const health = await startHealth({
      port: 0,
      host: '127.0.0.1',
      notReady: life.notReady,
      metricsText: async () => 'up 1\n',
    })
    life.keep('health', health)
    for (const each of play.parts) life.keep(each.name, part(each))
    log.info({ url: health.url }, 'health')
    if (play.failStart) throw new Error('the port is taken: set another one')
    await sleep(play.startMs, undefined, play.heedsStop ? { signal: life.stopping } : {})
  },
  { log, drainMs: play.drainMs, readinessDelayMs: play.readinessDelayMs },
)

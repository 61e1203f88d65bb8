import type { Log } from '@tollgate/telemetry'
import type { Containers } from './containers.ts'

/** Sweeps again and again, one at a time; a sweep that fails is told, and the next one tries again. */
export function sweepEvery(everyMs: number, containers: Containers, log: Log): { stop(): Promise<void> } {
  let running = Promise.resolve()
  let busy = false
  const timer = setInterval(() => {
    if (busy) return
    busy = true
    running = sweep().finally(() => {
      busy = false
    })
  }, everyMs).unref()

  async function sweep(): Promise<void> {
    try {
      const gone = await containers.sweep()
      if (gone > 0) log.info({ gone }, 'kept sandboxes that nobody can resume were forgotten')
    } catch (err) {
      log.warn({ err }, 'kept sandboxes were not swept; the next sweep tries again')
    }
  }

  return {
    async stop() {
      clearInterval(timer)
      await running
    },
  }
}

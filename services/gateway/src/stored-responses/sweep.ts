import { counter, type Log } from '@tollgate/telemetry'
import type { GatewaySettings } from '../settings.ts'
import type { ResponseStore } from './store.ts'

const EVERY_MS = 60 * 60_000
const DAY_MS = 24 * 60 * 60_000

const swept = counter('responses_swept_total', 'Stored responses removed because they were kept long enough', {})

/** Sweeps every hour, never twice at once, until it is closed; replicas may sweep at the same time. */
export function sweepResponses(
  store: ResponseStore,
  settings: Pick<GatewaySettings, 'responsesRetentionDays'>,
  log: Log,
): { close(): Promise<void> } {
  let sweeping: Promise<void> | undefined

  async function sweep(): Promise<void> {
    try {
      const gone = await store.sweep(settings.responsesRetentionDays * DAY_MS)
      swept.add(gone, {})
      if (gone > 0) log.info({ gone }, 'stored responses swept')
    } catch (err) {
      log.error({ err }, 'stored responses could not be swept; the next sweep tries again')
    }
  }

  const timer = setInterval(() => {
    sweeping ??= sweep().finally(() => {
      sweeping = undefined
    })
  }, EVERY_MS).unref()

  return {
    async close() {
      clearInterval(timer)
      await sweeping
    },
  }
}

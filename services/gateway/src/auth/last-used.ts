import type { Log } from '@tollgate/telemetry'
import type { GatewayDb } from '../tables.ts'

const FLUSH_MS = 30_000
const MOST = 10_000

export interface LastUsed {
  note(key: string): void
  close(): Promise<void>
}

/** Writes when keys were last used, at most every half minute and off the request's path. More keys than that wait their turn. */
export function openLastUsed(db: GatewayDb, log: Log): LastUsed {
  const seen = new Map<string, Date>()
  const write = db.prepare(
    'gateway_keys_used',
    `update gateway.keys k set last_used_at = greatest(k.last_used_at, u.at)
     from unnest($1::text[], $2::timestamptz[]) as u (id, at) where k.id = u.id`,
  )
  async function flush(): Promise<void> {
    if (seen.size === 0) return
    const batch = [...seen]
    seen.clear()
    try {
      await write([batch.map(([id]) => id), batch.map(([, at]) => at)])
    } catch (error) {
      log.warn({ err: error, keys: batch.length }, 'when keys were last used was not written')
    }
  }
  const timer = setInterval(() => void flush(), FLUSH_MS)
  timer.unref()
  return {
    note(key) {
      if (seen.size < MOST || seen.has(key)) seen.set(key, new Date())
    },
    async close() {
      clearInterval(timer)
      await flush()
    },
  }
}

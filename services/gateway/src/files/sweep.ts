import { ABANDONED_MS, type FileStore } from '@tollgate/files'
import { counter, type Log } from '@tollgate/telemetry'
import type { FileClaims } from './claims.ts'
import type { FileRows } from './rows.ts'

const BATCH = 500

const swept = counter('files_swept_total', 'Files removed because nobody may have them any more', {
  why: ['expired', 'unowned', 'half_written'],
})

export interface SweepNeeds {
  store: FileStore
  rows: FileRows
  claims: Pick<FileClaims, 'sweep'>
  log: Log
}

/**
 * Frees what nobody may have any more: files whose time is over (FI-08); bytes without a row, a day after they were
 * written (a deletion that reached the row alone, an output whose request died before it was told of); and halves of
 * uploads whose process died. Replicas may sweep at the same time.
 */
export async function sweepFiles({ store, rows, claims, log }: SweepNeeds): Promise<void> {
  let [expired, unowned] = [0, 0]
  for (;;) {
    const ids = await rows.removeExpired(BATCH)
    for (const id of ids) await store.delete(id)
    expired += ids.length
    if (ids.length < BATCH) break
  }
  const ids = await store.ids()
  for (let from = 0; from < ids.length; from += BATCH) {
    for (const id of await rows.unknown(ids.slice(from, from + BATCH))) {
      const stored = await store.stat(id)
      if (!stored || Date.now() - stored.storedAt.getTime() < ABANDONED_MS) continue
      if (await store.delete(id)) unowned += 1
    }
  }
  await claims.sweep()
  const halves = await store.tidy(ABANDONED_MS)
  for (const [why, count] of Object.entries({ expired, unowned, half_written: halves })) swept.add(count, { why })
  if (expired + unowned + halves > 0) log.info({ expired, unowned, halves }, 'files swept')
}

/** Sweeps now and then, never twice at once, until it is closed. */
export function sweepRegularly(needs: SweepNeeds, everyMs: number): { close(): Promise<void> } {
  let sweeping: Promise<void> | undefined
  const sweep = () => {
    sweeping ??= sweepFiles(needs)
      .catch((err: unknown) => needs.log.error({ err }, 'files could not be swept; the next sweep tries again'))
      .finally(() => {
        sweeping = undefined
      })
  }
  const timer = setInterval(sweep, everyMs).unref()
  return {
    async close() {
      clearInterval(timer)
      await sweeping
    },
  }
}

import type { Database } from '@tollgate/db'
import { sql } from 'kysely'
import type { PriceBook } from './price-book.ts'
import { settleHolds } from './swept.ts'
import type { BillingTables } from './tables.ts'

/** Most holds of one transaction; a full one says that there may be more. */
export const SWEEP_BATCH = 64

/**
 * Settles requests whose time is over and that nobody settled, with the calls they were seen to make. Replicas may sweep
 * at the same time: each takes holds that no other has. Returns how many ended.
 */
export async function sweepHolds(db: Database, book: PriceBook, graceMs: number): Promise<number> {
  await book.refresh()
  return db
    .typed<BillingTables>()
    .kysely.transaction()
    .execute(async (tx) => {
      const due = await tx
        .selectFrom('billing.holds')
        .selectAll()
        .where('ends_at', '<', sql<Date>`now() - make_interval(secs => ${graceMs / 1_000})`)
        .orderBy('ends_at')
        .limit(SWEEP_BATCH)
        .forUpdate()
        .skipLocked()
        .execute()
      await settleHolds(tx, due, book.now())
      return due.length
    })
}

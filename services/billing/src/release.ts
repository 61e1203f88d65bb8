import type { Tenancy } from '@tollgate/contracts'
import type { Database } from '@tollgate/db'
import type { PriceBook } from './price-book.ts'
import { settleHolds } from './swept.ts'
import type { BillingTables } from './tables.ts'
import { callsOf } from './tool-lines.ts'

/**
 * Gives a hold back when the request did nothing (P-46). One whose tools ran is settled instead, and one that has ended
 * stays ended. Another workspace's hold is not touched.
 */
export async function releaseHold(db: Database, book: PriceBook, hold: string, tenancy: Tenancy): Promise<void> {
  await book.refresh()
  await db
    .typed<BillingTables>()
    .kysely.transaction()
    .execute(async (tx) => {
      const held = await tx
        .selectFrom('billing.holds')
        .selectAll()
        .where('id', '=', hold)
        .where('organization', '=', tenancy.organization)
        .where('workspace', '=', tenancy.workspace)
        .forUpdate()
        .executeTakeFirst()
      if (held === undefined) return
      const calls = (await callsOf(tx, [hold])).get(hold) ?? []
      if (calls.length > 0) await settleHolds(tx, [held], book.now())
      else await tx.deleteFrom('billing.holds').where('id', '=', hold).execute()
    })
}

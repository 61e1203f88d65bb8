import { type BreakdownLine, type Cost, parseCost, type Tenancy } from '@tollgate/contracts'
import type { Database } from '@tollgate/db'
import { sql } from 'kysely'
import { chargeFor } from './charge.ts'
import { countCosts } from './metrics.ts'
import type { PriceBook } from './price-book.ts'
import { insertSwept, SWEPT, sweptWork } from './swept.ts'
import type { BillingTables } from './tables.ts'
import { callsOf } from './tool-lines.ts'
import { sweptRow } from './usage-rows.ts'

/**
 * Charges calls that were reported after their request had ended without them: a sweep's row is made again with all
 * calls, and a request that left no row, since its hold was given back, gets one. Doing it again changes nothing.
 */
export async function chargeLate(db: Database, book: PriceBook, tenancy: Tenancy): Promise<void> {
  await book.refresh()
  await db
    .typed<BillingTables>()
    .kysely.transaction()
    .execute(async (tx) => {
      const now = new Date()
      const unknown = sweptWork({ model: '', provider: '' }, [], { beganAt: now, endedAt: now })
      await insertSwept(tx, [sweptRow({ ...tenancy, endpoint: '' }, unknown, chargeFor(unknown, book.now()), SWEPT)])
      const row = await tx
        .selectFrom('billing.usage')
        .selectAll()
        .where('id', '=', tenancy.request)
        .forUpdate()
        .executeTakeFirstOrThrow()
      if (row.settled_by !== 'sweep') return
      // Read after the row is locked, so that of two late calls the second sees both.
      const calls = (await callsOf(tx, [row.id])).get(row.id) ?? []
      const work = sweptWork(row, calls, { beganAt: row.began_at, endedAt: row.settled_at })
      const { cost, meters, breakdown, byTool } = chargeFor(work, book.now())
      await tx
        .updateTable('billing.usage')
        .set({ cost, billing_meters: json(meters), pricing_breakdown: json(breakdown) })
        .where('id', '=', row.id)
        .execute()
      countCosts(growth(row.pricing_breakdown, byTool))
    })
}

/** A list would be sent as a Postgres array. */
const json = <T>(value: T) => sql<T>`${JSON.stringify(value)}::jsonb`

/** What has come on top of the lines that were counted already. */
function growth(before: BreakdownLine[], now: Map<string, Cost>): [string, Cost][] {
  return [...now].map(([tool, cost]) => {
    const counted = before.filter(({ meter }) => meter === `${tool}_calls`)
    return [tool, counted.reduce((rest, line) => rest - parseCost(line.cost ?? '0'), cost)]
  })
}

import type { Cost } from '@tollgate/contracts'
import { CompiledQuery, type Selectable, type Transaction } from 'kysely'
import { chargeFor, type Work } from './charge.ts'
import { jsonRows } from './json-rows.ts'
import { countCosts, countSweeps } from './metrics.ts'
import type { Prices } from './price-table.ts'
import { recordset } from './recordset.ts'
import type { BillingTables } from './tables.ts'
import type { Call } from './tool-charges.ts'
import { callsOf } from './tool-lines.ts'
import { type Owner, sweptRow, type UsageInput, usageColumns } from './usage-rows.ts'

/** The text of a row nobody settled: the gateway that served the request is gone. */
export const SWEPT = 'the request ended without settlement'

type Hold = Selectable<BillingTables['billing.holds']>

/** Ends holds that this transaction has locked with a row each, made of the calls that were seen. */
export async function settleHolds(tx: Transaction<BillingTables>, holds: Hold[], prices: Prices): Promise<void> {
  if (holds.length === 0) return
  const ids = holds.map(({ id }) => id)
  // Read in a statement of its own, after the locks: what was stored before them is seen.
  const calls = await callsOf(tx, ids)
  const counts = new Map<string, Map<string, Cost>>()
  const rows = holds.map((hold) => {
    const owner: Owner = { ...hold, request: hold.id, key: hold.key_id, user: hold.user_id }
    const work = sweptWork(hold, calls.get(hold.id) ?? [], { beganAt: hold.created_at, endedAt: new Date() })
    const charge = chargeFor(work, prices)
    counts.set(hold.id, charge.byTool)
    return sweptRow(owner, work, charge, SWEPT)
  })
  const written = await insertSwept(tx, rows)
  await tx.deleteFrom('billing.holds').where('id', 'in', ids).execute()
  countSweeps(written.length)
  for (const id of written) countCosts(counts.get(id) ?? [])
}

const usage = recordset(usageColumns)
const insertRows = `
  insert into billing.usage (${usage.list()}) select ${usage.list()} from ${usage.from('$1')} order by id
  on conflict (id) do nothing returning id`

/** The ids of those rows that were not there yet. */
export async function insertSwept(tx: Transaction<BillingTables>, rows: UsageInput[]): Promise<string[]> {
  const inserted = await tx.executeQuery<{ id: string }>(CompiledQuery.raw(insertRows, [jsonRows(rows)]))
  return inserted.rows.map(({ id }) => id)
}

export const sweptWork = (
  { model, provider }: Pick<Work, 'model' | 'provider'>,
  calls: Call[],
  span: Pick<Work, 'beganAt' | 'endedAt'>,
): Work => ({
  model,
  provider,
  priceKeys: [],
  tokens: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 },
  estimated: false,
  calls,
  ...span,
})

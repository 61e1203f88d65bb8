import type { UsageSettled } from '@tollgate/contracts'
import type { Database } from '@tollgate/db'
import { TOKENS } from './charge.ts'
import { jsonRows } from './json-rows.ts'
import { countCosts, settleBatch } from './metrics.ts'
import type { PriceBook } from './price-book.ts'
import { recordset } from './recordset.ts'
import { lineInput, lines } from './tool-lines.ts'
import { chargeAll, settledRows, usageColumns, workOf } from './usage-rows.ts'

const usage = recordset(usageColumns)
const given = recordset({ ...usageColumns, hold: 'text' })

/**
 * Settles a batch in one transaction: the row, the calls, the end of the hold. A row that is there already stays as it
 * is, unless a sweep made it. Every statement of ours locks holds first and in the order of their ids, so that none
 * waits for another in a circle.
 */
const settleRequests = `
  with given as materialized (select * from ${given.from('$1')}),
  held as materialized (
    select id from billing.holds where id in (select hold from given) order by id for update
  ),
  written as (
    insert into billing.usage as stored (${usage.list()})
    select ${usage.list('given.')} from given left join held on held.id = given.hold order by given.id
    on conflict (id) do update set ${usage.updates()} where stored.settled_by = 'sweep'
    returning id, xmax = 0 as is_new
  ),
  ran as (
    insert into billing.tool_lines (${lines.list()})
    select ${lines.list()} from ${lines.from('$2')} order by id on conflict (id) do nothing
  ),
  ended as (delete from billing.holds using held where holds.id = held.id)
  select id, is_new from written`

/** Takes settlements in any order and any number of times; each request is charged once. */
export function settler(db: Database, book: PriceBook): (events: UsageSettled[]) => Promise<void> {
  const settle = db.prepare<{ id: string; is_new: boolean }>('billing_settle', settleRequests)
  return async (delivered) => {
    const events = once(delivered)
    const works = events.map(workOf)
    const charges = await chargeAll(book, works)
    const rows = events.flatMap((event, n) => {
      const own = settledRows(event, works[n]!, charges[n]!)
      return own.map((row) => ({ ...row, hold: event.hold }))
    })
    const calls = events.flatMap(({ tenancy, lines }) => lines.map((line) => lineInput(tenancy, line)))
    const written = await settle([jsonRows(rows), jsonRows(calls)])
    settleBatch.record(events.length, { event: 'settled' })

    const byRequest = new Map(events.map(({ tenancy }, n) => [tenancy.request, charges[n]!]))
    for (const { id, is_new } of written) {
      const costs = byRequest.get(id)?.byTool
      // A sweep has counted the calls of the row that was replaced.
      if (costs) countCosts(is_new ? costs : [...costs].filter(([tool]) => tool === TOKENS))
    }
  }
}

/** One statement cannot write a row twice; the second delivery in a batch says nothing new. */
function once(events: UsageSettled[]): UsageSettled[] {
  const byRequest = new Map<string, UsageSettled>()
  for (const event of events) if (!byRequest.has(event.tenancy.request)) byRequest.set(event.tenancy.request, event)
  return [...byRequest.values()]
}

import type { Tenancy, ToolLine, usageTool } from '@tollgate/contracts'
import type { Database } from '@tollgate/db'
import type { Kysely } from 'kysely'
import type { z } from 'zod'
import { jsonRows } from './json-rows.ts'
import { recordset } from './recordset.ts'
import type { BillingTables } from './tables.ts'
import type { Call } from './tool-charges.ts'

export type ToolEvent = z.output<typeof usageTool.event>

const lineColumns = {
  id: 'text',
  request: 'text',
  organization: 'text',
  workspace: 'text',
  tool: 'text',
  label: 'text',
  price_keys: 'jsonb',
  outcome: 'text',
  reported_cost: 'numeric',
  at: 'timestamptz',
} as const
export const lines = recordset(lineColumns)

export const lineInput = ({ request, organization, workspace }: Tenancy, line: ToolLine) => ({
  id: line.id,
  request,
  organization,
  workspace,
  tool: line.tool,
  label: line.label,
  price_keys: line.priceKeys,
  outcome: line.outcome,
  reported_cost: line.reportedCost ?? null,
  at: line.at,
})

/**
 * Keeps the calls of requests under way. The hold is locked first, so that a sweep at the same moment either sees the
 * call or has ended before: then the request is named in the answer. What the gateway has settled carries all its calls.
 */
const keepLines = `
  with given as materialized (select * from ${lines.from('$1')}),
  held as materialized (
    select id from billing.holds where id in (select request from given) order by id for share
  ),
  kept as materialized (
    select given.*, held.id is not null as held
    from given left join held on held.id = given.request
    where held.id is not null or not exists (
      select 1 from billing.usage where usage.id = given.request and settled_by = 'gateway'
    )
    order by given.id
  ),
  stored as (
    insert into billing.tool_lines (${lines.list()}) select ${lines.list()} from kept on conflict (id) do nothing
  )
  select distinct request from kept where not held`

/** Stores calls; answers with the requests that were ended without them, whose rows are to be made again. */
export function toolLineStore(db: Database): (events: ToolEvent[]) => Promise<Tenancy[]> {
  const keep = db.prepare<{ request: string }>('billing_keep_lines', keepLines)
  return async (events) => {
    const rows = await keep([jsonRows(events.map(({ tenancy, line }) => lineInput(tenancy, line)))])
    if (rows.length === 0) return []
    const tenancies = new Map(events.map(({ tenancy }) => [tenancy.request, tenancy]))
    return rows.flatMap(({ request }) => tenancies.get(request) ?? [])
  }
}

/** The calls stored for some requests, in the order they ran. */
export async function callsOf(kysely: Kysely<BillingTables>, requests: string[]): Promise<Map<string, Call[]>> {
  const calls = new Map<string, Call[]>(requests.map((request) => [request, []]))
  if (requests.length === 0) return calls
  const rows = await kysely
    .selectFrom('billing.tool_lines')
    .selectAll()
    .where('request', 'in', requests)
    .orderBy('at')
    .orderBy('id')
    .execute()
  for (const row of rows) {
    calls.get(row.request)?.push({
      tool: row.tool,
      label: row.label,
      priceKeys: row.price_keys,
      outcome: row.outcome,
      ...(row.reported_cost === null ? {} : { reportedCost: row.reported_cost }),
    })
  }
  return calls
}

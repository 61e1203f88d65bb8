import type { ToolUsage } from '@tollgate/contracts'
import type { Database } from '@tollgate/db'
import { sql } from 'kysely'
import { matchingUsage, type UsageFilter } from './usage-list.ts'

/** Requests that are added up, the newest of those that match: more cost more than anyone learns from them. */
const MOST_REQUESTS = 100_000

interface Sums {
  tool: string
  requests: bigint
  billed: bigint
  errors: bigint
  result_tokens: bigint | null
  cost: string | null
}

/** What requests used of each tool, the most used first (PE-33): calls and errors as they were counted, costs as they were charged. */
export async function usageByTool(db: Database, filter: UsageFilter): Promise<{ data: ToolUsage[]; count: number }> {
  const newest = matchingUsage(db, filter)
    .select(['billing_meters', 'pricing_breakdown'])
    .orderBy('settled_at', 'desc')
    .orderBy('id', 'desc')
    .limit(MOST_REQUESTS)
  const { rows } = await sql<Sums>`
    select used.tool, count(*) as requests,
      sum((used.counts->>'billed')::bigint)::bigint as billed,
      sum((used.counts->>'errors')::bigint)::bigint as errors,
      sum((used.counts->>'result_tokens')::bigint)::bigint as result_tokens,
      sum(charged.cost)::text as cost
    from (${newest}) as request
    cross join lateral jsonb_each(request.billing_meters->'tools') as used (tool, counts)
    cross join lateral (
      select sum((line->>'cost')::numeric) as cost
      from jsonb_array_elements(request.pricing_breakdown) as line
      where line->>'meter' = used.tool || '_calls'
    ) as charged
    group by used.tool
    order by billed desc, used.tool`.execute(db.typed<object>().kysely)
  const data = rows.slice(filter.skip, filter.skip + filter.limit).map((sums) => ({
    tool: sums.tool,
    requests: Number(sums.requests),
    billed: Number(sums.billed),
    errors: Number(sums.errors),
    resultTokens: sums.result_tokens === null ? null : Number(sums.result_tokens),
    cost: sums.cost,
  }))
  return { data, count: rows.length }
}

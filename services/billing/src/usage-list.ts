import type { billingUsage, UsageRow } from '@tollgate/contracts'
import type { Database } from '@tollgate/db'
import type { Selectable } from 'kysely'
import type { z } from 'zod'
import { costText } from './amounts.ts'
import type { BillingTables } from './tables.ts'
import { countable } from './usage-rows.ts'

export type UsageFilter = z.output<typeof billingUsage.input>

/** Rows are counted up to here: counting more costs more than anyone learns from it. */
const COUNT_UP_TO = 100_000

/** Rows that match, newest first; rows of one moment by id, so that pages never overlap while `to` stands. */
export async function listUsage(db: Database, filter: UsageFilter): Promise<{ data: UsageRow[]; count: number }> {
  const { kysely } = db.typed<BillingTables>()
  const matching = matchingUsage(db, filter)
  const [rows, counted] = await Promise.all([
    matching
      .selectAll()
      .orderBy('settled_at', 'desc')
      .orderBy('id', 'desc')
      .offset(filter.skip)
      .limit(filter.limit)
      .execute(),
    kysely
      .selectFrom(matching.select('id').limit(COUNT_UP_TO).as('matching'))
      .select(({ fn }) => fn.countAll<bigint>().as('count'))
      .executeTakeFirstOrThrow(),
  ])
  return { data: rows.map(shown), count: Number(counted.count) }
}

/** The rows that a filter leaves, whatever is asked of them. */
export function matchingUsage(db: Database, { workspace, key, user, request, from, to }: UsageFilter) {
  let matching = db.typed<BillingTables>().kysely.selectFrom('billing.usage')
  if (workspace !== null) matching = matching.where('workspace', '=', workspace)
  if (key !== undefined) matching = matching.where('key_id', '=', key)
  if (user !== undefined) matching = matching.where('user_id', '=', user)
  if (from !== undefined) matching = matching.where('settled_at', '>=', new Date(from))
  if (to !== undefined) matching = matching.where('settled_at', '<', new Date(to))
  if (request !== undefined) {
    // Said so that the primary key and the small index of attempts find it.
    matching = matching.where(({ eb, or, and, ref }) =>
      or([eb('id', '=', request), and([eb('request', '=', request), eb('id', '<>', ref('request'))])]),
    )
  }
  return matching
}

function shown(row: Selectable<BillingTables['billing.usage']>): UsageRow {
  return {
    id: row.id,
    organization: row.organization,
    workspace: row.workspace,
    key: row.key_id,
    user: row.user_id,
    timestamp: row.settled_at.toISOString(),
    model: row.model,
    provider: row.provider,
    endpoint: row.endpoint,
    promptTokens: Number(row.prompt_tokens),
    completionTokens: Number(row.completion_tokens),
    totalTokens: countable(Number(row.prompt_tokens + row.completion_tokens)),
    billingMeters: row.billing_meters,
    pricingBreakdown: row.pricing_breakdown,
    cost: row.cost === null ? null : costText(row.cost),
    status: row.status,
    error: row.error,
    settledBy: row.settled_by,
    durationMs: row.duration_ms,
    countsTowardBudget: row.counts_toward_budget,
  }
}

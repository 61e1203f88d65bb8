import type { BreakdownLine, PriceKey, UsageRow } from '@tollgate/contracts'
import type { Generated } from 'kysely'

/** The schema `billing`, as `migrations/` makes it. Money is micro-dollars, prices are exact decimal text. */
export interface BillingTables {
  'billing.prices': PricesTable
  'billing.price_revision': { one: Generated<boolean>; revision: bigint }
  'billing.holds': HoldsTable
  'billing.tool_lines': ToolLinesTable
  'billing.usage': UsageTable
}

interface PricesTable {
  id: string
  kind: PriceKey['kind']
  model_key: string
  input_per_million: string
  output_per_million: string
  cache_read_per_million: string | null
  cache_write_per_million: string | null
  effective_at: Date
  created_at: Generated<Date>
  deleted_at: Date | null
}

interface HoldsTable {
  id: string
  organization: string
  workspace: string
  key_id: string
  user_id: string
  endpoint: string
  model: string
  provider: string
  estimate: bigint
  budget_exempt: boolean
  created_at: Generated<Date>
  ends_at: Date
}

interface ToolLinesTable {
  id: string
  request: string
  organization: string
  workspace: string
  tool: string
  label: string
  price_keys: PriceKey[]
  outcome: 'ok' | 'error'
  reported_cost: string | null
  at: Date
}

interface UsageTable {
  id: string
  request: string
  organization: string
  workspace: string
  key_id: string
  user_id: string
  endpoint: string
  model: string
  provider: string
  began_at: Date
  settled_at: Date
  duration_ms: number | null
  prompt_tokens: bigint
  completion_tokens: bigint
  billing_meters: Record<string, unknown>
  pricing_breakdown: BreakdownLine[]
  cost: bigint | null
  counts_toward_budget: boolean
  status: string
  error: string | null
  settled_by: UsageRow['settledBy']
}

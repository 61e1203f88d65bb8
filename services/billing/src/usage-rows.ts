import type { Cost, ToolLine, UsageSettled } from '@tollgate/contracts'
import { type Charge, chargeFor, type Work } from './charge.ts'
import type { PriceBook } from './price-book.ts'

/** The columns of `billing.usage` and their types, once: statements that write it are made from this list. */
export const usageColumns = {
  id: 'text',
  request: 'text',
  organization: 'text',
  workspace: 'text',
  key_id: 'text',
  user_id: 'text',
  endpoint: 'text',
  model: 'text',
  provider: 'text',
  began_at: 'timestamptz',
  settled_at: 'timestamptz',
  duration_ms: 'double precision',
  prompt_tokens: 'bigint',
  completion_tokens: 'bigint',
  billing_meters: 'jsonb',
  pricing_breakdown: 'jsonb',
  cost: 'bigint',
  counts_toward_budget: 'boolean',
  status: 'text',
  error: 'text',
  settled_by: 'text',
} as const

/** A row as it goes into a statement's JSON: money as text, since JSON's numbers are floats. */
export type UsageInput = Record<keyof typeof usageColumns, unknown>

/** Who a row is about. */
export interface Owner {
  request: string
  organization: string
  workspace: string
  key: string
  user: string
  endpoint: string
}

/** Prices several works, reading the prices again when one lacks some: it may have been set on another replica just now. */
export async function chargeAll(book: PriceBook, works: Work[]): Promise<Charge[]> {
  const charges = works.map((work) => chargeFor(work, book.now()))
  const complete = charges.every(({ breakdown }) => breakdown.every(({ cost }) => cost !== null))
  if (complete || !(await book.refresh())) return charges
  return works.map((work) => chargeFor(work, book.now()))
}

export function workOf(event: UsageSettled): Work {
  const endedAt = new Date(event.at)
  return {
    provider: event.provider,
    model: event.model,
    priceKeys: event.priceKeys,
    tokens: event.tokens,
    estimated: event.estimated,
    calls: once(event.lines),
    beganAt: new Date(endedAt.getTime() - event.durationMs),
    endedAt,
  }
}

/** A call that is named twice ran once. */
const once = (lines: ToolLine[]): ToolLine[] => [...new Map(lines.map((line) => [line.id, line])).values()]

/** Sums are shown as JSON numbers, which end being exact here. */
export const countable = (count: number): number => Math.min(count, Number.MAX_SAFE_INTEGER)

/** The request's own row, then one for each attempt it stood in for. */
export function settledRows(event: UsageSettled, work: Work, charge: Charge): UsageInput[] {
  const owner = ownerOf(event)
  const { input, output, cacheRead, cacheWrite } = event.tokens
  return [
    {
      ...about(owner, work),
      ...amounts(charge),
      id: owner.request,
      duration_ms: event.durationMs,
      prompt_tokens: countable(input + cacheRead + cacheWrite),
      completion_tokens: output,
      counts_toward_budget: true,
      status: event.status,
      error: event.error,
      settled_by: 'gateway',
    },
    ...event.absorbed.map((attempt) => ({
      ...about(owner, work),
      ...amounts(nothing),
      id: `${owner.request}.${attempt.attempt}`,
      model: attempt.model,
      provider: attempt.provider,
      duration_ms: attempt.durationMs,
      prompt_tokens: 0,
      completion_tokens: 0,
      counts_toward_budget: false,
      status: 'absorbed',
      error: attempt.error,
      settled_by: 'gateway',
    })),
  ]
}

/** The row of a request that nobody settled: what ran is charged, its tokens are not known. */
export function sweptRow(owner: Owner, work: Work, charge: Charge, error: string): UsageInput {
  return {
    ...about(owner, work),
    ...amounts(charge),
    id: owner.request,
    duration_ms: null,
    prompt_tokens: 0,
    completion_tokens: 0,
    counts_toward_budget: true,
    status: 'error',
    error,
    settled_by: 'sweep',
  }
}

const nothing: Pick<Charge, 'cost' | 'breakdown' | 'meters'> = { cost: 0n, breakdown: [], meters: {} }

function about({ request, organization, workspace, key, user, endpoint }: Owner, work: Work) {
  return {
    request,
    organization,
    workspace,
    key_id: key,
    user_id: user,
    endpoint,
    model: work.model,
    provider: work.provider,
    began_at: work.beganAt.toISOString(),
    settled_at: work.endedAt.toISOString(),
  }
}

const amounts = ({ cost, breakdown, meters }: Pick<Charge, 'cost' | 'breakdown' | 'meters'>) => ({
  cost: costColumn(cost),
  pricing_breakdown: breakdown,
  billing_meters: meters,
})

const costColumn = (cost: Cost | null): string | null => (cost === null ? null : String(cost))

const ownerOf = ({ tenancy, endpoint }: UsageSettled): Owner => ({
  request: tenancy.request,
  organization: tenancy.organization,
  workspace: tenancy.workspace,
  key: tenancy.key,
  user: tenancy.user,
  endpoint,
})

import { type billingQuote, type Cost, costAtPrice, Fault } from '@tollgate/contracts'
import type { Database } from '@tollgate/db'
import type { z } from 'zod'
import { capped } from './amounts.ts'
import { batched } from './batched.ts'
import { jsonRows } from './json-rows.ts'
import { settleBatch } from './metrics.ts'
import type { PriceBook } from './price-book.ts'
import type { Prices, Span } from './price-table.ts'
import { pricingRefusal, type Reservation } from './pricing-required.ts'
import { recordset } from './recordset.ts'

/** A hold stands a day at most, whatever end it was given. */
const LONGEST_HOLD_MS = 24 * 60 * 60 * 1_000

export interface Reserver {
  /** The hold's id, which is the request's: reserving again gives the same hold. */
  reserve(request: Reservation, signal?: AbortSignal): Promise<string>
  /** Reservations that wait for a statement. */
  waiting(): number
}

const holds = recordset({
  id: 'text',
  organization: 'text',
  workspace: 'text',
  key_id: 'text',
  user_id: 'text',
  endpoint: 'text',
  model: 'text',
  provider: 'text',
  estimate: 'bigint',
  budget_exempt: 'boolean',
  ends_at: 'timestamptz',
})

/** A hold that is there already is given back only to whom it belongs. */
const insertHolds = `
  insert into billing.holds as held (${holds.list()}) select ${holds.list()} from ${holds.from('$1')} order by id
  on conflict (id) do update set ends_at = greatest(held.ends_at, excluded.ends_at)
  where held.organization = excluded.organization and held.workspace = excluded.workspace
  returning id`

export function reserver(db: Database, book: PriceBook, requirePricing: boolean): Reserver {
  const insert = db.prepare<{ id: string }>('billing_reserve', insertHolds)

  async function insertAll(requests: Reservation[]): Promise<boolean[]> {
    const first = new Map<string, Reservation>()
    for (const request of requests) {
      if (!first.has(request.tenancy.request)) first.set(request.tenancy.request, request)
    }
    const rows = await insert([jsonRows([...first.values()].map((request) => holdInput(request, book.now())))])
    settleBatch.record(requests.length, { event: 'reserve' })
    const held = new Set(rows.map(({ id }) => id))
    return requests.map((request) => {
      const owner = first.get(request.tenancy.request)
      return held.has(request.tenancy.request) && owner !== undefined && sameOwner(owner, request)
    })
  }

  const batch = batched({ most: 64, inFlight: 4, mostWaiting: 4_096, run: insertAll })

  return {
    async reserve(request, signal) {
      if (requirePricing && !request.budgetExempt) await checkPrices(book, request)
      const held = await batch.add(request, signal)
      if (!held) throw new Fault('conflict', 'the request id is in use')
      return request.tenancy.request
    },
    waiting: batch.waiting,
  }
}

/** Prices each candidate of a chain, as reserving it would; a refusal is made sure of. */
export async function quote(
  book: PriceBook,
  requirePricing: boolean,
  { candidates, estimate, budgetExempt }: z.output<typeof billingQuote.input>,
): Promise<z.input<typeof billingQuote.output>> {
  const refusalOf = (candidate: (typeof candidates)[number]) =>
    requirePricing && !budgetExempt ? pricingRefusal(candidate, book.now(), present()) : undefined
  if (candidates.some(refusalOf)) await book.refresh()
  return {
    candidates: candidates.map((candidate) => ({
      refusal: refusalOf(candidate)?.message ?? null,
      estimate: String(estimatedCost({ ...candidate, estimate }, book.now())),
    })),
  }
}

/** A refusal is made sure of: the price may have been set on another replica just now. */
async function checkPrices(book: PriceBook, request: Reservation): Promise<void> {
  if (!pricingRefusal(request, book.now(), present())) return
  await book.refresh()
  const refusal = pricingRefusal(request, book.now(), present())
  if (refusal) throw refusal
}

function holdInput(request: Reservation, prices: Prices) {
  const { tenancy } = request
  return {
    id: tenancy.request,
    organization: tenancy.organization,
    workspace: tenancy.workspace,
    key_id: tenancy.key,
    user_id: tenancy.user,
    endpoint: request.endpoint,
    model: request.model,
    provider: request.provider,
    estimate: String(estimatedCost(request, prices)),
    budget_exempt: request.budgetExempt,
    ends_at: new Date(Math.min(request.endsAt, Date.now() + LONGEST_HOLD_MS)).toISOString(),
  }
}

/** What the request is expected to cost in tokens; nothing when its model has no price. */
function estimatedCost({ modelKeys, estimate }: Pick<Reservation, 'modelKeys' | 'estimate'>, prices: Prices): Cost {
  const price = prices.ofModel(modelKeys, present())
  if (!price) return 0n
  const { inputTokens, outputTokens } = estimate
  return capped(costAtPrice(price.input, BigInt(inputTokens)) + costAtPrice(price.output, BigInt(outputTokens)))
}

function present(): Span {
  const now = new Date()
  return { beganAt: now, endedAt: now }
}

const sameOwner = ({ tenancy: a }: Reservation, { tenancy: b }: Reservation): boolean =>
  a.organization === b.organization && a.workspace === b.workspace

import { instancePriceKeys, otariPriceKeys } from '@tollgate/contracts'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { setPrice } from '../src/price-store.ts'
import { reserver } from '../src/reserve.ts'
import type { BillingTables } from '../src/tables.ts'
import { reservation, tenancyOf } from './events.ts'
import { kinds, type Ledger, openLedger } from './ledgers.ts'

const needs = (tool: string) => ({ tool, keys: otariPriceKeys(tool) })
const exaSearch = { tool: 'web_search', keys: instancePriceKeys('search', 'exa', 'exa-search') }
const refusalOf = (tool: string) =>
  `The gateway tool '${tool}' has no pricing, and this gateway runs with require_pricing enabled, so it will not run work it cannot bill. Set a per-request price for model_key 'otari:${tool}' (POST /api/v1/pricing, or the dashboard's Tools & Guardrails screen), or set require_pricing to false to serve it unpriced.`

describe.each(kinds)('reserving in %s', (kind) => {
  let ledger: Ledger
  const strict = () => reserver(ledger.db, ledger.book, true)
  const held = (id: string) =>
    ledger.db
      .typed<BillingTables>()
      .kysely.selectFrom('billing.holds')
      .selectAll()
      .where('id', '=', id)
      .executeTakeFirst()

  beforeAll(async () => {
    ledger = await openLedger(kind)
  })
  afterAll(() => ledger.close())
  beforeEach(async () => {
    await ledger.clearPrices()
    await ledger.price('acme:m-large', '2', { outputPricePerMillion: '10' })
    await ledger.book.refresh()
  })

  test('writes a hold that says whose it is, until when, and what is expected to be spent', async () => {
    const request = reservation()
    expect(await strict().reserve(request)).toBe(request.tenancy.request)
    expect(await held(request.tenancy.request)).toMatchObject({
      organization: 'org',
      workspace: 'ws',
      key_id: 'key-1',
      user_id: 'alice',
      endpoint: '/api/v1/chat/completions',
      model: 'm-large',
      provider: 'acme',
      estimate: 7_000n, // 1,000 in at $2 and 500 out at $10 per million
      budget_exempt: false,
      ends_at: new Date(request.endsAt),
    })
  })

  test('is one hold however often it is asked for, alone or at once', async () => {
    const { reserve } = strict()
    const request = reservation()
    const ids = await Promise.all(Array.from({ length: 20 }, () => reserve(request)))
    ids.push(await reserve({ ...request, endsAt: request.endsAt + 5_000 }))
    expect(new Set(ids)).toEqual(new Set([request.tenancy.request]))
    expect(await ledger.holds(request.tenancy.request)).toBe(1)
    expect(await held(request.tenancy.request)).toMatchObject({ ends_at: new Date(request.endsAt + 5_000) })
  })

  test('never gives one tenant the hold of another', async () => {
    const { reserve } = strict()
    const request = reservation()
    const foreign = reservation({ tenancy: tenancyOf(request.tenancy.request, { workspace: 'other' }) })
    const together = await Promise.allSettled([reserve(request), reserve(foreign)])
    expect(together.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
    await expect(reserve(foreign)).rejects.toMatchObject({ failure: 'conflict' })
    expect(await held(request.tenancy.request)).toMatchObject({ workspace: 'ws' })
  })

  test('takes hundreds at once', async () => {
    const { reserve, waiting } = strict()
    const requests = Array.from({ length: 300 }, () => reservation())
    const ids = await Promise.all(requests.map((request) => reserve(request)))
    expect(ids).toEqual(requests.map(({ tenancy }) => tenancy.request))
    expect(waiting()).toBe(0)
  })

  test('lets no request be hurt by another whose text or time cannot be stored', async () => {
    const { reserve } = strict()
    const requests = [
      reservation(),
      reservation({ model: 'nul\0 \ud800' }),
      reservation({ endsAt: -1e18 }),
      reservation(),
    ]
    const outcomes = await Promise.allSettled(requests.map((request) => reserve(request)))
    expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
  })

  test('lets a hold stand a day at most', async () => {
    const request = reservation({ endsAt: Number.MAX_SAFE_INTEGER })
    await strict().reserve(request)
    const hold = await held(request.tenancy.request)
    expect(hold!.ends_at.getTime() - Date.now()).toBeLessThanOrEqual(24 * 60 * 60 * 1_000)
  })

  test('P-15 P-17 refuses a tool that no row prices, with the row to set, and holds nothing', async () => {
    for (const tool of ['web_search', 'web_fetch', 'code_execution']) {
      const request = reservation({ tools: [needs(tool)] })
      await expect(strict().reserve(request)).rejects.toMatchObject({
        failure: 'pricing_required',
        status: 402,
        message: refusalOf(tool),
      })
      expect(await ledger.holds(request.tenancy.request)).toBe(0)
    }
    await ledger.price('otari:web_search', '10000')
    await expect(strict().reserve(reservation({ tools: [needs('web_search')] }))).resolves.toBeTruthy()
  })

  test("P-16 is satisfied by an instance's own row, by its old row and by the otari row, at zero too", async () => {
    const request = () => reservation({ tools: [exaSearch] })
    const zero = {
      inputPricePerMillion: '0',
      outputPricePerMillion: '0',
      cacheReadPricePerMillion: null,
      cacheWritePricePerMillion: null,
      effectiveAt: '2026-01-01T00:00:00Z',
    }
    for (const row of [
      { kind: 'search', modelKey: 'exa-search' },
      { kind: 'model', modelKey: 'exa:exa-search' },
      { kind: 'model', modelKey: 'otari:web_search' },
    ] as const) {
      await expect(strict().reserve(request())).rejects.toMatchObject({
        failure: 'pricing_required',
        message: refusalOf('web_search'),
      })
      await setPrice(ledger.db, { ...zero, ...row })
      await expect(strict().reserve(request())).resolves.toBeTruthy()
      await ledger.clearPrices()
      await ledger.price('acme:m-large', '2')
      await ledger.book.refresh()
    }
  })

  test('P-16 is not satisfied by rows that settlement would not use', async () => {
    await setPrice(ledger.db, {
      kind: 'fetch',
      modelKey: 'exa-search',
      inputPricePerMillion: '1',
      outputPricePerMillion: '0',
      cacheReadPricePerMillion: null,
      cacheWritePricePerMillion: null,
      effectiveAt: '2026-01-01T00:00:00Z',
    })
    await ledger.price('otari:*', '1')
    await ledger.price('exa:*', '1')
    await ledger.price('otari:web_search', '1', { effectiveAt: '2999-01-01T00:00:00Z' })
    await expect(strict().reserve(reservation({ tools: [exaSearch] }))).rejects.toMatchObject({
      failure: 'pricing_required',
    })
  })

  test('P-18 serves a key that is exempt from budgets without any price', async () => {
    const exempt = reservation({
      tools: [needs('web_search')],
      modelKeys: [{ kind: 'model', key: 'acme:unknown' }],
      budgetExempt: true,
    })
    await strict().reserve(exempt)
    expect(await held(exempt.tenancy.request)).toMatchObject({ budget_exempt: true, estimate: 0n })
  })

  test('P-64 serves everything without a price when prices are not required', async () => {
    const { reserve } = reserver(ledger.db, ledger.book, false)
    const request = reservation({ tools: [needs('web_search')], modelKeys: [{ kind: 'model', key: 'acme:unknown' }] })
    await expect(reserve(request)).resolves.toBe(request.tenancy.request)
  })

  test('P-19 names the first of several unpriced tools, in the order they were declared', async () => {
    const tools = [needs('web_fetch'), needs('code_execution'), needs('web_search')]
    await expect(strict().reserve(reservation({ tools }))).rejects.toThrow(refusalOf('web_fetch'))
    await ledger.price('otari:web_fetch', '1')
    await expect(strict().reserve(reservation({ tools }))).rejects.toThrow(refusalOf('code_execution'))
    await expect(strict().reserve(reservation({ tools: tools.reverse() }))).rejects.toThrow(refusalOf('web_search'))
  })

  test('BR-142 refuses a model that no row prices, after the tools', async () => {
    const modelKeys = [{ kind: 'model' as const, key: 'other:m' }]
    const refused = strict().reserve(reservation({ modelKeys }))
    await expect(refused).rejects.toMatchObject({ failure: 'pricing_required', status: 402 })
    await expect(refused).rejects.toThrow("model_key 'other:m' (POST /api/v1/pricing)")
    await expect(strict().reserve(reservation({ modelKeys, tools: [needs('web_search')] }))).rejects.toThrow(
      refusalOf('web_search'),
    )
    await ledger.price('other:*', '0')
    await expect(strict().reserve(reservation({ modelKeys }))).resolves.toBeTruthy()
    await expect(strict().reserve(reservation({ modelKeys: [] }))).resolves.toBeTruthy()
  })

  test('believes a price that another replica set a moment ago', async () => {
    const other = await ledger.replica()
    await ledger.price('otari:web_search', '1')
    const { reserve } = reserver(other.db, other.book, true)
    await expect(reserve(reservation({ tools: [needs('web_search')] }))).resolves.toBeTruthy()
  })

  test('is not done for a caller who has left', async () => {
    const gone = AbortSignal.abort()
    const request = reservation()
    await expect(strict().reserve(request, gone)).rejects.toMatchObject({ failure: 'cancelled' })
    expect(await ledger.holds(request.tenancy.request)).toBe(0)
  })
})

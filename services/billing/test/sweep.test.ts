import { instancePriceKeys } from '@tollgate/contracts'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chargeLate } from '../src/late-calls.ts'
import { releaseHold } from '../src/release.ts'
import { reserver } from '../src/reserve.ts'
import { settler } from '../src/settle.ts'
import { SWEEP_BATCH, sweepHolds } from '../src/sweep.ts'
import { SWEPT } from '../src/swept.ts'
import { type ToolEvent, toolLineStore } from '../src/tool-lines.ts'
import { call, reservation, settlement, tenancyOf } from './events.ts'
import { kinds, type Ledger, openLedger } from './ledgers.ts'

describe.each(kinds)('requests that nobody settled, in %s', (kind) => {
  let ledger: Ledger
  let settle: ReturnType<typeof settler>
  let keep: (events: ToolEvent[]) => Promise<void>
  let hold: () => Promise<ReturnType<typeof tenancyOf>>
  const sweep = () => sweepHolds(ledger.db, ledger.book, 0)

  beforeAll(async () => {
    ledger = await openLedger(kind)
    const { db, book } = ledger
    await ledger.price('acme:m-large', '2', { outputPricePerMillion: '10' })
    await ledger.price('exa-search', '5000', { kind: 'search' })
    await book.refresh()
    settle = settler(db, book)
    const store = toolLineStore(db)
    keep = async (events) => {
      for (const tenancy of await store(events)) await chargeLate(db, book, tenancy)
    }
    const { reserve } = reserver(db, book, false)
    hold = async () => {
      const tenancy = tenancyOf()
      await reserve(reservation({ tenancy }))
      return tenancy
    }
  })
  afterAll(() => ledger.close())

  const search = () =>
    call('web_search', { label: 'exa:exa-search', priceKeys: instancePriceKeys('search', 'exa', 'exa-search') })
  const ran = (tenancy: ReturnType<typeof tenancyOf>, line = search()) => ({ hold: tenancy.request, tenancy, line })

  test('BR-149 are settled with the calls that were seen, once their time is over', async () => {
    const tenancy = await hold()
    await keep([ran(tenancy), ran(tenancy), ran(tenancy, { ...search(), outcome: 'error' })])
    await sweep()
    expect(await ledger.usage(tenancy.request)).toEqual([])
    await ledger.expire(tenancy.request)
    await sweep()
    expect(await ledger.usage(tenancy.request)).toMatchObject([
      {
        id: tenancy.request,
        key: 'key-1',
        model: 'm-large',
        endpoint: '/api/v1/chat/completions',
        cost: '0.010000',
        status: 'error',
        error: SWEPT,
        settledBy: 'sweep',
        totalTokens: 0,
        durationMs: null,
        billingMeters: { tools: { web_search: { billed: 2, errors: 1, unit_rate: '0.00500000' } } },
        pricingBreakdown: [{ meter: 'web_search_calls', label: 'exa:exa-search', units: 2, cost: '0.010000' }],
      },
    ])
    expect(await ledger.holds(tenancy.request)).toBe(0)
  })

  test('are left alone for as long as their settlement may still come', async () => {
    const tenancy = await hold()
    await ledger.expire(tenancy.request) // an hour ago
    await sweepHolds(ledger.db, ledger.book, 2 * 60 * 60 * 1_000)
    expect(await ledger.holds(tenancy.request)).toBe(1)
    await sweepHolds(ledger.db, ledger.book, 30 * 60 * 1_000)
    expect(await ledger.holds(tenancy.request)).toBe(0)
    expect(await ledger.usage(tenancy.request)).toMatchObject([
      { cost: '0.000000', settledBy: 'sweep', pricingBreakdown: [] },
    ])
  })

  test('are swept once by many replicas at the same time', async () => {
    const tenancies = await Promise.all(Array.from({ length: SWEEP_BATCH + 10 }, hold))
    await keep(tenancies.map((tenancy) => ran(tenancy)))
    await Promise.all(tenancies.map(({ request }) => ledger.expire(request)))
    const replicas = await Promise.all([1, 2, 3].map(() => ledger.replica()))
    let swept = 0
    for (let round = 0; round < 3; round++) {
      const counts = await Promise.all(replicas.map(({ db, book }) => sweepHolds(db, book, 0)))
      swept += counts.reduce((sum, count) => sum + count, 0)
    }
    expect(swept).toBe(tenancies.length)
    const { rows } = await sql<{ n: bigint; cost: string }>`
      select count(*) as n, sum(cost) as cost from billing.usage where id in (${sql.join(tenancies.map(({ request }) => request))})`.execute(
      ledger.db.kysely,
    )
    expect(rows).toEqual([{ n: BigInt(tenancies.length), cost: String(tenancies.length * 5_000) }])
  })

  test('a late settlement takes the place of the row that a sweep made, and then stands', async () => {
    const tenancy = await hold()
    const line = search()
    await keep([ran(tenancy, line)])
    await ledger.expire(tenancy.request)
    await sweep()
    await settle([settlement(tenancy, { lines: [line] })])
    expect(await ledger.usage(tenancy.request)).toMatchObject([
      { cost: '0.008000', settledBy: 'gateway', status: 'success', error: null, totalTokens: 1_100 },
    ])
    await settle([settlement(tenancy, { status: 'error' })])
    await keep([ran(tenancy)])
    expect(await ledger.usage(tenancy.request)).toMatchObject([{ cost: '0.008000', status: 'success' }])
  })

  test('a late call is added to the row that a sweep made, once', async () => {
    const tenancy = await hold()
    await keep([ran(tenancy)])
    await ledger.expire(tenancy.request)
    await sweep()
    const late = ran(tenancy)
    await Promise.all(Array.from({ length: 20 }, () => keep([late])))
    await Promise.all([keep([ran(tenancy)]), keep([ran(tenancy)])])
    expect(await ledger.usage(tenancy.request)).toMatchObject([
      { cost: '0.020000', settledBy: 'sweep', billingMeters: { tools: { web_search: { billed: 4 } } } },
    ])
  })

  test('a settlement and a sweep at the same moment make one row, the settlement’s', async () => {
    const tenancies = await Promise.all(Array.from({ length: 20 }, hold))
    const lines = tenancies.map(() => search())
    await Promise.all(tenancies.map(({ request }) => ledger.expire(request)))
    const replica = await ledger.replica()
    await Promise.all([
      settle(tenancies.map((tenancy, n) => settlement(tenancy, { lines: [lines[n]!] }))),
      sweepHolds(replica.db, replica.book, 0),
      keep(tenancies.map((tenancy, n) => ran(tenancy, lines[n]!))),
      sweepHolds(replica.db, replica.book, 0),
    ])
    for (const { request } of tenancies) {
      expect(await ledger.usage(request)).toMatchObject([{ cost: '0.008000', settledBy: 'gateway' }])
      expect(await ledger.holds(request)).toBe(0)
    }
  })

  test('P-46 BR-149 a hold of a request that did nothing is given back and leaves no row', async () => {
    const tenancy = await hold()
    await Promise.all([1, 2, 3].map(() => releaseHold(ledger.db, ledger.book, tenancy.request, tenancy)))
    expect(await ledger.holds(tenancy.request)).toBe(0)
    expect(await ledger.usage(tenancy.request)).toEqual([])
  })

  test('P-46 a hold of a request whose tools ran is settled when it is given back', async () => {
    const tenancy = await hold()
    await keep([ran(tenancy)])
    await releaseHold(ledger.db, ledger.book, tenancy.request, tenancy)
    expect(await ledger.usage(tenancy.request)).toMatchObject([
      { cost: '0.005000', status: 'error', settledBy: 'sweep' },
    ])
    expect(await ledger.holds(tenancy.request)).toBe(0)
  })

  test('a call that was reported after its hold had been given back is charged', async () => {
    const tenancy = await hold()
    await releaseHold(ledger.db, ledger.book, tenancy.request, tenancy)
    const late = ran(tenancy)
    await Promise.all([keep([late]), keep([late])])
    expect(await ledger.usage(tenancy.request)).toMatchObject([
      { cost: '0.005000', settledBy: 'sweep', workspace: 'ws', key: 'key-1' },
    ])
    await settle([settlement(tenancy, { lines: [late.line] })])
    expect(await ledger.usage(tenancy.request)).toMatchObject([{ cost: '0.008000', settledBy: 'gateway' }])
  })

  test('a call and a give-back at the same moment never lose the call', async () => {
    const replica = await ledger.replica()
    for (let round = 0; round < 15; round++) {
      const tenancy = await hold()
      const giveBack = () => releaseHold(replica.db, replica.book, tenancy.request, tenancy)
      await Promise.all(round % 2 ? [keep([ran(tenancy)]), giveBack()] : [giveBack(), keep([ran(tenancy)])])
      expect(await ledger.usage(tenancy.request)).toMatchObject([{ cost: '0.005000' }])
      expect(await ledger.holds(tenancy.request)).toBe(0)
    }
  })

  test('another workspace cannot give a hold back', async () => {
    const tenancy = await hold()
    await releaseHold(ledger.db, ledger.book, tenancy.request, tenancyOf(tenancy.request, { workspace: 'other' }))
    await releaseHold(ledger.db, ledger.book, tenancy.request, tenancyOf(tenancy.request, { organization: 'other' }))
    expect(await ledger.holds(tenancy.request)).toBe(1)
  })

  test('what ran is priced as of the time the request began', async () => {
    const tenancy = await hold()
    const line = call('web_fetch')
    await keep([ran(tenancy, line)])
    await ledger.price('otari:web_fetch', '1000', { effectiveAt: new Date(Date.now() - 60_000).toISOString() })
    await ledger.price('otari:web_fetch', '9000', { effectiveAt: new Date(Date.now() + 60_000).toISOString() })
    await ledger.expire(tenancy.request)
    await sweep()
    expect(await ledger.usage(tenancy.request)).toMatchObject([{ cost: '0.001000' }])
  })
})

import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { SWEEP_BATCH, sweepHolds } from '../src/sweep.ts'
import { SWEPT } from '../src/swept.ts'
import { call, settlement, tenancyOf } from './events.ts'
import { kinds } from './ledgers.ts'
import { openWorkbench, operationsOn, ran, search, type Workbench } from './workbench.ts'

describe.each(kinds)('requests that nobody settled, in %s', (kind) => {
  let bench: Workbench
  beforeAll(async () => {
    bench = await openWorkbench(kind)
  })
  afterAll(() => bench.ledger.close())

  test('are settled with the calls that were seen, once their time is over', async () => {
    const tenancy = await bench.hold()
    await bench.report([ran(tenancy), ran(tenancy), ran(tenancy, { ...search(), outcome: 'error' })])
    await bench.sweep()
    expect(await bench.ledger.usage(tenancy.request)).toEqual([])
    await bench.ledger.expire(tenancy.request)
    await bench.sweep()
    expect(await bench.ledger.usage(tenancy.request)).toMatchObject([
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
    expect(await bench.ledger.holds(tenancy.request)).toBe(0)
  })

  test('are left alone for as long as their settlement may still come', async () => {
    const tenancy = await bench.hold()
    await bench.ledger.expire(tenancy.request) // an hour ago
    await sweepHolds(bench.ledger.db, bench.ledger.book, 2 * 60 * 60 * 1_000)
    expect(await bench.ledger.holds(tenancy.request)).toBe(1)
    await sweepHolds(bench.ledger.db, bench.ledger.book, 30 * 60 * 1_000)
    expect(await bench.ledger.holds(tenancy.request)).toBe(0)
    expect(await bench.ledger.usage(tenancy.request)).toMatchObject([
      { cost: '0.000000', settledBy: 'sweep', pricingBreakdown: [] },
    ])
  })

  test('are swept once by many replicas at the same time', async () => {
    const tenancies = await Promise.all(Array.from({ length: SWEEP_BATCH + 10 }, bench.hold))
    await bench.report(tenancies.map((tenancy) => ran(tenancy)))
    await Promise.all(tenancies.map(({ request }) => bench.ledger.expire(request)))
    const replicas = await Promise.all([1, 2, 3].map(async () => operationsOn(await bench.ledger.replica())))
    let swept = 0
    for (let round = 0; round < 3; round++) {
      const counts = await Promise.all(replicas.map((replica) => replica.sweep()))
      swept += counts.reduce((sum, count) => sum + count, 0)
    }
    expect(swept).toBe(tenancies.length)
    const { rows } = await sql<{ n: bigint; cost: string }>`
      select count(*) as n, sum(cost) as cost from billing.usage where id in (${sql.join(tenancies.map(({ request }) => request))})`.execute(
      bench.ledger.db.kysely,
    )
    expect(rows).toEqual([{ n: BigInt(tenancies.length), cost: String(tenancies.length * 5_000) }])
  })

  test('a late settlement takes the place of the row that a sweep made, and then stands', async () => {
    const tenancy = await bench.hold()
    const line = search()
    await bench.report([ran(tenancy, line)])
    await bench.ledger.expire(tenancy.request)
    await bench.sweep()
    await bench.settle([settlement(tenancy, { lines: [line] })])
    expect(await bench.ledger.usage(tenancy.request)).toMatchObject([
      { cost: '0.008000', settledBy: 'gateway', status: 'success', error: null, totalTokens: 1_100 },
    ])
    await bench.settle([settlement(tenancy, { status: 'error' })])
    await bench.report([ran(tenancy)])
    expect(await bench.ledger.usage(tenancy.request)).toMatchObject([{ cost: '0.008000', status: 'success' }])
  })

  test('a late call is added to the row that a sweep made, once', async () => {
    const tenancy = await bench.hold()
    await bench.report([ran(tenancy)])
    await bench.ledger.expire(tenancy.request)
    await bench.sweep()
    const late = ran(tenancy)
    await Promise.all(Array.from({ length: 20 }, () => bench.report([late])))
    await Promise.all([bench.report([ran(tenancy)]), bench.report([ran(tenancy)])])
    expect(await bench.ledger.usage(tenancy.request)).toMatchObject([
      { cost: '0.020000', settledBy: 'sweep', billingMeters: { tools: { web_search: { billed: 4 } } } },
    ])
  })

  test('a settlement and a sweep at the same moment make one row, the settlement’s', async () => {
    const tenancies = await Promise.all(Array.from({ length: 20 }, bench.hold))
    const lines = tenancies.map(() => search())
    await Promise.all(tenancies.map(({ request }) => bench.ledger.expire(request)))
    const replica = operationsOn(await bench.ledger.replica())
    await Promise.all([
      bench.settle(tenancies.map((tenancy, n) => settlement(tenancy, { lines: [lines[n]!] }))),
      replica.sweep(),
      bench.report(tenancies.map((tenancy, n) => ran(tenancy, lines[n]!))),
      replica.sweep(),
    ])
    for (const { request } of tenancies) {
      expect(await bench.ledger.usage(request)).toMatchObject([{ cost: '0.008000', settledBy: 'gateway' }])
      expect(await bench.ledger.holds(request)).toBe(0)
    }
  })

  test('P-46 a hold of a request that did nothing is given back and leaves no row', async () => {
    const tenancy = await bench.hold()
    await Promise.all([1, 2, 3].map(() => bench.release(tenancy)))
    expect(await bench.ledger.holds(tenancy.request)).toBe(0)
    expect(await bench.ledger.usage(tenancy.request)).toEqual([])
  })

  test('P-46 a hold of a request whose tools ran is settled when it is given back', async () => {
    const tenancy = await bench.hold()
    await bench.report([ran(tenancy)])
    await bench.release(tenancy)
    expect(await bench.ledger.usage(tenancy.request)).toMatchObject([
      { cost: '0.005000', status: 'error', settledBy: 'sweep' },
    ])
    expect(await bench.ledger.holds(tenancy.request)).toBe(0)
  })

  test('a call that was reported after its hold had been given back is charged', async () => {
    const tenancy = await bench.hold()
    await bench.release(tenancy)
    const late = ran(tenancy)
    await Promise.all([bench.report([late]), bench.report([late])])
    expect(await bench.ledger.usage(tenancy.request)).toMatchObject([
      { cost: '0.005000', settledBy: 'sweep', workspace: 'ws', key: 'key-1' },
    ])
    await bench.settle([settlement(tenancy, { lines: [late.line] })])
    expect(await bench.ledger.usage(tenancy.request)).toMatchObject([{ cost: '0.008000', settledBy: 'gateway' }])
  })

  test('a call and a give-back at the same moment never lose the call', async () => {
    const replica = operationsOn(await bench.ledger.replica())
    for (let round = 0; round < 15; round++) {
      const tenancy = await bench.hold()
      const giveBack = () => replica.release(tenancy)
      await Promise.all(
        round % 2 ? [bench.report([ran(tenancy)]), giveBack()] : [giveBack(), bench.report([ran(tenancy)])],
      )
      expect(await bench.ledger.usage(tenancy.request)).toMatchObject([{ cost: '0.005000' }])
      expect(await bench.ledger.holds(tenancy.request)).toBe(0)
    }
  })

  test('another workspace cannot give a hold back', async () => {
    const tenancy = await bench.hold()
    await bench.release(tenancyOf(tenancy.request, { workspace: 'other' }))
    await bench.release(tenancyOf(tenancy.request, { organization: 'other' }))
    expect(await bench.ledger.holds(tenancy.request)).toBe(1)
  })

  test('what ran is priced as of the time the request began', async () => {
    const tenancy = await bench.hold()
    const line = call('web_fetch')
    await bench.report([ran(tenancy, line)])
    await bench.ledger.price('otari:web_fetch', '1000', { effectiveAt: new Date(Date.now() - 60_000).toISOString() })
    await bench.ledger.price('otari:web_fetch', '9000', { effectiveAt: new Date(Date.now() + 60_000).toISOString() })
    await bench.ledger.expire(tenancy.request)
    await bench.sweep()
    expect(await bench.ledger.usage(tenancy.request)).toMatchObject([{ cost: '0.001000' }])
  })
})

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { settlement } from './events.ts'
import { kinds } from './ledgers.ts'
import { openWorkbench, search, type Workbench } from './workbench.ts'

describe.each(kinds)('a request of several attempts, in %s', (kind) => {
  let bench: Workbench
  beforeAll(async () => {
    bench = await openWorkbench(kind)
  })
  afterAll(() => bench.ledger.close())

  test('P-45 calls of attempts that failed are charged once, on the final row, and their own rows carry nothing', async () => {
    const tenancy = await bench.hold()
    const event = settlement(tenancy, {
      lines: [search(), search()],
      absorbed: [{ attempt: 0, model: 'm-first', provider: 'beta', error: 'upstream failed', durationMs: 12 }],
    })
    await Promise.all([bench.settle([event]), bench.settle([event])])
    const [own, absorbed, ...more] = await bench.ledger.usage(tenancy.request)
    expect(more).toEqual([])
    expect(own).toMatchObject({ id: tenancy.request, cost: '0.013000', countsTowardBudget: true })
    expect(own?.billingMeters).toMatchObject({ tools: { web_search: { billed: 2 } } })
    expect(absorbed).toMatchObject({
      id: `${tenancy.request}.0`,
      model: 'm-first',
      provider: 'beta',
      status: 'absorbed',
      error: 'upstream failed',
      cost: '0.000000',
      countsTowardBudget: false,
      billingMeters: {},
      pricingBreakdown: [],
      totalTokens: 0,
      durationMs: 12,
    })
  })

  test('P-49 a candidate that was passed over leaves a row that says why and costs nothing', async () => {
    const tenancy = await bench.hold()
    const error = 'Skipped: web search is not enabled for this workspace'
    await bench.settle([
      settlement(tenancy, {
        absorbed: [{ attempt: 1, model: 'mistral-large', provider: 'mistral', error, durationMs: 0 }],
      }),
    ])
    const rows = await bench.ledger.usage(tenancy.request)
    expect(
      rows.map(({ status, error, cost, countsTowardBudget }) => ({ status, error, cost, countsTowardBudget })),
    ).toEqual([
      { status: 'success', error: null, cost: '0.003000', countsTowardBudget: true },
      { status: 'absorbed', error, cost: '0.000000', countsTowardBudget: false },
    ])
  })
})

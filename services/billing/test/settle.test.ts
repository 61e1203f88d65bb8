import { billingUsage } from '@tollgate/contracts'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { reserver } from '../src/reserve.ts'
import { listUsage } from '../src/usage-list.ts'
import { call, model, reservation, settlement, tenancyOf } from './events.ts'
import { kinds } from './ledgers.ts'
import { openWorkbench, operationsOn, ran, search, type Workbench } from './workbench.ts'

describe.each(kinds)('settling in %s', (kind) => {
  let bench: Workbench
  beforeAll(async () => {
    bench = await openWorkbench(kind)
  })
  afterAll(() => bench.ledger.close())

  const lineCount = async (request: string) => {
    const counted = sql<{ n: bigint }>`select count(*) as n from billing.tool_lines where request = ${request}`
    return Number((await counted.execute(bench.ledger.db.kysely)).rows[0]?.n)
  }

  test('P-21 writes one row with everything the request did, and ends the hold', async () => {
    const tenancy = await bench.hold()
    const lines = [search(), call('code_execution'), { ...search(), outcome: 'error' as const }]
    const tokens = { input: 1_000, output: 100, cacheRead: 50, reasoning: 20 }
    const event = settlement(tenancy, { lines, tokens, durationMs: 1_234.5 })
    await bench.settle([event])
    expect(await bench.ledger.usage(tenancy.request)).toEqual([
      {
        id: tenancy.request,
        organization: 'org',
        workspace: 'ws',
        key: 'key-1',
        user: 'alice',
        timestamp: event.at,
        model: 'm-large',
        provider: 'acme',
        endpoint: '/api/v1/chat/completions',
        promptTokens: 1_050,
        completionTokens: 100,
        totalTokens: 1_150,
        billingMeters: {
          cache_read_tokens: 50,
          reasoning_tokens: 20,
          tools: {
            web_search: { billed: 1, errors: 1, unit_rate: '0.00500000' },
            code_execution: { billed: 1, errors: 0, unit_rate: '0.01000000' },
          },
        },
        pricingBreakdown: [
          { meter: 'input_tokens', label: 'acme:m-large', units: 1_000, unitRate: '0.00000200', cost: '0.002000' },
          { meter: 'output_tokens', label: 'acme:m-large', units: 100, unitRate: '0.00001000', cost: '0.001000' },
          { meter: 'cache_read_tokens', label: 'acme:m-large', units: 50, unitRate: '0.00000200', cost: '0.000100' },
          { meter: 'web_search_calls', label: 'exa:exa-search', units: 1, unitRate: '0.00500000', cost: '0.005000' },
          {
            meter: 'code_execution_calls',
            label: 'otari:code_execution',
            units: 1,
            unitRate: '0.01000000',
            cost: '0.010000',
          },
        ],
        cost: '0.018100',
        status: 'success',
        error: null,
        settledBy: 'gateway',
        durationMs: 1_234.5,
        countsTowardBudget: true,
      },
    ])
    expect(await bench.ledger.holds(tenancy.request)).toBe(0)
    expect(await lineCount(tenancy.request)).toBe(3)
  })

  test('charges once when twenty deliveries come at once, and after', async () => {
    const tenancy = await bench.hold()
    const event = settlement(tenancy, { lines: [search()] })
    await Promise.all(Array.from({ length: 20 }, () => bench.settle([event])))
    await bench.settle([event, event])
    const [row, ...more] = await bench.ledger.usage(tenancy.request)
    expect(more).toEqual([])
    expect(row).toMatchObject({ cost: '0.008000', settledBy: 'gateway' })
    expect(await lineCount(tenancy.request)).toBe(1)
  })

  test('the first delivery stands, whatever a later one says', async () => {
    const tenancy = await bench.hold()
    await bench.settle([settlement(tenancy)])
    await bench.settle([
      settlement(tenancy, { status: 'error', error: 'other', tokens: { input: 9_999_999, output: 0 } }),
    ])
    expect(await bench.ledger.usage(tenancy.request)).toMatchObject([{ status: 'success', cost: '0.003000' }])
  })

  test('many batches with the same requests in other orders do not wait for each other in a circle', async () => {
    const tenancies = await Promise.all(Array.from({ length: 30 }, bench.hold))
    const events = tenancies.map((tenancy) => settlement(tenancy, { lines: [search()] }))
    const tools = events.map(({ tenancy, lines }) => ran(tenancy, lines[0]))
    const mixed = <T>(items: T[], seed: number) => [...items.slice(seed), ...items.slice(0, seed).reverse()]
    await Promise.all(
      [3, 7, 11, 19, 23].flatMap((seed) => [bench.settle(mixed(events, seed)), bench.report(mixed(tools, seed))]),
    )
    for (const { request } of tenancies) expect(await bench.ledger.usage(request)).toMatchObject([{ cost: '0.008000' }])
  })

  test('a call reported before, after, or together with the settlement is charged once', async () => {
    for (const order of ['before', 'after', 'together'] as const) {
      const tenancy = await bench.hold()
      const line = search()
      const tool = ran(tenancy, line)
      const event = settlement(tenancy, { lines: [line] })
      if (order === 'before') await bench.report([tool, tool])
      if (order === 'together') await Promise.all([bench.report([tool]), bench.settle([event]), bench.report([tool])])
      await bench.settle([event])
      await bench.report([tool])
      expect(await bench.ledger.usage(tenancy.request)).toMatchObject([{ cost: '0.008000', settledBy: 'gateway' }])
      expect(await lineCount(tenancy.request)).toBe(1)
    }
  })

  test('a late call that the settlement does not name changes nothing', async () => {
    const tenancy = await bench.hold()
    await bench.settle([settlement(tenancy)])
    await bench.report([ran(tenancy)])
    expect(await bench.ledger.usage(tenancy.request)).toMatchObject([{ cost: '0.003000', settledBy: 'gateway' }])
    expect(await lineCount(tenancy.request)).toBe(0)
  })

  test('P-46 a request that fails after a tool ran is charged for the tool and the tokens', async () => {
    const tenancy = await bench.hold()
    const failed = {
      lines: [search()],
      status: 'error',
      error: 'too many tool calls',
      tokens: { input: 500, output: 0 },
    } as const
    await bench.settle([settlement(tenancy, { ...failed, lines: [...failed.lines] })])
    expect(await bench.ledger.usage(tenancy.request)).toMatchObject([
      { status: 'error', error: 'too many tool calls', cost: '0.006000' },
    ])
    expect(await bench.ledger.holds(tenancy.request)).toBe(0)
  })

  test('a request whose client left is charged for what ran', async () => {
    const tenancy = await bench.hold()
    await bench.settle([
      settlement(tenancy, { lines: [search()], status: 'cancelled', tokens: { input: 0, output: 0 } }),
    ])
    expect(await bench.ledger.usage(tenancy.request)).toMatchObject([{ status: 'cancelled', cost: '0.005000' }])
  })

  test('P-64 work without a price is recorded without a cost', async () => {
    const tenancy = await bench.hold()
    await bench.settle([settlement(tenancy, { priceKeys: [model('acme:free')], lines: [call('lookup')] })])
    const [row] = await bench.ledger.usage(tenancy.request)
    expect(row).toMatchObject({ cost: null, totalTokens: 1_100 })
    expect(row?.pricingBreakdown.every(({ cost, unitRate }) => cost === null && unitRate === null)).toBe(true)
  })

  test('believes a price that another replica set a moment ago', async () => {
    const other = await bench.ledger.replica()
    await bench.ledger.price('acme:brand-new', '3', { effectiveAt: new Date(Date.now() - 60_000).toISOString() })
    const tenancy = await bench.hold()
    const event = settlement(tenancy, { priceKeys: [model('acme:brand-new')], tokens: { input: 1_000_000, output: 0 } })
    await operationsOn(other).settle([event])
    expect(await bench.ledger.usage(tenancy.request)).toMatchObject([{ cost: '3.000000' }])
  })

  test('absurd numbers stop at what a column and a list can hold', async () => {
    const tenancy = await bench.hold()
    const most = Number.MAX_SAFE_INTEGER
    const lines = [call('lookup', { reportedCost: '999999999999999' })]
    await bench.settle([settlement(tenancy, { lines, tokens: { input: most, output: most, cacheRead: most } })])
    const filter = { workspace: null, request: tenancy.request, skip: 0, limit: 1 }
    const listed = billingUsage.output.parse(await listUsage(bench.ledger.db, filter))
    expect(listed.data).toMatchObject([{ cost: '9223372036854.775807', promptTokens: most, totalTokens: most }])
    await bench.ledger.price('acme:dear', '999999999999999')
    await bench.ledger.book.refresh()
    const estimate = { inputTokens: most, outputTokens: most }
    const dear = reservation({ modelKeys: [model('acme:dear')], estimate })
    await expect(reserver(bench.ledger.db, bench.ledger.book, true).reserve(dear)).resolves.toBeTruthy()
  })

  test('a call that a settlement names twice is charged once', async () => {
    const tenancy = await bench.hold()
    const line = search()
    await bench.settle([settlement(tenancy, { lines: [line, line, search()] })])
    expect(await bench.ledger.usage(tenancy.request)).toMatchObject([{ cost: '0.013000' }])
  })

  test('a settlement without a hold is written all the same', async () => {
    const tenancy = tenancyOf()
    await bench.settle([settlement(tenancy)])
    expect(await bench.ledger.usage(tenancy.request)).toMatchObject([{ cost: '0.003000' }])
  })

  test('text that Postgres cannot store does not stop a batch', async () => {
    const tenancies = [await bench.hold(), await bench.hold()]
    const odd = settlement(tenancies[0]!, { model: 'nul\0', error: 'half \ud800', lines: [call('bad\0name')] })
    await bench.settle([odd, settlement(tenancies[1]!)])
    expect(await bench.ledger.usage(tenancies[0]!.request)).toMatchObject([{ model: 'nul', error: 'half \ufffd' }])
    expect(await bench.ledger.usage(tenancies[1]!.request)).toMatchObject([{ cost: '0.003000' }])
  })

  test('a batch with an event that cannot be settled leaves nothing behind, and the others go through without it', async () => {
    const tenancies = [await bench.hold(), await bench.hold()]
    const bad = settlement(tenancies[0]!, { at: '0000-01-01T00:00:00Z', durationMs: 0 })
    const good = settlement(tenancies[1]!)
    await expect(bench.settle([good, bad])).rejects.toThrow()
    expect(await bench.ledger.usage(tenancies[1]!.request)).toEqual([])
    expect(await bench.ledger.holds(tenancies[1]!.request)).toBe(1)
    await bench.settle([good])
    await expect(bench.settle([bad])).rejects.toThrow()
    expect(await bench.ledger.usage(tenancies[1]!.request)).toHaveLength(1)
  })

  test('sums over many rows are exact', async () => {
    const tenancies = await Promise.all(Array.from({ length: 100 }, bench.hold))
    const events = tenancies.map((tenancy, n) =>
      settlement(
        { ...tenancy, key: 'summed' },
        {
          tokens: { input: 0, output: 0 },
          lines: [call('web_search', { reportedCost: `0.${String(n).padStart(6, '0')}` })],
        },
      ),
    )
    for (let from = 0; from < events.length; from += 64) await bench.settle(events.slice(from, from + 64))
    const { rows } = await sql<{
      sum: string
    }>`select sum(cost) as sum from billing.usage where key_id = 'summed'`.execute(bench.ledger.db.kysely)
    expect(rows[0]?.sum).toBe('4950')
  })
})

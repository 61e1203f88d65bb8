import { type Bus, memoryBus } from '@tollgate/bus'
import {
  billingDeletePrice,
  billingPrices,
  billingQuote,
  billingRelease,
  billingReserve,
  billingSetPrice,
  billingUsage,
  changedPrices,
  otariPriceKeys,
  usageSettled,
  usageTool,
} from '@tollgate/contracts'
import type { Database } from '@tollgate/db'
import type { Running } from '@tollgate/service'
import { startTelemetry, type Telemetry } from '@tollgate/telemetry'
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type BillingNeeds, startBilling } from '../src/index.ts'
import { call, reservation, settlement, tenancyOf } from './events.ts'
import { kinds, log, openDatabase } from './ledgers.ts'

const within = () => ({ deadline: Date.now() + 10_000 })

describe.each(kinds)('billing on %s', (kind) => {
  let opened: Awaited<ReturnType<typeof openDatabase>>
  let telemetry: Telemetry
  let bus: Bus
  const running: Running[] = []

  const start = async (more: Partial<BillingNeeds> = {}, db: Database = opened.db) => {
    const service = await startBilling({ bus, log, db, requirePricing: true, sweepEveryMs: 20, ...more })
    running.push(service)
    return service
  }
  const setPrice = (modelKey: string, inputPricePerMillion: string, kind: 'model' | 'search' | 'fetch' = 'model') => {
    const price = {
      kind,
      modelKey,
      inputPricePerMillion,
      outputPricePerMillion: '0',
      cacheReadPricePerMillion: null,
      cacheWritePricePerMillion: null,
      effectiveAt: '2026-01-01T00:00:00Z',
    }
    return bus.call(billingSetPrice, price, within())
  }
  const reserve = (more = reservation()) => bus.call(billingReserve, more, within())
  const usageOf = async (request: string) => (await bus.call(billingUsage, { workspace: null, request }, within())).data
  const ran = (tenancy: ReturnType<typeof tenancyOf>, line = call('lookup')) =>
    bus.record(usageTool, line.id, { hold: tenancy.request, tenancy, line }, within())

  beforeAll(async () => {
    opened = await openDatabase(kind)
    telemetry = startTelemetry({ service: 'test', version: '1', log })
  })
  afterAll(async () => {
    await telemetry.shutdown()
    await opened.close()
  })
  beforeEach(() => {
    bus = memoryBus({ log })
  })
  afterEach(async () => {
    await bus.drain(Date.now() + 5_000)
    await Promise.all(running.splice(0).map((service) => service.close(Date.now() + 5_000)))
  })

  test('P-03 carries a price from its setting to a settled request', async () => {
    await start()
    const row = await setPrice('acme:m-large', '2')
    expect(row).toMatchObject({ kind: 'model', modelKey: 'acme:m-large', inputPricePerMillion: '2' })
    const tenancy = tenancyOf()
    expect(await reserve(reservation({ tenancy }))).toEqual({ hold: tenancy.request })
    const line = call('lookup', { reportedCost: '0.25' })
    await ran(tenancy, line)
    await bus.record(usageSettled, tenancy.request, settlement(tenancy, { lines: [line] }), within())
    expect(await usageOf(tenancy.request)).toMatchObject([{ cost: '0.252000', settledBy: 'gateway' }])
    expect(await bus.call(billingDeletePrice, { kind: 'model', modelKey: 'acme:m-large' }, within())).toEqual({
      deleted: 1,
    })
    expect(await bus.call(billingPrices, {}, within())).toEqual({ data: [], count: 0 })
    await expect(reserve()).rejects.toMatchObject({ failure: 'pricing_required' })
  })

  test('P-15 P-17 refuses over the bus with the text that says what to set', async () => {
    await start()
    const tools = [{ tool: 'web_search', keys: otariPriceKeys('web_search') }]
    const refused = reserve(reservation({ tools }))
    await expect(refused).rejects.toMatchObject({ failure: 'pricing_required', status: 402 })
    await expect(refused).rejects.toThrow(
      "Set a per-request price for model_key 'otari:web_search' (POST /api/v1/pricing",
    )
  })

  test('S-13 X-17 A-16 quotes each candidate of a chain as it would be reserved, and holds nothing', async () => {
    await start()
    await setPrice('acme:priced', '2')
    await setPrice('otari:lookup', '1')
    const { tenancy, budgetExempt } = reservation()
    const estimate = { inputTokens: 1_000_000, outputTokens: 5 }
    const key = (name: string) => [{ kind: 'model' as const, key: name }]
    const tools = (name: string) => [{ tool: name, keys: otariPriceKeys(name) }]
    const candidates = [
      { modelKeys: key('acme:priced'), tools: tools('lookup') },
      { modelKeys: key('acme:priced'), tools: tools('web_search') },
      { modelKeys: key('acme:free'), tools: [] },
    ]
    const quoted = (exempt = budgetExempt) =>
      bus.call(billingQuote, { tenancy, estimate, budgetExempt: exempt, candidates }, within())
    expect(await quoted()).toEqual({
      candidates: [
        { refusal: null, estimate: '2000000' },
        { refusal: expect.stringContaining("'web_search' has no pricing"), estimate: '2000000' },
        { refusal: expect.stringContaining("'acme:free' has no pricing"), estimate: '0' },
      ],
    })
    // P-18
    expect((await quoted(true)).candidates.map(({ refusal }) => refusal)).toEqual([null, null, null])
    expect(await usageOf(tenancy.request)).toEqual([])
    for (const name of ['acme:priced', 'otari:lookup'])
      await bus.call(billingDeletePrice, { kind: 'model', modelKey: name }, within())
  })

  test('A-35 refuses a message without tenancy', async () => {
    await start()
    const { tenancy: _left, ...rest } = reservation()
    await expect(bus.call(billingReserve, rest as never, within())).rejects.toMatchObject({
      failure: 'invalid_request',
    })
  })

  test('tells every replica of a price at once, and is right where the news is lost', async () => {
    await start({ pricesEveryMs: 50 })
    const heard: unknown[] = []
    bus.listen(changedPrices, (event) => heard.push(event))
    await setPrice('otari:web_fetch', '1')
    await expect.poll(() => heard.length).toBe(1)
    await bus.call(billingDeletePrice, { kind: 'model', modelKey: 'otari:web_fetch' }, within())
    await expect.poll(() => heard.length).toBe(2)
  })

  test('settles by itself what nobody settled, once', async () => {
    await Promise.all([start({ requirePricing: false, sweepGraceMs: 0 })])
    const tenancy = tenancyOf()
    await reserve(reservation({ tenancy, endsAt: Date.now() - 1_000 }))
    await expect.poll(async () => (await usageOf(tenancy.request)).map(({ settledBy }) => settledBy)).toEqual(['sweep'])
    const line = call('lookup', { reportedCost: '0.1' })
    await Promise.all([ran(tenancy, line), ran(tenancy, line)])
    expect(await usageOf(tenancy.request)).toMatchObject([{ cost: '0.100000', settledBy: 'sweep' }])
    expect(await telemetry.metricsText()).toMatch(/^hold_sweeps_total [1-9]/m)
  })

  test('P-46 gives back a hold, or settles it when a tool ran', async () => {
    await start({ requirePricing: false })
    const [idle, busy] = [tenancyOf(), tenancyOf()]
    for (const tenancy of [idle, busy]) await reserve(reservation({ tenancy }))
    await ran(busy, call('lookup', { reportedCost: '0.1' }))
    for (const tenancy of [idle, busy, busy]) {
      expect(await bus.call(billingRelease, { tenancy, hold: tenancy.request }, within())).toEqual({})
    }
    expect(await usageOf(idle.request)).toEqual([])
    expect(await usageOf(busy.request)).toMatchObject([{ cost: '0.100000', status: 'error' }])
  })

  test('one event that cannot be settled holds up none of those recorded with it', async () => {
    await start({ requirePricing: false })
    const tenancies = Array.from({ length: 5 }, () => tenancyOf())
    const events = tenancies.map((tenancy, n) =>
      settlement(tenancy, {
        lines: [call('lookup', { reportedCost: '0.1' })],
        ...(n === 2 ? { at: '0000-01-01T00:00:00Z', durationMs: 0 } : {}),
      }),
    )
    const outcomes = await Promise.allSettled(
      events.map((event) => bus.record(usageSettled, event.tenancy.request, event, { deadline: Date.now() + 500 })),
    )
    expect(outcomes.map(({ status }) => status)).toEqual([
      'fulfilled',
      'fulfilled',
      'rejected',
      'fulfilled',
      'fulfilled',
    ])
    for (const [n, { request }] of tenancies.entries()) expect(await usageOf(request)).toHaveLength(n === 2 ? 0 : 1)
  })

  test('counts what it charged, by tool and for tokens, and once', async () => {
    await start({ requirePricing: false })
    await setPrice('acme:m-large', '2')
    const total = async (tool: string) => {
      const text = await telemetry.metricsText()
      return Number(new RegExp(`^cost_microdollars_total\\{tool="${tool}"\\} (\\d+)`, 'm').exec(text)?.[1] ?? 0)
    }
    const before = { search: await total('web_search'), tokens: await total('tokens'), mcp: await total('mcp') }
    const tenancy = tenancyOf()
    const lines = [call('web_search', { reportedCost: '0.005' }), call('lookup', { reportedCost: '0.001' })]
    const event = settlement(tenancy, { lines, tokens: { input: 1_000, output: 0 } })
    await bus.record(usageSettled, 'first', event, within())
    await bus.record(usageSettled, 'second', event, within())
    expect((await total('web_search')) - before.search).toBe(5_000)
    expect((await total('tokens')) - before.tokens).toBe(2_000)
    expect((await total('mcp')) - before.mcp).toBe(1_000)
    expect(await telemetry.metricsText()).toContain('settle_batch_size_bucket{event="settled",le="1"}')
  })

  test('P-05 starts with the configured prices in force', async () => {
    await start({ configuredPrices: [{ kind: 'search', key: 'exa-search', inputPricePerMillion: '5000' }] })
    const { data } = await bus.call(billingPrices, { kind: 'search', current: true }, within())
    expect(data).toMatchObject([{ modelKey: 'exa-search', inputPricePerMillion: '5000' }])
  })

  test.skipIf(kind === 'pglite')(
    'BR-140 while holds can be read and not written nothing is reserved, and afterwards it is as ever',
    async () => {
      await start()
      await setPrice('acme:m-large', '2')
      const asked = reservation()
      const locker = await opened.another()
      let unlock = () => {}
      const unlocked = new Promise<void>((resolve) => {
        unlock = resolve
      })
      const locked = new Promise<void>((resolve, reject) => {
        const holding = locker
          .typed<object>()
          .kysely.transaction()
          .execute(async (tx) => {
            await sql`lock table billing.holds in exclusive mode`.execute(tx)
            resolve()
            await unlocked
          })
        holding.catch(reject)
      })
      await locked
      try {
        const soon = { deadline: Date.now() + 500 }
        await expect(bus.call(billingReserve, asked, soon)).rejects.toMatchObject({ failure: 'timeout' })
        const quoted = { tenancy: asked.tenancy, estimate: asked.estimate, budgetExempt: false, candidates: [asked] }
        expect((await bus.call(billingQuote, quoted, within())).candidates).toMatchObject([{ refusal: null }])
        expect(await usageOf(asked.tenancy.request)).toEqual([])
      } finally {
        unlock()
      }
      // the same request again, and another: neither waits behind what was given up
      expect(await reserve(asked)).toEqual({ hold: asked.tenancy.request })
      expect(await reserve()).toMatchObject({ hold: expect.any(String) })
    },
  )

  test('is ready while the database answers, and stops in time', async () => {
    const db = await opened.another()
    const service = await start({}, db)
    expect(await service.notReady?.()).toBeUndefined()
    expect(await service.close(Date.now() + 5_000)).toBe(true)
    if (kind === 'postgres') {
      await db.close()
      expect(await service.notReady?.()).toContain('did not answer')
    }
  })
})

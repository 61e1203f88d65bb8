import { parseRate, type TokenCounts } from '@tollgate/contracts'
import { describe, expect, test } from 'vitest'
import { chargeFor } from '../src/charge.ts'
import { type Prices, priceTable } from '../src/price-table.ts'
import { none, onInstance, prices, work } from './charging.ts'
import { model } from './events.ts'

describe('tokens', () => {
  const chargeTokens = (tokens: Partial<TokenCounts>, table: Prices) =>
    chargeFor(work({ tokens: { ...none, ...tokens } }), table)

  test('cost what their kind costs, cached ones once', () => {
    const table = prices([[model('acme:m-large'), '0.50', '3', '0.05']])
    const { cost, breakdown } = chargeTokens({ input: 3_000, cacheRead: 9_000, output: 800 }, table)
    expect(cost).toBe(4_350n)
    expect(breakdown.map(({ meter, units, cost }) => [meter, units, cost])).toEqual([
      ['input_tokens', 3_000, '0.001500'],
      ['output_tokens', 800, '0.002400'],
      ['cache_read_tokens', 9_000, '0.000450'],
    ])
  })

  test('written to a cache have a rate of their own', () => {
    const table = prices([[model('acme:m-large'), '1', '1', '0.1', '1.25']])
    expect(chargeTokens({ cacheRead: 150_000, cacheWrite: 60_000 }, table).cost).toBe(15_000n + 75_000n)
  })

  test('of a cache without a rate cost what input costs', () => {
    const table = prices([[model('acme:m-large'), '2', '3']])
    expect(chargeTokens({ cacheRead: 1_000_000, cacheWrite: 500_000 }, table).cost).toBe(3_000_000n)
    const free = prices([[model('acme:m-large'), '2', '3', '0', '0']])
    expect(chargeTokens({ cacheRead: 1_000_000, cacheWrite: 500_000 }, free).cost).toBe(0n)
  })

  test('that are cheap lose nothing to a rounded rate', () => {
    expect(chargeTokens({ input: 1_000_000 }, prices([[model('acme:m-large'), '0.0001']])).cost).toBe(100n)
    expect(chargeTokens({ input: 1 }, prices([[model('acme:m-large'), '0.5']])).cost).toBe(1n)
    expect(chargeTokens({ input: 1 }, prices([[model('acme:m-large'), '0.49999999']])).cost).toBe(0n)
  })

  test('of reasoning are part of the output and cost nothing more', () => {
    const { cost, meters } = chargeTokens(
      { output: 7, reasoning: 5 },
      prices([[model('acme:m-large'), '1', '1000000']]),
    )
    expect(cost).toBe(7_000_000n)
    expect(meters).toEqual({ reasoning_tokens: 5 })
  })

  test('P-64 without a price are lines without a cost', () => {
    const { cost, breakdown } = chargeTokens({ input: 10, output: 1 }, prices([]))
    expect(cost).toBeNull()
    expect(breakdown).toEqual([
      { meter: 'input_tokens', label: 'acme:m-large', units: 10, unitRate: null, cost: null },
      { meter: 'output_tokens', label: 'acme:m-large', units: 1, unitRate: null, cost: null },
    ])
  })

  test('without a price do not hide what the tools cost', () => {
    const priced = { ...work({ calls: [onInstance('0.005')], tokens: { ...none, input: 9 } }) }
    expect(chargeFor(priced, prices([])).cost).toBe(5_000n)
  })

  test('fall back to the row of their provider, in the order of the keys', () => {
    const table = prices([
      [model('acme:*'), '1'],
      [model('beta:m'), '2'],
      [model('gamma:*'), '3'],
    ])
    const keyed = (...keys: string[]) =>
      chargeFor(work({ priceKeys: keys.map(model), tokens: { ...none, input: 1_000_000 } }), table).cost
    expect(keyed('acme:m-large')).toBe(1_000_000n)
    expect(keyed('acme:m-large', 'beta:m')).toBe(2_000_000n)
    expect(keyed('gamma:x', 'acme:m-large')).toBe(3_000_000n)
    expect(keyed('acme')).toBeNull()
    expect(keyed('acmeplus:m')).toBeNull()
  })

  test('that were estimated say so', () => {
    const estimated = work({ tokens: { ...none, input: 10 }, estimated: true })
    expect(chargeFor(estimated, prices([])).meters).toEqual({ estimated: true })
  })
})

describe('P-03 of several versions the one counts', () => {
  const version = (input: string, from: string, until?: string) => ({
    ...model('acme:m-large'),
    price: { input: parseRate(input), output: 0n, cacheRead: null, cacheWrite: null },
    effectiveAt: Date.parse(from),
    deletedAt: until === undefined ? Number.POSITIVE_INFINITY : Date.parse(until),
  })
  const costAt = (table: Prices, began: string, ended = began) =>
    chargeFor(
      work({ tokens: { ...none, input: 1_000_000 }, beganAt: new Date(began), endedAt: new Date(ended) }),
      table,
    ).cost

  test('that was in force when the request began', () => {
    const table = priceTable([
      version('1', '2026-01-01T00:00:00Z'),
      version('3', '2026-03-01T00:00:00Z'),
      version('2', '2026-02-01T00:00:00Z'),
    ])
    expect(costAt(table, '2026-01-31T23:59:59.999Z')).toBe(1_000_000n)
    expect(costAt(table, '2026-02-01T00:00:00.000Z')).toBe(2_000_000n)
    expect(costAt(table, '2026-02-28T00:00:00Z', '2026-03-02T00:00:00Z')).toBe(2_000_000n)
    expect(costAt(table, '2026-03-01T00:00:00Z')).toBe(3_000_000n)
    expect(costAt(table, '2025-12-31T00:00:00Z')).toBeNull()
  })

  test('that had not been deleted by then', () => {
    const table = priceTable([version('1', '2026-01-01T00:00:00Z', '2026-02-01T00:00:00Z')])
    expect(costAt(table, '2026-01-31T00:00:00Z', '2026-02-02T00:00:00Z')).toBe(1_000_000n)
    expect(costAt(table, '2026-02-01T00:00:00Z')).toBeNull()
  })

  test('that began while the request ran, when there was none before', () => {
    const table = priceTable([version('1', '2026-01-01T12:00:00Z')])
    expect(costAt(table, '2026-01-01T11:59:59Z', '2026-01-01T12:00:01Z')).toBe(1_000_000n)
    expect(costAt(table, '2026-01-01T11:59:59Z', '2026-01-01T11:59:59.999Z')).toBeNull()
  })
})

import { instancePriceKeys, otariLabel, otariPriceKeys, type PriceKey } from '@tollgate/contracts'
import { describe, expect, test } from 'vitest'
import { chargeFor } from '../src/charge.ts'
import { chargeCalls, none, onInstance, prices, search, work } from './charging.ts'
import { call, model } from './events.ts'

describe('a tool call', () => {
  test('P-01 P-02 costs a cent at 10000 dollars per million calls, under the key of each tool', () => {
    for (const tool of ['code_execution', 'web_search', 'web_fetch']) {
      const { cost, breakdown } = chargeCalls([call(tool)], prices([[model(`otari:${tool}`), '10000']]))
      expect(cost).toBe(10_000n)
      expect(breakdown).toEqual([
        { meter: `${tool}_calls`, label: otariLabel(tool), units: 1, unitRate: '0.01000000', cost: '0.010000' },
      ])
    }
  })

  test('P-02 takes its price from the input price alone', () => {
    expect(chargeCalls([call('web_fetch')], prices([[model('otari:web_fetch'), '10000', '99999']])).cost).toBe(10_000n)
  })

  test('P-04 of an instance named like a model provider is priced by its own kind only', () => {
    const deepseek = call('web_search', { priceKeys: instancePriceKeys('search', 'deepseek', 'deepseek') })
    const rows: [PriceKey, string][] = [
      [model('deepseek:chat'), '1'],
      [model('deepseek'), '2'],
      [{ kind: 'fetch', key: 'deepseek' }, '3'],
    ]
    expect(chargeCalls([deepseek], prices(rows)).cost).toBeNull()
    expect(chargeCalls([deepseek], prices([...rows, [{ kind: 'search', key: 'deepseek' }, '750']])).cost).toBe(750n)
    const tokens = work({ priceKeys: [model('deepseek')], tokens: { ...none, input: 1_000_000 } })
    expect(chargeFor(tokens, prices([[{ kind: 'search', key: 'deepseek' }, '750']])).cost).toBeNull()
  })

  test('P-06 is priced by the first there is of reported cost, own row, old row and otari row', () => {
    const layers: [PriceKey, string][] = [
      [search, '5000'],
      [model('exa:exa-search'), '6000'],
      [model('otari:web_search'), '7000'],
    ]
    expect(chargeCalls([onInstance('0.0012')], prices(layers)).cost).toBe(1_200n)
    expect(chargeCalls([onInstance()], prices(layers)).cost).toBe(5_000n)
    expect(chargeCalls([onInstance()], prices(layers.slice(1))).cost).toBe(6_000n)
    expect(chargeCalls([onInstance()], prices(layers.slice(2))).cost).toBe(7_000n)
    expect(chargeCalls([onInstance()], prices([])).cost).toBeNull()
  })

  test('P-07 on an organization key is priced by the otari row, whatever the instance rows say', () => {
    const own = call('web_search', { label: 'org:exa', priceKeys: otariPriceKeys('web_search') })
    const rows: [PriceKey, string][] = [
      [search, '5000'],
      [{ kind: 'search', key: 'exa' }, '5000'],
      [model('exa:exa'), '6000'],
    ]
    expect(chargeCalls([own], prices(rows)).cost).toBeNull()
    const { cost, breakdown } = chargeCalls([own], prices([...rows, [model('otari:web_search'), '7000']]))
    expect(cost).toBe(7_000n)
    expect(breakdown[0]?.label).toBe('org:exa')
    expect(chargeCalls([{ ...own, reportedCost: '0.1' }], prices(rows)).cost).toBe(100_000n)
  })

  test('P-08 of an MCP server is priced by otari and its name', () => {
    const { cost, breakdown } = chargeCalls(
      [call('lookup')],
      prices([
        [model('otari:lookup'), '2000'],
        [model('lookup'), '1'],
      ]),
    )
    expect(cost).toBe(2_000n)
    expect(breakdown[0]).toMatchObject({ meter: 'lookup_calls', label: 'otari:lookup' })
  })

  test('P-09 is never priced by a default for models', () => {
    const defaults = prices([
      [model('otari:*'), '1'],
      [model('exa:*'), '1'],
      [model('acme:*'), '1'],
      [model('*'), '1'],
    ])
    for (const each of [call('code_execution'), onInstance(), call('lookup')]) {
      const { cost, breakdown, meters } = chargeCalls([each], defaults)
      expect(cost).toBeNull()
      expect(breakdown).toMatchObject([{ units: 1, unitRate: null, cost: null }])
      expect(meters).toMatchObject({ tools: { [each.tool]: { billed: 1, errors: 0, unit_rate: null } } })
    }
  })

  test('P-10 that failed is counted and costs nothing, even when its provider reported a cost', () => {
    const table = prices([[search, '5000']])
    const failed = { ...onInstance('0.5'), outcome: 'error' as const }
    const { cost, breakdown, meters } = chargeCalls([onInstance(), failed], table)
    expect(cost).toBe(5_000n)
    expect(breakdown).toEqual([
      { meter: 'web_search_calls', label: 'exa:exa-search', units: 1, unitRate: '0.00500000', cost: '0.005000' },
    ])
    expect(meters).toEqual({ tools: { web_search: { billed: 1, errors: 1, unit_rate: '0.00500000' } } })
    const alone = chargeCalls([failed], table)
    expect(alone).toMatchObject({
      cost: 0n,
      breakdown: [],
      meters: { tools: { web_search: { billed: 0, errors: 1 } } },
    })
  })

  test('P-10 has a price of zero as a price', () => {
    const { cost, breakdown } = chargeCalls(
      [onInstance()],
      prices([
        [search, '0'],
        [model('otari:web_search'), '7000'],
      ]),
    )
    expect(cost).toBe(0n)
    expect(breakdown).toMatchObject([{ units: 1, unitRate: '0.00000000', cost: '0.000000' }])
  })

  test('P-67 with a reported cost of zero costs nothing and is a line', () => {
    const { cost, breakdown } = chargeCalls([onInstance('0')], prices([[search, '5000']]))
    expect(cost).toBe(0n)
    expect(breakdown).toMatchObject([{ units: 1, cost: '0.000000' }])
  })

  test('P-11 is added up before it is rounded, half-up', () => {
    const at = (perMillion: string, calls: number) =>
      chargeCalls(
        Array.from({ length: calls }, () => onInstance()),
        prices([[search, perMillion]]),
      ).cost
    expect(at('1.5', 3)).toBe(5n) // 0.0000045
    expect(at('1.5', 2)).toBe(3n)
    expect(at('1.5', 1)).toBe(2n) // 0.0000015
    expect(at('0.5', 1)).toBe(1n)
    expect(at('0.49', 1)).toBe(0n)
    expect(at('0.49', 3)).toBe(1n)
    expect(at('0.004', 1_000)).toBe(0n) // less than eight places of a rate
    expect(at('0.005', 100)).toBe(1n)
    const odd = chargeCalls([onInstance('0.0000001'), onInstance('0.0000002'), onInstance('0.0000002')], prices([]))
    expect(odd.cost).toBe(1n)
  })
})

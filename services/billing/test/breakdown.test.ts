import { instancePriceKeys, type PriceKey } from '@tollgate/contracts'
import { describe, expect, test } from 'vitest'
import { chargeFor } from '../src/charge.ts'
import { chargeCalls, none, onInstance, prices, search, work } from './charging.ts'
import { call, model } from './events.ts'

describe('the lines of a request', () => {
  const rates: [PriceKey, string][] = [
    [search, '5000'],
    [{ kind: 'fetch', key: 'builtin_fetch' }, '2000'],
    [model('otari:code_execution'), '10000'],
  ]
  const fetch = () =>
    call('web_fetch', {
      label: 'builtin:builtin_fetch',
      priceKeys: instancePriceKeys('fetch', 'builtin', 'builtin_fetch'),
    })

  test('P-20 P-21 are one for each tool and label, beside the tokens', () => {
    const calls = [
      onInstance(),
      fetch(),
      call('code_execution'),
      onInstance(),
      call('web_search', { label: 'org:brave', reportedCost: '0.003' }),
    ]
    const tokens = { ...none, input: 1_000_000, output: 2 }
    const { breakdown, cost } = chargeFor(
      work({ calls, tokens }),
      prices([...rates, [model('acme:m-large'), '3', '15']]),
    )
    expect(breakdown).toEqual([
      { meter: 'input_tokens', label: 'acme:m-large', units: 1_000_000, unitRate: '0.00000300', cost: '3.000000' },
      { meter: 'output_tokens', label: 'acme:m-large', units: 2, unitRate: '0.00001500', cost: '0.000030' },
      { meter: 'web_search_calls', label: 'exa:exa-search', units: 2, unitRate: '0.00500000', cost: '0.010000' },
      { meter: 'web_fetch_calls', label: 'builtin:builtin_fetch', units: 1, unitRate: '0.00200000', cost: '0.002000' },
      {
        meter: 'code_execution_calls',
        label: 'otari:code_execution',
        units: 1,
        unitRate: '0.01000000',
        cost: '0.010000',
      },
      { meter: 'web_search_calls', label: 'org:brave', units: 1, unitRate: '0.00300000', cost: '0.003000' },
    ])
    expect(cost).toBe(3_025_030n)
  })

  test('P-22 have the cost over the calls as their rate', () => {
    const { breakdown, cost } = chargeCalls([onInstance('0.005'), onInstance('0.012')], prices([]))
    expect(breakdown).toEqual([
      { meter: 'web_search_calls', label: 'exa:exa-search', units: 2, unitRate: '0.00850000', cost: '0.017000' },
    ])
    expect(cost).toBe(17_000n)
    const thirds = chargeCalls([onInstance('0.01'), onInstance('0.01'), onInstance('0')], prices([]))
    expect(thirds.breakdown[0]?.unitRate).toBe('0.00666667')
  })

  test('P-23 count calls under the tools of billing_meters, over all labels of a tool', () => {
    const { meters } = chargeCalls(
      [onInstance('0.005'), call('web_search', { label: 'org:exa', reportedCost: '0.012' }), fetch()],
      prices(rates),
    )
    expect(meters).toEqual({
      tools: {
        web_search: { billed: 2, errors: 0, unit_rate: '0.00850000' },
        web_fetch: { billed: 1, errors: 0, unit_rate: '0.00200000' },
      },
    })
  })

  test('PE-28 PE-29 tell calls that a backend ran by its label, at their fee or a row’s, with the tokens of known results', () => {
    const ran = (more: object) =>
      call('$web_search', {
        label: 'moonshot:$web_search',
        priceKeys: [{ kind: 'model', key: 'moonshot:$web_search' }],
        ...more,
      })
    const twice = [ran({ reportedCost: '0.005', resultTokens: 8_245 }), ran({ reportedCost: '0.005' })]
    const { meters, breakdown, cost } = chargeCalls([...twice, onInstance('0.005')], prices(rates))
    expect(meters).toMatchObject({
      tools: { $web_search: { billed: 2, errors: 0, unit_rate: '0.00500000', result_tokens: 8_245 } },
    })
    expect((meters.tools as Record<string, object>).web_search).not.toHaveProperty('result_tokens')
    expect(breakdown).toContainEqual({
      meter: '$web_search_calls',
      label: 'moonshot:$web_search',
      units: 2,
      unitRate: '0.00500000',
      cost: '0.010000',
    })
    expect(cost).toBe(15_000n)
    const byRow = chargeCalls([ran({})], prices([[model('moonshot:$web_search'), '20000']]))
    expect(byRow.cost).toBe(20_000n)
    expect(chargeCalls([ran({})], prices([])).breakdown[0]?.cost).toBeNull()
  })

  test('P-23 name 32 tools at most, our own always, and count the rest as _other', () => {
    const own = [call('code_execution'), onInstance()]
    const foreign = Array.from({ length: 40 }, (_, n) => call(`tool_${n}`))
    const table = prices([...rates, [model('otari:tool_39'), '1000'], [model('otari:tool_0'), '1000']])
    const { meters, breakdown, cost } = chargeCalls([...foreign, ...own], table)
    const tools = meters.tools as Record<string, { billed: number; unit_rate: string | null }>
    expect(Object.keys(tools)).toHaveLength(33)
    expect(tools).toMatchObject({ code_execution: { billed: 1 }, web_search: { billed: 1 }, tool_29: { billed: 1 } })
    expect(tools).not.toHaveProperty('tool_30')
    expect(tools._other).toEqual({ billed: 10, errors: 0, unit_rate: '0.00010000' })
    expect(breakdown).toHaveLength(33)
    expect(breakdown.at(-1)).not.toMatchObject({ label: 'otari:tool_39' })
    expect(cost).toBe(17_000n)
  })

  test('P-23 keep a tool named like a token count or a prototype apart from everything', () => {
    const calls = [call('completion_tokens'), call('__proto__'), call('constructor')]
    const { meters } = chargeFor(work({ calls, tokens: { ...none, cacheRead: 5 } }), prices([]))
    expect(Object.keys(meters)).toEqual(['cache_read_tokens', 'tools'])
    expect(Object.keys(meters.tools as object)).toEqual(['completion_tokens', '__proto__', 'constructor'])
    expect(JSON.stringify(meters)).toContain('"__proto__":{"billed":1')
  })

  test('P-25 hold a search once, with what its enrichment reported in its cost', () => {
    const { breakdown } = chargeCalls([onInstance('0.017')], prices(rates))
    expect(breakdown).toEqual([
      { meter: 'web_search_calls', label: 'exa:exa-search', units: 1, unitRate: '0.01700000', cost: '0.017000' },
    ])
  })

  test('have a cost as soon as one call of theirs has a price', () => {
    const unpriced = call('web_search', { label: 'exa:exa-search', priceKeys: [] })
    const { breakdown, cost } = chargeCalls([onInstance('0.005'), unpriced], prices([]))
    expect(breakdown).toMatchObject([{ units: 2, cost: '0.005000', unitRate: '0.00250000' }])
    expect(cost).toBe(5_000n)
  })
})

test('a request that did nothing costs nothing', () => {
  expect(chargeFor(work({}), prices([]))).toMatchObject({ cost: 0n, breakdown: [], meters: {} })
})

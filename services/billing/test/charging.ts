import { instancePriceKeys, type PriceKey, parseRate, type TokenCounts } from '@tollgate/contracts'
import { type Charge, chargeFor, type Work } from '../src/charge.ts'
import { type Prices, priceTable } from '../src/price-table.ts'
import type { Call } from '../src/tool-charges.ts'
import { call, model } from './events.ts'

export const none: TokenCounts = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, reasoning: 0 }
const noon = new Date('2026-03-01T12:00:00Z')

/** Prices in dollars per million units, in force for ever: the input's, then output, cache read and cache write. */
export const prices = (rows: [PriceKey, string, string?, string?, string?][]): Prices =>
  priceTable(
    rows.map(([key, input, output = '0', cacheRead, cacheWrite]) => ({
      ...key,
      price: {
        input: parseRate(input),
        output: parseRate(output),
        cacheRead: cacheRead === undefined ? null : parseRate(cacheRead),
        cacheWrite: cacheWrite === undefined ? null : parseRate(cacheWrite),
      },
      effectiveAt: 0,
      deletedAt: Number.POSITIVE_INFINITY,
    })),
  )

export const work = (more: Partial<Work>): Work => ({
  provider: 'acme',
  model: 'm-large',
  priceKeys: [model('acme:m-large')],
  tokens: none,
  estimated: false,
  calls: [],
  beganAt: noon,
  endedAt: noon,
  ...more,
})
export const chargeCalls = (calls: Call[], table: Prices): Charge => chargeFor(work({ calls }), table)
export const search: PriceKey = { kind: 'search', key: 'exa-search' }
export const onInstance = (reportedCost?: string) =>
  call('web_search', {
    label: 'exa:exa-search',
    priceKeys: instancePriceKeys('search', 'exa', 'exa-search'),
    ...(reportedCost === undefined ? {} : { reportedCost }),
  })

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { costText } from '../src/amounts.ts'
import { settlement } from './events.ts'
import { kinds } from './ledgers.ts'
import { openWorkbench, ran, search, type Workbench } from './workbench.ts'

/** What may happen to a request, any number of times and in any order. */
const step = fc.constantFrom('tool 0', 'tool 1', 'tool 2', 'settled', 'sweep', 'release')

describe.each(kinds)('whatever comes in whatever order, in %s', (kind) => {
  let bench: Workbench
  beforeAll(async () => {
    bench = await openWorkbench(kind)
  })
  afterAll(() => bench.ledger.close())

  test.each(['one after another', 'three at a time'])(
    'a request is charged once and for everything, %s',
    async (how) => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
          const { ledger, hold, report, settle, release, sweep } = bench
          const tenancy = await hold()
          await ledger.expire(tenancy.request)
          const lines = [search(), search(), search()]
          const perform = async (name: string): Promise<unknown> => {
            if (name === 'settled') return settle([settlement(tenancy, { lines })])
            if (name === 'sweep') return sweep()
            if (name === 'release') return release(tenancy)
            return report([ran(tenancy, lines[Number(name.slice(-1))])])
          }
          const atOnce = how === 'three at a time' ? 3 : 1
          for (let n = 0; n < steps.length; n += atOnce) await Promise.all(steps.slice(n, n + atOnce).map(perform))
          await sweep()

          const rows = await ledger.usage(tenancy.request)
          const seen = new Set(steps.filter((name) => name.startsWith('tool'))).size
          expect(await ledger.holds(tenancy.request)).toBe(0)
          expect(rows.length).toBeLessThanOrEqual(1)
          const [row] = rows
          if (steps.includes('settled')) {
            expect(row).toMatchObject({ settledBy: 'gateway', status: 'success', cost: '0.018000', totalTokens: 1_100 })
          } else if (seen > 0) {
            expect(row).toMatchObject({ settledBy: 'sweep', status: 'error', cost: costText(BigInt(seen) * 5_000n) })
            expect(row?.billingMeters).toMatchObject({ tools: { web_search: { billed: seen } } })
          } else {
            expect(row?.cost ?? '0.000000').toBe('0.000000')
          }
        }),
        { numRuns: 40 },
      )
    },
  )
})

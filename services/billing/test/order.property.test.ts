import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { costText } from '../src/amounts.ts'
import { chargeLate } from '../src/late-calls.ts'
import { releaseHold } from '../src/release.ts'
import { reserver } from '../src/reserve.ts'
import { settler } from '../src/settle.ts'
import { sweepHolds } from '../src/sweep.ts'
import { toolLineStore } from '../src/tool-lines.ts'
import { call, reservation, settlement, tenancyOf } from './events.ts'
import { kinds, type Ledger, openLedger } from './ledgers.ts'

/** What may happen to a request, any number of times and in any order. */
const step = fc.constantFrom('tool 0', 'tool 1', 'tool 2', 'settled', 'sweep', 'release')

describe.each(kinds)('whatever comes in whatever order, in %s', (kind) => {
  let ledger: Ledger
  beforeAll(async () => {
    ledger = await openLedger(kind)
    await ledger.price('acme:m-large', '2', { outputPricePerMillion: '10' })
    await ledger.price('otari:lookup', '5000')
    await ledger.book.refresh()
  })
  afterAll(() => ledger.close())

  test.each(['one after another', 'three at a time'])(
    'a request is charged once and for everything, %s',
    async (how) => {
      const { db, book } = ledger
      const { reserve } = reserver(db, book, true)
      const settle = settler(db, book)
      const store = toolLineStore(db)

      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 8 }), async (steps) => {
          const tenancy = tenancyOf(randomUUID())
          const lines = [0, 1, 2].map(() => call('lookup'))
          await reserve(reservation({ tenancy }))
          await ledger.expire(tenancy.request)
          const perform = async (name: string) => {
            if (name === 'settled') return settle([settlement(tenancy, { lines })])
            if (name === 'sweep') return void (await sweepHolds(db, book, 0))
            if (name === 'release') return releaseHold(db, book, tenancy.request, tenancy)
            const line = lines[Number(name.slice(-1))]!
            for (const late of await store([{ hold: tenancy.request, tenancy, line }])) await chargeLate(db, book, late)
          }
          const atOnce = how === 'three at a time' ? 3 : 1
          for (let n = 0; n < steps.length; n += atOnce) await Promise.all(steps.slice(n, n + atOnce).map(perform))
          await sweepHolds(db, book, 0)

          const rows = await ledger.usage(tenancy.request)
          const seen = new Set(steps.filter((name) => name.startsWith('tool'))).size
          expect(await ledger.holds(tenancy.request)).toBe(0)
          expect(rows.length).toBeLessThanOrEqual(1)
          const [row] = rows
          if (steps.includes('settled')) {
            expect(row).toMatchObject({ settledBy: 'gateway', status: 'success', cost: '0.018000', totalTokens: 1_100 })
          } else if (seen > 0) {
            expect(row).toMatchObject({ settledBy: 'sweep', status: 'error', cost: costText(BigInt(seen) * 5_000n) })
            expect(row?.billingMeters).toMatchObject({ tools: { lookup: { billed: seen } } })
          } else {
            expect(row?.cost ?? '0.000000').toBe('0.000000')
          }
        }),
        { numRuns: 40 },
      )
    },
  )
})

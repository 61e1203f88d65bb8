import { billingUsage } from '@tollgate/contracts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { settler } from '../src/settle.ts'
import { listUsage } from '../src/usage-list.ts'
import { settlement, tenancyOf } from './events.ts'
import { kinds, type Ledger, openLedger } from './ledgers.ts'

const at = (second: number) => new Date(Date.UTC(2026, 2, 1, 12, 0, second)).toISOString()

describe.each(kinds)('the usage list of %s', (kind) => {
  let ledger: Ledger
  const list = (filter: z.input<typeof billingUsage.input>) => listUsage(ledger.db, billingUsage.input.parse(filter))
  const ids = async (filter: z.input<typeof billingUsage.input>) => (await list(filter)).data.map(({ id }) => id)

  beforeAll(async () => {
    ledger = await openLedger(kind)
    const rows: [string, number, Partial<ReturnType<typeof tenancyOf>>][] = [
      ['r1', 1, {}],
      ['r2', 2, { user: 'bob' }],
      ['r4', 3, { key: 'key-2' }],
      ['r3', 3, {}],
      ['r5', 3, { workspace: 'other' }],
    ]
    const absorbed = [{ attempt: 0, model: 'x', provider: 'y', error: 'Skipped: no', durationMs: 0 }]
    await settler(
      ledger.db,
      ledger.book,
    )(
      rows.map(([id, second, more]) =>
        settlement(tenancyOf(id, more), { at: at(second), ...(id === 'r1' ? { absorbed } : {}) }),
      ),
    )
  })
  afterAll(() => ledger.close())

  test('shows the newest first, and rows of one moment always in the same order', async () => {
    expect(await ids({ workspace: null })).toEqual(['r5', 'r4', 'r3', 'r2', 'r1.0', 'r1'])
    expect(await ids({ workspace: 'ws' })).toEqual(['r4', 'r3', 'r2', 'r1.0', 'r1'])
  })

  test('pages meet without a gap or a repeat', async () => {
    const pages = await Promise.all([0, 2, 4, 6].map((skip) => ids({ workspace: 'ws', skip, limit: 2 })))
    expect(pages).toEqual([['r4', 'r3'], ['r2', 'r1.0'], ['r1'], []])
    expect((await list({ workspace: 'ws', skip: 2, limit: 2 })).count).toBe(5)
  })

  test.each([
    [{ key: 'key-2' }, ['r4']],
    [{ user: 'bob' }, ['r2']],
    [{ user: 'bob', key: 'key-2' }, []],
    [{ request: 'r1' }, ['r1.0', 'r1']],
    [{ request: 'r5' }, []],
    [{ from: at(2) }, ['r4', 'r3', 'r2']],
    [{ to: at(3) }, ['r2', 'r1.0', 'r1']],
    [{ from: at(2), to: at(3) }, ['r2']],
  ])('is narrowed by %j', async (filter, expected) => {
    const { data, count } = await list({ workspace: 'ws', ...filter })
    expect(data.map(({ id }) => id)).toEqual(expected)
    expect(count).toBe(expected.length)
  })
})

import { billingUsage, type ToolLine } from '@tollgate/contracts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { z } from 'zod'
import { settler } from '../src/settle.ts'
import { usageByTool } from '../src/usage-by-tool.ts'
import { listUsage } from '../src/usage-list.ts'
import { call, model, settlement, tenancyOf } from './events.ts'
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

  describe('by tool', () => {
    const label = 'moonshot:$web_search'
    const searched = (resultTokens?: number) =>
      call('$web_search', {
        label,
        priceKeys: [model(label)],
        reportedCost: '0.005',
        ...(resultTokens !== undefined && { resultTokens }),
      })
    const group = (filter: Partial<z.input<typeof billingUsage.input>> = {}) =>
      usageByTool(ledger.db, billingUsage.input.parse({ workspace: 'agents', ...filter }))

    beforeAll(async () => {
      const lines: [request: string, user: string, lines: ToolLine[]][] = [
        ['a1', 'ann', [searched(8_000), call('lookup', { outcome: 'error' })]],
        ['a2', 'ann', [searched(4_000), call('lookup')]],
        ['b1', 'bo', [searched(2_000)]],
        ['b2', 'bo', [searched()]],
        ['none', 'bo', []],
      ]
      await settler(
        ledger.db,
        ledger.book,
      )(lines.map(([id, user, made]) => settlement(tenancyOf(id, { workspace: 'agents', user }), { lines: made })))
    })

    test('PE-33 two agents of two rounds have four results, each paid for', async () => {
      expect(await group()).toEqual({
        data: [
          { tool: '$web_search', requests: 4, billed: 4, errors: 0, resultTokens: 14_000, cost: '0.020000' },
          { tool: 'lookup', requests: 2, billed: 1, errors: 1, resultTokens: null, cost: null },
        ],
        count: 2,
      })
    })

    test('PE-33 narrows as the list does, and pages by tool', async () => {
      expect((await group({ user: 'bo' })).data).toMatchObject([{ tool: '$web_search', billed: 2, cost: '0.010000' }])
      expect((await group({ request: 'a1' })).data).toMatchObject([{ billed: 1 }, { tool: 'lookup', errors: 1 }])
      expect(await group({ skip: 1, limit: 1 })).toMatchObject({ data: [{ tool: 'lookup' }], count: 2 })
      expect(await group({ workspace: 'nowhere' })).toEqual({ data: [], count: 0 })
    })
  })
})

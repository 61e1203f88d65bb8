import type { Tenancy } from '@tollgate/contracts'
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { settleHolds } from '../src/swept.ts'
import type { BillingTables } from '../src/tables.ts'
import { settlement } from './events.ts'
import { openWorkbench, ran, type Workbench } from './workbench.ts'

// Two replicas at the very moments that matter, which only connections of their own can have: Postgres alone.

let bench: Workbench
let tenancy: Tenancy
beforeAll(async () => {
  bench = await openWorkbench('postgres')
})
afterAll(() => bench.ledger.close())
beforeEach(async () => {
  while ((await bench.sweep()) > 0);
  tenancy = await bench.hold()
  await bench.ledger.expire(tenancy.request)
})

/** How many statements wait for another's lock, as the server sees it. */
const waiting = async () => {
  const { rows } = await sql`select 1 from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`.execute(bench.ledger.db.kysely)
  return rows.length
}

/** A sweep in slow motion: begins the other when the hold is locked, and goes on once that one waits. */
async function duringSweep(second: () => Promise<unknown>): Promise<void> {
  let later: Promise<unknown> | undefined
  await bench.ledger.db
    .typed<BillingTables>()
    .kysely.transaction()
    .execute(async (tx) => {
      const holds = await tx
        .selectFrom('billing.holds')
        .selectAll()
        .where('id', '=', tenancy.request)
        .forUpdate()
        .execute()
      later = second()
      await expect.poll(waiting).toBe(1)
      await settleHolds(tx, holds, bench.ledger.book.now())
    })
  await later
}

test('a call reported in the middle of a sweep is in the row', async () => {
  await duringSweep(() => bench.report([ran(tenancy)]))
  expect(await bench.ledger.usage(tenancy.request)).toMatchObject([{ cost: '0.005000', settledBy: 'sweep' }])
})

test('a settlement in the middle of a sweep is the row', async () => {
  await duringSweep(() => bench.settle([settlement(tenancy)]))
  expect(await bench.ledger.usage(tenancy.request)).toMatchObject([{ cost: '0.003000', settledBy: 'gateway' }])
})

test('a give-back in the middle of a sweep changes nothing', async () => {
  await duringSweep(() => bench.release(tenancy))
  expect(await bench.ledger.usage(tenancy.request)).toMatchObject([{ cost: '0.000000', settledBy: 'sweep' }])
})

test('a sweep passes over a hold that somebody has in hand, and does not wait', async () => {
  await bench.ledger.db
    .typed<BillingTables>()
    .kysely.transaction()
    .execute(async (tx) => {
      await tx.selectFrom('billing.holds').select('id').where('id', '=', tenancy.request).forShare().execute()
      expect(await bench.sweep()).toBe(0)
    })
  expect(await bench.sweep()).toBe(1)
})

test('a give-back that waits for a call to be stored charges it', async () => {
  let giving: Promise<void> | undefined
  await bench.ledger.db
    .typed<BillingTables>()
    .kysely.transaction()
    .execute(async (tx) => {
      await tx.selectFrom('billing.holds').select('id').where('id', '=', tenancy.request).forShare().execute()
      giving = bench.release(tenancy)
      await expect.poll(waiting).toBe(1)
      await sql`insert into billing.tool_lines (id, request, organization, workspace, tool, label, price_keys, outcome, at)
        values (${tenancy.request}, ${tenancy.request}, 'org', 'ws', 'code_execution', 'x',
          '[{"kind":"model","key":"otari:code_execution"}]', 'ok', now())`.execute(tx)
    })
  await giving
  expect(await bench.ledger.usage(tenancy.request)).toMatchObject([{ cost: '0.010000' }])
})

import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { chargeLate } from '../src/late-calls.ts'
import { releaseHold } from '../src/release.ts'
import { reserver } from '../src/reserve.ts'
import { settler } from '../src/settle.ts'
import { sweepHolds } from '../src/sweep.ts'
import { settleHolds } from '../src/swept.ts'
import type { BillingTables } from '../src/tables.ts'
import { toolLineStore } from '../src/tool-lines.ts'
import { call, reservation, settlement, tenancyOf } from './events.ts'
import { type Ledger, openLedger } from './ledgers.ts'

// Two replicas at the very moments that matter, which only connections of their own can have: Postgres alone.

let ledger: Ledger
let tenancy: ReturnType<typeof tenancyOf>
beforeAll(async () => {
  ledger = await openLedger('postgres')
  await ledger.price('acme:m-large', '2', { outputPricePerMillion: '10' })
  await ledger.price('otari:lookup', '5000')
  await ledger.book.refresh()
})
afterAll(() => ledger.close())
beforeEach(async () => {
  tenancy = tenancyOf()
  await reserver(ledger.db, ledger.book, true).reserve(reservation({ tenancy }))
  await ledger.expire(tenancy.request)
})

const report = async () => {
  for (const late of await toolLineStore(ledger.db)([{ hold: tenancy.request, tenancy, line: call('lookup') }])) {
    await chargeLate(ledger.db, ledger.book, late)
  }
}

/** How many statements wait for another's lock, as the server sees it. */
const waiting = async () => {
  const { rows } = await sql`select 1 from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`.execute(ledger.db.kysely)
  return rows.length
}

/** A sweep in slow motion: begins the other when the hold is locked, and goes on once that one waits. */
async function duringSweep(second: () => Promise<unknown>): Promise<void> {
  let later: Promise<unknown> | undefined
  await ledger.db
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
      await settleHolds(tx, holds, ledger.book.now())
    })
  await later
}

test('a call reported in the middle of a sweep is in the row', async () => {
  await duringSweep(report)
  expect(await ledger.usage(tenancy.request)).toMatchObject([{ cost: '0.005000', settledBy: 'sweep' }])
})

test('a settlement in the middle of a sweep is the row', async () => {
  await duringSweep(() => settler(ledger.db, ledger.book)([settlement(tenancy)]))
  expect(await ledger.usage(tenancy.request)).toMatchObject([{ cost: '0.003000', settledBy: 'gateway' }])
})

test('a give-back in the middle of a sweep changes nothing', async () => {
  await duringSweep(() => releaseHold(ledger.db, ledger.book, tenancy.request, tenancy))
  expect(await ledger.usage(tenancy.request)).toMatchObject([{ cost: '0.000000', settledBy: 'sweep' }])
})

test('a sweep passes over a hold that somebody has in hand, and does not wait', async () => {
  await ledger.db
    .typed<BillingTables>()
    .kysely.transaction()
    .execute(async (tx) => {
      await tx.selectFrom('billing.holds').select('id').where('id', '=', tenancy.request).forShare().execute()
      expect(await sweepHolds(ledger.db, ledger.book, 0)).toBe(0)
    })
  expect(await sweepHolds(ledger.db, ledger.book, 0)).toBe(1)
})

test('a give-back that waits for a call to be stored charges it', async () => {
  let giving: Promise<void> | undefined
  await ledger.db
    .typed<BillingTables>()
    .kysely.transaction()
    .execute(async (tx) => {
      await tx.selectFrom('billing.holds').select('id').where('id', '=', tenancy.request).forShare().execute()
      giving = releaseHold(ledger.db, ledger.book, tenancy.request, tenancy)
      await expect.poll(waiting).toBe(1)
      await sql`insert into billing.tool_lines (id, request, organization, workspace, tool, label, price_keys, outcome, at)
        values (${tenancy.request}, ${tenancy.request}, 'org', 'ws', 'lookup', 'otari:lookup',
          '[{"kind":"model","key":"otari:lookup"}]', 'ok', now())`.execute(tx)
    })
  await giving
  expect(await ledger.usage(tenancy.request)).toMatchObject([{ cost: '0.005000' }])
})

import { randomUUID } from 'node:crypto'
import { Fault, type PriceKey, type PriceRow } from '@tollgate/contracts'
import type { Database } from '@tollgate/db'
import { type Selectable, sql, type Transaction } from 'kysely'
import { MOST_VERSIONS } from './price-book.ts'
import type { BillingTables } from './tables.ts'

const LONGEST_KEY = 512
/** A deleted price may be asked for by a settlement that comes late; the stream keeps those for seven days. */
const KEEP_DELETED = sql<Date>`now() - interval '30 days'`

/** Stores a version; the same key and time again replace its rates, so that a repeated call changes nothing (P-03). */
export async function setPrice(db: Database, price: Omit<PriceRow, 'id' | 'createdAt'>): Promise<PriceRow> {
  checkKey(price)
  return db
    .typed<BillingTables>()
    .kysely.transaction()
    .execute(async (tx) => {
      await changePrices(tx)
      const rates = {
        input_per_million: price.inputPricePerMillion,
        output_per_million: price.outputPricePerMillion,
        cache_read_per_million: price.cacheReadPricePerMillion,
        cache_write_per_million: price.cacheWritePricePerMillion,
      }
      const row = await tx
        .insertInto('billing.prices')
        .values({
          id: randomUUID(),
          kind: price.kind,
          model_key: price.modelKey,
          effective_at: new Date(price.effectiveAt),
          deleted_at: null,
          ...rates,
        })
        .onConflict((conflict) =>
          conflict.columns(['kind', 'model_key', 'effective_at']).where('deleted_at', 'is', null).doUpdateSet(rates),
        )
        .returningAll()
        .executeTakeFirstOrThrow()
      return shown(row)
    })
}

/** Ends all versions of a key, those of the future too; how many there were. */
export async function deletePrice(db: Database, { kind, key }: PriceKey): Promise<number> {
  return db
    .typed<BillingTables>()
    .kysely.transaction()
    .execute(async (tx) => {
      await changePrices(tx)
      const { numUpdatedRows } = await tx
        .updateTable('billing.prices')
        .set({ deleted_at: sql<Date>`now()` })
        .where('kind', '=', kind)
        .where('model_key', '=', key)
        .where('deleted_at', 'is', null)
        .executeTakeFirstOrThrow()
      return Number(numUpdatedRows)
    })
}

export interface PriceFilter {
  kind?: PriceKey['kind'] | undefined
  modelKey?: string | undefined
  current: boolean
  skip: number
  limit: number
}

/** Versions by key, the newest of each first. */
export async function listPrices(
  db: Database,
  { kind, modelKey, current, skip, limit }: PriceFilter,
): Promise<{ data: PriceRow[]; count: number }> {
  let query = db.typed<BillingTables>().kysely.selectFrom('billing.prices as p').where('deleted_at', 'is', null)
  if (kind !== undefined) query = query.where('kind', '=', kind)
  if (modelKey !== undefined) query = query.where('model_key', '=', modelKey)
  if (current) {
    query = query.where('effective_at', '=', (inner) =>
      inner
        .selectFrom('billing.prices as q')
        .select(({ fn }) => fn.max('q.effective_at').as('latest'))
        .whereRef('q.kind', '=', 'p.kind')
        .whereRef('q.model_key', '=', 'p.model_key')
        .where('q.deleted_at', 'is', null)
        .where('q.effective_at', '<=', sql<Date>`now()`),
    )
  }
  const [rows, counted] = await Promise.all([
    query
      .selectAll()
      .orderBy('kind')
      .orderBy('model_key')
      .orderBy('effective_at', 'desc')
      .offset(skip)
      .limit(limit)
      .execute(),
    query.select(({ fn }) => fn.countAll<bigint>().as('count')).executeTakeFirstOrThrow(),
  ])
  return { data: rows.map(shown), count: Number(counted.count) }
}

/** Price changes take turns at the one row that counts them, which also makes their number exact. */
async function changePrices(tx: Transaction<BillingTables>): Promise<void> {
  await tx
    .updateTable('billing.price_revision')
    .set(({ eb }) => ({ revision: eb('revision', '+', 1n) }))
    .execute()
  await tx.deleteFrom('billing.prices').where('deleted_at', '<', KEEP_DELETED).execute()
  const { count } = await tx
    .selectFrom('billing.prices')
    .select(({ fn }) => fn.countAll<bigint>().as('count'))
    .executeTakeFirstOrThrow()
  if (count >= BigInt(MOST_VERSIONS)) {
    throw new Fault('conflict', `there are ${MOST_VERSIONS} versions of prices already: delete some first`)
  }
}

/** A search or fetch row is keyed by the instance's name alone (P-04), which has neither `:` nor `/` (SP-06). */
function checkKey({ kind, modelKey }: Pick<PriceRow, 'kind' | 'modelKey'>): void {
  if (modelKey === '' || modelKey.length > LONGEST_KEY || modelKey.includes('\0')) {
    throw new Fault('invalid_value', `model_key must have 1 to ${LONGEST_KEY} characters`)
  }
  if (kind !== 'model' && /[:/]/.test(modelKey)) {
    throw new Fault('invalid_value', `the model_key of a ${kind} price is the name of its tool alone, without : or /`)
  }
}

function shown(row: Selectable<BillingTables['billing.prices']>): PriceRow {
  return {
    id: row.id,
    kind: row.kind,
    modelKey: row.model_key,
    inputPricePerMillion: row.input_per_million,
    outputPricePerMillion: row.output_per_million,
    cacheReadPricePerMillion: row.cache_read_per_million,
    cacheWritePricePerMillion: row.cache_write_per_million,
    effectiveAt: row.effective_at.toISOString(),
    createdAt: row.created_at.toISOString(),
  }
}

import { parseRate } from '@tollgate/contracts'
import type { Database } from '@tollgate/db'
import type { Selectable } from 'kysely'
import { type Prices, type PriceVersion, priceTable } from './price-table.ts'
import type { BillingTables } from './tables.ts'

const columns = [
  'kind',
  'model_key',
  'input_per_million',
  'output_per_million',
  'cache_read_per_million',
  'cache_write_per_million',
  'effective_at',
  'deleted_at',
] as const
type Stored = Pick<Selectable<BillingTables['billing.prices']>, (typeof columns)[number]>

/** More versions than this are neither stored nor read. */
export const MOST_VERSIONS = 100_000

/** All prices in memory, read again when they have changed. */
export interface PriceBook {
  /** As of the last read; a later read replaces it, it never changes. */
  now(): Prices
  /** Ends once a read that began after this call is done; true when something had changed since the last. */
  refresh(): Promise<boolean>
}

export async function openPriceBook(db: Database): Promise<PriceBook> {
  const readRevision = db.prepare<{ revision: bigint }>(
    'billing_price_revision',
    'select revision from billing.price_revision',
  )
  const readVersions = db.prepare<Stored>(
    'billing_price_versions',
    // Named one by one: a prepared `select *` fails from the day on which a migration adds a column.
    `select ${columns.join(', ')} from billing.prices order by effective_at desc limit ${MOST_VERSIONS}`,
  )
  let prices = priceTable([])
  let revision = -1n

  async function read(): Promise<boolean> {
    // The number first: rows newer than it only mean that they are read once more.
    const [stored] = await readRevision([])
    if (stored === undefined || stored.revision === revision) return false
    prices = priceTable((await readVersions([])).map(versionOf))
    revision = stored.revision
    return true
  }

  const book: PriceBook = { now: () => prices, refresh: inRounds(read) }
  await book.refresh()
  return book
}

function versionOf(row: Stored): PriceVersion {
  return {
    kind: row.kind,
    key: row.model_key,
    price: {
      input: parseRate(row.input_per_million),
      output: parseRate(row.output_per_million),
      cacheRead: row.cache_read_per_million === null ? null : parseRate(row.cache_read_per_million),
      cacheWrite: row.cache_write_per_million === null ? null : parseRate(row.cache_write_per_million),
    },
    effectiveAt: row.effective_at.getTime(),
    deletedAt: row.deleted_at?.getTime() ?? Number.POSITIVE_INFINITY,
  }
}

/** One read at a time; all who ask while one is under way share the next, since the running one may have looked too early. */
function inRounds<R>(read: () => Promise<R>): () => Promise<R> {
  let running: Promise<unknown> | undefined
  let next: Promise<R> | undefined
  return () => {
    next ??= (running ?? Promise.resolve())
      .catch(() => {}) // told to those who waited for it
      .then(() => {
        const round = read()
        next = undefined
        running = round
        return round
      })
    return next
  }
}

import { join } from 'node:path'
import { billingUsage, type UsageRow } from '@tollgate/contracts'
import { type Database, migrate, openDb } from '@tollgate/db'
import { openLog } from '@tollgate/telemetry'
import { freshDatabase, freshFolder } from '@tollgate/testing'
import { sql } from 'kysely'
import { inject } from 'vitest'
import { openPriceBook, type PriceBook } from '../src/price-book.ts'
import { setPrice } from '../src/price-store.ts'
import type { BillingTables } from '../src/tables.ts'
import { listUsage } from '../src/usage-list.ts'

export const log = openLog({ service: 'test', level: 'silent' })
export const kinds = ['pglite', 'postgres'] as const
export type Kind = (typeof kinds)[number]

/** A database of the kind with billing's tables in it, and short ways to look into them. */
export interface Ledger {
  db: Database
  book: PriceBook
  /** Another replica's view: its own connections (on PGlite there is only one) and its own prices in memory. */
  replica(): Promise<{ db: Database; book: PriceBook }>
  price(key: string, input: string, more?: Partial<Parameters<typeof setPrice>[1]>): Promise<void>
  clearPrices(): Promise<void>
  usage(request: string): Promise<UsageRow[]>
  holds(request: string): Promise<number>
  /** Lets a hold's time be over. */
  expire(request: string): Promise<void>
  close(): Promise<void>
}

export async function openDatabase(
  kind: Kind,
): Promise<{ db: Database; another(): Promise<Database>; close(): Promise<void> }> {
  if (kind === 'pglite') {
    const folder = await freshFolder()
    const db = await openDb({ url: folder.url, log })
    const close = async () => {
      await db.close()
      await folder.drop()
    }
    return { db, another: async () => db, close }
  }
  const fresh = await freshDatabase(inject('postgresUrl'))
  const opened: Database[] = []
  const another = async () => {
    const db = await openDb({ url: fresh.url, log, poolSize: 8 })
    opened.push(db)
    return db
  }
  return {
    db: await another(),
    another,
    async close() {
      await Promise.all(opened.map((db) => db.close()))
      await fresh.drop()
    },
  }
}

export async function openLedger(kind: Kind): Promise<Ledger> {
  const { db, another, close } = await openDatabase(kind)
  await migrate(db, { schema: 'billing', folder: join(import.meta.dirname, '../src/migrations') })
  const book = await openPriceBook(db)
  const { kysely } = db.typed<BillingTables>()
  return {
    db,
    book,
    async replica() {
      const own = await another()
      return { db: own, book: await openPriceBook(own) }
    },
    async price(modelKey, input, more = {}) {
      await setPrice(db, {
        kind: 'model',
        modelKey,
        inputPricePerMillion: input,
        outputPricePerMillion: '0',
        cacheReadPricePerMillion: null,
        cacheWritePricePerMillion: null,
        effectiveAt: '2026-01-01T00:00:00Z',
        ...more,
      })
    },
    async clearPrices() {
      await kysely.deleteFrom('billing.prices').execute()
      await sql`update billing.price_revision set revision = revision + 1`.execute(kysely)
      await book.refresh()
    },
    async usage(request) {
      const filter = billingUsage.input.parse({ workspace: null, request })
      return (await listUsage(db, filter)).data.sort((a, b) => (a.id < b.id ? -1 : 1))
    },
    async holds(request) {
      const rows = await kysely.selectFrom('billing.holds').select('id').where('id', '=', request).execute()
      return rows.length
    },
    async expire(request) {
      await kysely
        .updateTable('billing.holds')
        .set({ ends_at: sql<Date>`now() - interval '1 hour'` })
        .where('id', '=', request)
        .execute()
    },
    close,
  }
}

import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Kysely, sql, type Transaction } from 'kysely'
import type { Database } from './database.ts'

export interface MigrateOptions {
  /** The service's own schema; made when it is not there. */
  schema: string
  /** Where its `0001_name.sql` files lie. */
  folder: string
  /** Longest wait for another replica's migration, and for any lock a file needs. */
  lockTimeoutMs?: number
}

interface Migration {
  name: string
  text: string
  checksum: string
}

/**
 * Brings a service's schema up to its files: in the order of their names, forward only, each in a transaction of its own.
 * Replicas that start together take turns. A database that is ahead of the files is fine, since every release gets along
 * with the one before; a file that changed after it was applied, or that comes before one that was, is refused.
 * Returns the names applied by this call.
 */
export async function migrate(
  { kysely }: Pick<Database, 'kysely'>,
  { schema, folder, lockTimeoutMs = 60_000 }: MigrateOptions,
): Promise<string[]> {
  if (!/^[a-z][a-z0-9_]*$/.test(schema)) throw new Error(`${schema} is not a name for a schema`)
  const files = await readMigrations(folder)
  await inTurn(kysely, schema, lockTimeoutMs, async (tx) => {
    await sql`create schema if not exists ${sql.id(schema)}`.execute(tx)
    await sql`create table if not exists ${applied(schema)} (
      name text primary key,
      checksum text not null,
      applied_at timestamptz not null default now()
    )`.execute(tx)
  })
  const done: string[] = []
  for (const file of files) {
    await inTurn(kysely, schema, lockTimeoutMs, async (tx) => {
      if (!(await isDue(tx, schema, file))) return
      await sql.raw(file.text).execute(tx)
      await sql`insert into ${applied(schema)} (name, checksum) values (${file.name}, ${file.checksum})`.execute(tx)
      done.push(file.name)
    })
  }
  return done
}

const applied = (schema: string) => sql.table(`${schema}.migrations`)

/** One replica at a time: the lock ends with the transaction, however that ends. */
async function inTurn(
  kysely: Kysely<unknown>,
  schema: string,
  lockTimeoutMs: number,
  work: (tx: Transaction<unknown>) => Promise<void>,
): Promise<void> {
  await kysely.transaction().execute(async (tx) => {
    await sql`select set_config('lock_timeout', ${String(lockTimeoutMs)}, true)`.execute(tx)
    await sql`select set_config('statement_timeout', '0', true)`.execute(tx)
    await sql`select pg_advisory_xact_lock(hashtextextended(${`migrate ${schema}`}, 0))`.execute(tx)
    await work(tx)
  })
}

async function isDue(tx: Transaction<unknown>, schema: string, file: Migration): Promise<boolean> {
  const { rows } = await sql<{ name: string; checksum: string }>`
    select name, checksum from ${applied(schema)} where name >= ${file.name} order by name`.execute(tx)
  const [first] = rows
  if (first === undefined) return true
  if (first.name !== file.name) {
    throw new Error(
      `migration ${schema}/${file.name} comes before ${first.name}, which was applied already: give it a later number`,
    )
  }
  if (first.checksum !== file.checksum) {
    throw new Error(`migration ${schema}/${file.name} was changed after it was applied: restore it and add a new file`)
  }
  return false
}

async function readMigrations(folder: string): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).sort()
  const odd = names.find((name) => !/^\d{4}_[a-z0-9_]+\.sql$/.test(name))
  if (odd !== undefined) throw new Error(`migration ${odd} is not named like 0001_what_it_does.sql`)
  return Promise.all(
    names.map(async (name) => {
      // A checkout on Windows changes line ends, not what the file says.
      const text = (await readFile(join(folder, name), 'utf8')).replaceAll('\r\n', '\n')
      return { name, text, checksum: createHash('sha256').update(text).digest('hex') }
    }),
  )
}

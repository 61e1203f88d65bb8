import { randomBytes } from 'node:crypto'
import pg from 'pg'

export interface FreshDatabase {
  url: string
  /** Ends its connections and removes it. */
  drop(): Promise<void>
}

/** An empty database of the test's own on the given server. */
export async function freshDatabase(postgresUrl: string): Promise<FreshDatabase> {
  const name = `t_${randomBytes(8).toString('hex')}`
  await administer(
    postgresUrl,
    `create database ${name} template template0 encoding 'UTF8' lc_collate 'C' lc_ctype 'C'`,
  )
  const url = new URL(postgresUrl)
  url.pathname = `/${name}`
  return {
    url: url.href,
    drop: () => administer(postgresUrl, `drop database if exists ${name} with (force)`),
  }
}

/** A first word for NATS subjects that no other test uses: lower-case letters and digits. */
export const freshPrefix = (): string => `t${randomBytes(8).toString('hex')}`

async function administer(postgresUrl: string, statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: postgresUrl, connectionTimeoutMillis: 10_000 })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}

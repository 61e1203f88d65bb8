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
  await administer(postgresUrl, async (client) => {
    const { rows } = await client.query<{ version: string }>(`select current_setting('server_version_num') as version`)
    // its files as they are, as servers before 15 did it: through the log takes three times the time
    const strategy = Number(rows[0]?.version) >= 150_000 ? 'strategy file_copy' : ''
    await client.query(
      `create database ${name} template template0 encoding 'UTF8' lc_collate 'C' lc_ctype 'C' ${strategy}`,
    )
  })
  const url = new URL(postgresUrl)
  url.pathname = `/${name}`
  return {
    url: url.href,
    drop: () =>
      administer(postgresUrl, async (client) => {
        await client.query(`drop database if exists ${name} with (force)`)
      }),
  }
}

/** A first word for NATS subjects that no other test uses: lower-case letters and digits. */
export const freshPrefix = (): string => `t${randomBytes(8).toString('hex')}`

async function administer(postgresUrl: string, work: (client: pg.Client) => Promise<void>): Promise<void> {
  const client = new pg.Client({ connectionString: postgresUrl, connectionTimeoutMillis: 60_000 })
  await client.connect()
  try {
    await work(client)
  } finally {
    await client.end()
  }
}

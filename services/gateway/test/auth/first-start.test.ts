import { type Database, openDb } from '@tollgate/db'
import { openLog } from '@tollgate/telemetry'
import { freshDatabase, freshFolder } from '@tollgate/testing'
import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { ensureFirstKey, ensureMasterKey, masterKeyHash, migrateGateway } from '../../src/auth/first-start.ts'
import { hashKey } from '../../src/auth/secret-key.ts'

const log = openLog({ service: 'test', level: 'silent' })
const opened: (() => Promise<void>)[] = []
afterAll(async () => {
  for (const close of opened.reverse()) await close()
})

async function empty(kind: 'postgres' | 'pglite'): Promise<{ open: () => Promise<Database> }> {
  if (kind === 'pglite') {
    const folder = await freshFolder()
    const db = await openDb({ url: folder.url, log })
    opened.push(folder.drop, () => db.close())
    return { open: async () => db }
  }
  const database = await freshDatabase(inject('postgresUrl'))
  opened.push(database.drop)
  return {
    async open() {
      const db = await openDb({ url: database.url, log, poolSize: 2 })
      opened.push(() => db.close())
      return db
    },
  }
}

describe.each(['postgres', 'pglite'] as const)('A-04 A-10 the first start on %s', (kind) => {
  let open: () => Promise<Database>
  beforeAll(async () => {
    open = (await empty(kind)).open
  })

  test('A-10 provides an organization, a workspace and a user', async () => {
    const db = await migrateGateway(await open())
    const { rows } = await sql`
      select o.id as organization, w.id as workspace, u.id as user from gateway.organizations o
      join gateway.workspaces w on w.organization = o.id join gateway.users u on u.organization = o.id`.execute(
      db.kysely,
    )
    expect(rows).toEqual([{ organization: 'default', workspace: 'default', user: 'default' }])
  })

  test('A-04 has no master key until one is made', async () => {
    const db = await migrateGateway(await open())
    await expect(masterKeyHash(db, undefined)).rejects.toThrow('set master_key')
  })

  test('A-04 of two replicas that start at once, one shows a master key and one a first key', async () => {
    const [one, two] = await Promise.all([open(), open()])
    const dbs = await Promise.all([migrateGateway(one), migrateGateway(two)])
    const masters = (await Promise.all(dbs.map(ensureMasterKey))).filter((key) => key !== undefined)
    const firsts = (await Promise.all(dbs.map(ensureFirstKey))).filter((key) => key !== undefined)
    expect(masters).toEqual([expect.stringMatching(/^gw-master-[\w-]{43}$/)])
    expect(firsts).toEqual([expect.stringMatching(/^gw-[\w-]{43}$/)])
    expect(await masterKeyHash(dbs[0], undefined)).toBe(hashKey(masters[0]!))
  })

  test('A-04 neither is made again, even when the keys were removed', async () => {
    const db = await migrateGateway(await open())
    await db.kysely.deleteFrom('gateway.keys').execute()
    expect(await ensureMasterKey(db)).toBeUndefined()
    expect(await ensureFirstKey(db)).toBeUndefined()
  })

  test('A-04 CFG-37 a master key that is set stands in for the one that was made', async () => {
    const db = await migrateGateway(await open())
    expect(await masterKeyHash(db, 'an operator chose this')).toBe(hashKey('an operator chose this'))
  })
})

import { type EmbeddedFolder, freshFolder } from '@tollgate/testing'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openDb } from '../src/index.ts'
import { holdConnection, log, open } from './databases.ts'

describe('the one connection of PGlite', () => {
  test('a query on the outer handle inside a transaction fails, and does not hang', async () => {
    const { db, close } = await open('pglite', { acquireTimeoutMs: 200 })
    const mistaken = db.kysely.transaction().execute(() => sql`select 1`.execute(db.kysely))
    await expect(mistaken).rejects.toMatchObject({ failure: 'unavailable' })
    await expect(db.ping(1_000)).resolves.toBeUndefined()
    await close()
  })

  test('is lent in the order of asking, past one who gave up', async () => {
    const { db, close } = await open('pglite', { acquireTimeoutMs: 50 })
    const order: string[] = []
    const holder = await holdConnection(db)
    await expect(db.ping(20)).resolves.toContain('did not answer')
    await expect(sql`select 1`.execute(db.kysely)).rejects.toMatchObject({ failure: 'unavailable' })
    const say = (word: string) => sql`select 1`.execute(db.kysely).then(() => order.push(word))
    const waiting = [say('first'), say('second'), say('third')]
    await Promise.all([holder.letGo(), ...waiting])
    expect(order).toEqual(['first', 'second', 'third'])
    await close()
  })

  test('a ping waits no longer than it was told while the connection is lent', async () => {
    const { db, close } = await open('pglite')
    const holder = await holdConnection(db)
    const began = performance.now()
    await expect(db.ping(100)).resolves.toContain('did not answer')
    expect(performance.now() - began).toBeLessThan(1_000)
    await holder.letGo()
    await close()
  })
})

test('a database in memory begins empty and leaves nothing', async () => {
  const db = await openDb({ url: 'memory:', log })
  const { rows } = await sql`select count(*) as tables from pg_tables where schemaname = 'public'`.execute(db.kysely)
  expect(rows).toEqual([{ tables: 0n }])
  await db.close()
}, 60_000)

describe('a PGlite folder', () => {
  let fresh: EmbeddedFolder
  let folder: string
  beforeEach(async () => {
    fresh = await freshFolder()
    folder = fresh.url
  })
  afterEach(() => fresh.drop())

  test('keeps its rows for the next start', async () => {
    const first = await openDb({ url: folder, log })
    await sql`create table kept as select 42 as answer`.execute(first.kysely)
    await first.close()
    const second = await openDb({ url: folder, log })
    const { rows } = await sql`select answer from kept`.execute(second.kysely)
    expect(rows).toEqual([{ answer: 42 }])
    await second.close()
  })

  test('is refused to a second handle until the first is closed', async () => {
    const first = await openDb({ url: folder, log })
    await expect(openDb({ url: folder, log })).rejects.toThrow(`${folder} is in use by process ${process.pid}`)
    await first.close()
    const second = await openDb({ url: folder, log })
    await second.close()
  })
})

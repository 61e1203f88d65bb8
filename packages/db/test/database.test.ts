import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { kinds, type Opened, open } from './databases.ts'

describe.each(kinds)('a %s database', (kind) => {
  let opened: Opened
  beforeAll(async () => {
    opened = await open(kind)
    await sql`create table counted (id int primary key, n int not null)`.execute(opened.db.kysely)
  })
  afterAll(() => opened.close())

  test('keeps the statements of a transaction apart from everybody else', async () => {
    const { kysely } = opened.db.typed<{ counted: { id: number; n: number } }>()
    await kysely.insertInto('counted').values({ id: 1, n: 0 }).execute()
    const add = () =>
      kysely.transaction().execute(async (tx) => {
        const { n } = await tx
          .selectFrom('counted')
          .select('n')
          .where('id', '=', 1)
          .forUpdate()
          .executeTakeFirstOrThrow()
        await tx
          .updateTable('counted')
          .set({ n: n + 1 })
          .where('id', '=', 1)
          .execute()
      })
    await Promise.all(Array.from({ length: 20 }, add))
    const { n } = await kysely.selectFrom('counted').select('n').executeTakeFirstOrThrow()
    expect(n).toBe(20)
  })

  test('takes back what a failed transaction did', async () => {
    const { kysely } = opened.db
    const failing = kysely.transaction().execute(async (tx) => {
      await sql`insert into counted values (2, 1)`.execute(tx)
      throw new Error('no')
    })
    await expect(failing).rejects.toThrow('no')
    const { rows } = await sql`select 1 from counted where id = 2`.execute(kysely)
    expect(rows).toEqual([])
  })

  test('does not call a transaction done whose statement failed and was swallowed', async () => {
    const swallowing = opened.db.kysely.transaction().execute(async (tx) => {
      await sql`insert into counted values (3, 1)`.execute(tx)
      await sql`select 1 / 0`.execute(tx).catch(() => {})
    })
    await expect(swallowing).rejects.toThrow()
  })

  test('says how many rows a statement changed', async () => {
    const { kysely } = opened.db.typed<{ counted: { id: number; n: number } }>()
    await kysely
      .insertInto('counted')
      .values([
        { id: 10, n: 1 },
        { id: 11, n: 1 },
      ])
      .execute()
    const { numDeletedRows } = await kysely.deleteFrom('counted').where('id', '>=', 10).executeTakeFirstOrThrow()
    expect(numDeletedRows).toBe(2n)
  })

  test('runs a prepared statement with its parameters, in parallel', async () => {
    const twice = opened.db.prepare<{ twice: number }>('double', 'select $1::int4 * 2 as twice')
    const rows = await Promise.all([1, 2, 3].map((n) => twice([n])))
    expect(rows).toEqual([[{ twice: 2 }], [{ twice: 4 }], [{ twice: 6 }]])
  })

  test('refuses one name for two prepared statements, and a name that Postgres would cut', () => {
    opened.db.prepare('taken', 'select 1')
    expect(() => opened.db.prepare('taken', 'select 2')).toThrow('taken by another text')
    expect(() => opened.db.prepare('taken', 'select 1')).not.toThrow()
    expect(() => opened.db.prepare('x'.repeat(64), 'select 1')).toThrow('longer')
  })

  test('passes on what the server says about a statement', async () => {
    await sql`insert into counted values (20, 1)`.execute(opened.db.kysely)
    await expect(sql`insert into counted values (20, 1)`.execute(opened.db.kysely)).rejects.toMatchObject({
      code: '23505',
    })
  })

  test('calls text with a NUL in it an invalid value', async () => {
    const echo = opened.db.prepare('echo_text', 'select $1::text as value')
    await expect(echo(['a\0b'])).rejects.toMatchObject({ failure: 'invalid_value' })
    const json = opened.db.prepare('echo_json', 'select $1::jsonb as value')
    await expect(json([JSON.stringify({ a: '\0' })])).rejects.toMatchObject({ failure: 'invalid_value' })
    await expect(echo(['still here'])).resolves.toEqual([{ value: 'still here' }])
  })

  test('answers a ping', async () => {
    await expect(opened.db.ping(1_000)).resolves.toBeUndefined()
  })

  test('refuses work once it is closed', async () => {
    const { db, close } = await open(kind)
    const one = db.prepare('one', 'select 1')
    await Promise.all([db.close(), db.close()])
    await close()
    await expect(one([])).rejects.toMatchObject({ failure: 'unavailable' })
    await expect(db.ping(100)).resolves.toContain('did not answer')
  })
})

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { migrate } from '../src/index.ts'
import { kinds, type Opened, open } from './databases.ts'

describe.each(kinds)('migrations on %s', (kind) => {
  let opened: Opened
  let folder: string
  const put = (name: string, text: string) => writeFile(join(folder, name), text)
  const run = () => migrate(opened.db, { schema: 'shop', folder })
  const names = async () => {
    const { rows } = await sql<{ name: string }>`select name from shop.migrations order by name`.execute(
      opened.db.kysely,
    )
    return rows.map(({ name }) => name)
  }

  beforeAll(async () => {
    opened = await open(kind)
  })
  afterAll(() => opened.close())
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'migrations-'))
    await put('0001_items.sql', 'create table shop.items (id int primary key);\ninsert into shop.items values (1);')
    await put('0002_names.sql', `alter table shop.items add name text not null default 'x';`)
    await put('readme.md', 'not a migration')
  })
  afterEach(async () => {
    await sql`drop schema if exists shop cascade`.execute(opened.db.kysely)
    await rm(folder, { recursive: true, force: true })
  })

  test('run in order and once', async () => {
    await expect(run()).resolves.toEqual(['0001_items.sql', '0002_names.sql'])
    await expect(run()).resolves.toEqual([])
    await put('0003_more.sql', 'insert into shop.items values (2);')
    await expect(run()).resolves.toEqual(['0003_more.sql'])
    const { rows } = await sql`select id, name from shop.items order by id`.execute(opened.db.kysely)
    expect(rows).toEqual([
      { id: 1, name: 'x' },
      { id: 2, name: 'x' },
    ])
  })

  test('run once when many replicas start at once', async () => {
    const replicas = await Promise.all(Array.from({ length: 5 }, () => opened.another()))
    const applied = await Promise.all(replicas.map((db) => migrate(db, { schema: 'shop', folder })))
    expect(applied.flat().sort()).toEqual(['0001_items.sql', '0002_names.sql'])
  })

  test('refuse a file that was changed after it was applied', async () => {
    await run()
    await put('0001_items.sql', 'create table shop.items (id int8 primary key);')
    await expect(run()).rejects.toThrow('shop/0001_items.sql was changed after it was applied')
  })

  test('do not mind other line ends', async () => {
    await run()
    await put('0001_items.sql', 'create table shop.items (id int primary key);\r\ninsert into shop.items values (1);')
    await expect(run()).resolves.toEqual([])
  })

  test('refuse a file that comes before one that was applied', async () => {
    await run()
    await put('0001_forgotten.sql', 'select 1')
    await expect(run()).rejects.toThrow('0001_forgotten.sql comes before 0001_items.sql')
  })

  test('leave a database alone that a later release has brought further', async () => {
    await put('0003_more.sql', 'select 1')
    await run()
    await rm(join(folder, '0003_more.sql'))
    await expect(run()).resolves.toEqual([])
  })

  test('take back the whole of a file that fails, and keep those before it', async () => {
    await put('0003_broken.sql', 'insert into shop.items values (7); insert into shop.nothing values (1);')
    await expect(run()).rejects.toThrow('shop.nothing')
    await expect(names()).resolves.toEqual(['0001_items.sql', '0002_names.sql'])
    const { rows } = await sql`select id from shop.items`.execute(opened.db.kysely)
    expect(rows).toEqual([{ id: 1 }])
    await put('0003_broken.sql', 'insert into shop.items values (7);')
    await expect(run()).resolves.toEqual(['0003_broken.sql'])
  })

  test('refuse an odd name', async () => {
    await put('fix.sql', 'select 1')
    await expect(run()).rejects.toThrow('fix.sql is not named like')
    await expect(migrate(opened.db, { schema: 'x; drop', folder })).rejects.toThrow('not a name for a schema')
  })

  test('leave the connection with its own statement timeout', async () => {
    await run()
    const { rows } = await sql<{ t: string }>`select current_setting('statement_timeout') as t`.execute(
      opened.db.kysely,
    )
    expect(rows[0]?.t).toBe(kind === 'postgres' ? '10s' : '0')
  })
})

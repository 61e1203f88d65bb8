import { once } from 'node:events'
import { createServer, connect as dial, type Socket } from 'node:net'
import { freePort, freshDatabase } from '@tollgate/testing'
import { sql } from 'kysely'
import { afterEach, expect, inject, test } from 'vitest'
import { openDb } from '../src/index.ts'
import { holdConnection, log, open } from './databases.ts'

const ends: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

/** A road to the real server that can go silent, as a partition does, or break. */
async function road() {
  const target = new URL(inject('postgresUrl'))
  const sockets = new Set<Socket>()
  let silent = false
  const server = createServer((near) => {
    const far = dial(Number(target.port), target.hostname)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('data', (bytes) => void (silent || to.write(bytes)))
      from.on('error', () => {})
      from.on('close', () => to.destroy())
    }
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const breakAll = () => sockets.forEach((socket) => void socket.destroy())
  const { port } = server.address() as { port: number }
  ends.push(async () => {
    server.close()
    breakAll()
  })
  const fresh = await freshDatabase(inject('postgresUrl'))
  ends.push(() => fresh.drop())
  const url = new URL(fresh.url)
  url.host = `127.0.0.1:${port}`
  return { url: url.href, breakAll, goSilent: () => (silent = true) }
}

test('a prepared statement is planned once a connection', async () => {
  const { db, close } = await open('postgres', { poolSize: 1 })
  ends.push(close)
  const echo = db.prepare<{ n: number }>('echo', 'select $1::int4 as n')
  for (let n = 0; n < 5; n++) await echo([n])
  const { rows } = await sql`select name, generic_plans + custom_plans as runs from pg_prepared_statements`.execute(
    db.kysely,
  )
  expect(rows).toEqual([{ name: 'echo', runs: 5n }])
})

test('a connection killed under a query is unavailable, and the next query has a new one', async () => {
  const { db, another, close } = await open('postgres', { poolSize: 1 })
  ends.push(close)
  const killer = await another()
  const running = sql`select pg_sleep(20)`.execute(db.kysely)
  const failing = expect(running).rejects.toMatchObject({ failure: 'unavailable' })
  await expect
    .poll(async () => {
      const kill = sql`select pg_terminate_backend(pid) from pg_stat_activity where query like 'select pg_sleep%'
        and datname = current_database()`
      return (await kill.execute(killer.kysely)).rows.length
    })
    .toBe(1)
  await failing
  await expect(sql`select 1`.execute(db.kysely)).resolves.toMatchObject({ rows: [{ '?column?': 1 }] })
})

test('a connection killed inside a transaction, between statements, ends the transaction and not the process', async () => {
  const { db, another, close } = await open('postgres', { poolSize: 1 })
  ends.push(close)
  const killer = await another()
  const transaction = db.kysely.transaction().execute(async (tx) => {
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(tx)
    await sql`select pg_terminate_backend(${rows[0]?.pid})`.execute(killer.kysely)
    await expect.poll(() => sql`select 1`.execute(tx).catch((error) => error.failure)).toBe('unavailable')
    throw new Error('ended')
  })
  await expect(transaction).rejects.toThrow()
  await expect(sql`select 1`.execute(db.kysely)).resolves.toBeTruthy()
})

test('idle connections that break are replaced without a word to the caller', async () => {
  const { url, breakAll } = await road()
  const db = await openDb({ url, log, poolSize: 3 })
  ends.push(() => db.close())
  await Promise.all([1, 2, 3].map(() => sql`select pg_sleep(0.05)`.execute(db.kysely)))
  breakAll()
  await expect
    .poll(() =>
      sql`select 1`.execute(db.kysely).then(
        () => 'ok',
        (error) => error.failure,
      ),
    )
    .toBe('ok')
})

test('a server that went silent fails the ping in time, and the next one too', async () => {
  const { url, goSilent } = await road()
  const db = await openDb({ url, log, poolSize: 2, acquireTimeoutMs: 500 })
  ends.push(() => db.close())
  await expect(db.ping(1_000)).resolves.toBeUndefined()
  goSilent()
  for (let n = 0; n < 3; n++) {
    const began = performance.now()
    await expect(db.ping(200)).resolves.toBe('the database did not answer within 200 ms')
    expect(performance.now() - began).toBeLessThan(1_500)
  }
})

test('a query on a server that went silent ends as unavailable', async () => {
  const { url, goSilent } = await road()
  const db = await openDb({ url, log, poolSize: 1, statementTimeoutMs: 100 })
  ends.push(() => db.close())
  await sql`select 1`.execute(db.kysely)
  goSilent()
  await expect(sql`select 1`.execute(db.kysely)).rejects.toMatchObject({ failure: 'unavailable' })
})

test('a statement that takes too long is a timeout, and its connection is still good', async () => {
  const { db, close } = await open('postgres', { poolSize: 1, statementTimeoutMs: 100 })
  ends.push(close)
  const pid = async () => (await sql`select pg_backend_pid() as pid`.execute(db.kysely)).rows[0]
  const before = await pid()
  await expect(sql`select pg_sleep(5)`.execute(db.kysely)).rejects.toMatchObject({ failure: 'timeout' })
  await expect(pid()).resolves.toEqual(before)
})

test('a pool with nothing free is unavailable after the wait, and says so', async () => {
  const { db, close } = await open('postgres', { poolSize: 1, acquireTimeoutMs: 100 })
  ends.push(close)
  const holder = await holdConnection(db)
  await expect(sql`select 1`.execute(db.kysely)).rejects.toMatchObject({ failure: 'unavailable' })
  await holder.letGo()
})

test('a server that is not there is named without its password', async () => {
  const url = `postgres://someone:hunter2@127.0.0.1:${await freePort()}/shop`
  const opening = openDb({ url, log, startTimeoutMs: 300 })
  await expect(opening).rejects.toThrow(/^the database at 127\.0\.0\.1:\d+\/shop cannot be used: .*ECONNREFUSED/)
  await expect(opening).rejects.not.toThrow('hunter2')
})

test('a server that is still starting is waited for', async () => {
  const port = await freePort()
  const target = new URL(inject('postgresUrl'))
  const opening = openDb({ url: `postgres://postgres@127.0.0.1:${port}/postgres`, log })
  const server = createServer((near) => {
    const far = dial(Number(target.port), target.hostname)
    near.pipe(far).pipe(near)
    for (const socket of [near, far]) socket.on('error', () => {})
  })
  setTimeout(() => server.listen(port, '127.0.0.1'), 400)
  const db = await opening
  await db.close()
  server.close()
})

test('a database that does not exist is refused at once', async () => {
  const url = new URL(inject('postgresUrl'))
  url.pathname = '/no_such_database'
  const began = performance.now()
  await expect(openDb({ url: url.href, log })).rejects.toThrow('no_such_database')
  expect(performance.now() - began).toBeLessThan(5_000)
})

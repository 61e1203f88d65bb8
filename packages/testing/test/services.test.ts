import { connect } from 'nats'
import pg from 'pg'
import { describe, expect, inject, test } from 'vitest'
import { freshDatabase, freshPrefix, restartableNats } from '../src/index.ts'

describe('a fresh database', () => {
  test('is empty, its own, and gone once dropped though somebody is still connected', async () => {
    const [one, other] = await Promise.all([freshDatabase(inject('postgresUrl')), freshDatabase(inject('postgresUrl'))])
    const client = new pg.Client({ connectionString: one.url })
    client.on('error', () => undefined)
    await client.connect()
    await client.query('create table rows (id int)')
    const neighbour = new pg.Client({ connectionString: other.url })
    await neighbour.connect()
    await expect(neighbour.query('select * from rows')).rejects.toThrow('does not exist')
    await neighbour.end()
    await Promise.all([one.drop(), other.drop()])
    await expect(new pg.Client({ connectionString: one.url }).connect()).rejects.toThrow('does not exist')
  })

  test('lies on a server that takes three hundred connections', async () => {
    const client = new pg.Client({ connectionString: inject('postgresUrl') })
    await client.connect()
    const { rows } = await client.query('show max_connections')
    await client.end()
    expect(Number(rows[0].max_connections)).toBeGreaterThanOrEqual(300)
  })
})

describe('the NATS server of the run', () => {
  test('has JetStream', async () => {
    const connection = await connect({ servers: inject('natsUrl') })
    const info = await (await connection.jetstreamManager()).getAccountInfo()
    expect(info.limits.max_streams).toBe(-1)
    await connection.close()
  })
})

describe('a restartable NATS', () => {
  test.each(['stop', 'kill'] as const)('keeps its port and what was stored over a %s', async (how) => {
    const server = await restartableNats()
    try {
      const before = await connect({ servers: server.url, reconnect: false })
      const manager = await before.jetstreamManager()
      const subject = freshPrefix()
      await manager.streams.add({ name: subject, subjects: [subject] })
      await before.jetstream().publish(subject, 'kept')
      await server[how]()
      expect(await before.closed().then(() => 'closed')).toBe('closed')
      await expect(connect({ servers: server.url, reconnect: false })).rejects.toThrow('CONNECTION_REFUSED')
      await server.start()
      const after = await connect({ servers: server.url, reconnect: false })
      const { state } = await (await after.jetstreamManager()).streams.info(subject)
      expect(state.messages).toBe(1)
      await after.close()
    } finally {
      await server.close()
    }
  })
})

import { freshPrefix, restartableNats } from '@tollgate/testing'
import { connect } from 'nats'
import { describe, expect, inject, onTestFinished, test } from 'vitest'
import { natsBus } from '../src/index.ts'
import { echo, echoBy, listLog, openSystem, within } from './open-buses.ts'

const { log } = listLog()

async function serverWith(...args: string[]): Promise<string> {
  const server = await restartableNats(args)
  onTestFinished(() => server.close())
  return server.url
}

describe('connecting to NATS', () => {
  test('takes a user and a password, or a token, that are given beside the address', async () => {
    const byUser = await serverWith('--user', 'tollgate', '--pass', 'p@ss:4222')
    const byToken = await serverWith('--auth', 'a-token')
    for (const access of [
      { servers: byUser, user: 'tollgate', password: 'p@ss:4222' },
      { servers: [byToken], token: 'a-token' },
    ]) {
      const bus = await natsBus({ ...access, name: 'test', log })
      expect(bus.status().connected).toBe(true)
      expect(await bus.drain(Date.now() + 1_000)).toBe(true)
    }
  })

  test('fails at once with words that help when the server refuses the credentials, and does not repeat them', async () => {
    const servers = await serverWith('--user', 'tollgate', '--pass', 'right')
    const begun = Date.now()
    const error = await natsBus({ servers, user: 'tollgate', password: 'wrong-secret', name: 'test', log }).catch(
      (e) => e,
    )
    expect(error.message).toBe('cannot connect to NATS (AUTHORIZATION_VIOLATION): check the credentials')
    expect(Date.now() - begun).toBeLessThan(5_000)
  })

  test('does not take credentials in the address, where they would be shown', async () => {
    const opening = natsBus({ servers: 'nats://me:secret@127.0.0.1:4222', name: 'test', log })
    await expect(opening).rejects.toThrow('give user and password, token or creds beside it')
    const error = await natsBus({ servers: 'nats://me:secret@127.0.0.1:4222', name: 'test', log }).catch((e) => e)
    expect(error.message).not.toContain('secret')
  })

  test('waits a while for a server that starts beside it', async () => {
    const server = await restartableNats()
    onTestFinished(() => server.close())
    await server.stop()
    const opening = natsBus({ servers: server.url, name: 'test', log })
    await server.start()
    const bus = await opening
    expect(bus.status().connected).toBe(true)
    await bus.drain(Date.now())
  })

  test('says what to check when there is no server', async () => {
    const server = await restartableNats()
    await server.close()
    const opening = natsBus({ servers: server.url, name: 'test', log, startWithinMs: 300 })
    await expect(opening).rejects.toThrow(
      'cannot connect to NATS (CONNECTION_REFUSED): check that its address is right',
    )
  })

  test('insists on TLS when the address says so', async () => {
    const servers = (await serverWith()).replace('nats://', 'tls://')
    await expect(natsBus({ servers, name: 'test', log, startWithinMs: 300 })).rejects.toThrow('cannot connect to NATS')
  })

  test.each(['', 'two words', 'a.b', 'x*'])('refuses "%s" as a name and as a prefix', async (bad) => {
    const servers = inject('natsUrl')
    await expect(natsBus({ servers, name: bad, log })).rejects.toThrow('letters')
    await expect(natsBus({ servers, name: 'test', prefix: bad, log })).rejects.toThrow('letters')
  })
})

describe('what a bus finds on its server', () => {
  const contract = echoBy('queue')

  test('is brought to what this release wants, when streams or workers were set up otherwise', async () => {
    const prefix = freshPrefix()
    const stream = `${prefix.toUpperCase()}_V1_TEST_QUEUE`
    const connection = await connect({ servers: inject('natsUrl') })
    onTestFinished(() => connection.close())
    const manager = await connection.jetstreamManager()
    await manager.streams.add({
      name: stream,
      subjects: [`${prefix}.v1.test.queue`],
      storage: 'memory' as never,
      retention: 'workqueue' as never,
      max_msgs: 5,
    })
    const join = openSystem('nats', { prefix })
    const worker = await join('worker')
    await worker.serve(contract, echo)
    expect((await manager.streams.info(stream)).config).toMatchObject({ max_msgs: 10_000, discard: 'new' })
    const other = await join('worker', { timing: { ackWaitMs: 7_000 } })
    await other.serve(contract, echo)
    expect((await manager.consumers.info(stream, 'worker')).config.ack_wait).toBe(7_000_000_000)
  })

  test('that cannot be changed stops the start with words that name it', async () => {
    const prefix = freshPrefix()
    const stream = `${prefix.toUpperCase()}_V1_TEST_QUEUE`
    const connection = await connect({ servers: inject('natsUrl') })
    onTestFinished(() => connection.close())
    const manager = await connection.jetstreamManager()
    await manager.streams.add({ name: stream, subjects: [`${prefix}.v1.test.queue`], storage: 'file' as never })
    const worker = await openSystem('nats', { prefix })('worker')
    await expect(worker.serve(contract, echo)).rejects.toThrow(`the stream ${stream} cannot be set up`)
  })

  test('may be shared: systems of different prefixes do not hear each other', async () => {
    const [one, two] = [openSystem('nats'), openSystem('nats')]
    const worker = await one('worker')
    await worker.serve(echoBy('direct'), echo)
    const stranger = await two('client')
    await expect(stranger.call(echoBy('direct'), { text: '' }, within(3_000))).rejects.toMatchObject({
      failure: 'unavailable',
    })
  })

  test('is worked on again after a stream or a place at it was removed', async () => {
    const prefix = freshPrefix()
    const join = openSystem('nats', { prefix })
    const worker = await join('worker')
    const client = await join('client')
    await worker.serve(contract, echo)
    expect(await client.call(contract, { text: 'before' }, within(5_000))).toMatchObject({ text: 'before' })
    const connection = await connect({ servers: inject('natsUrl') })
    onTestFinished(() => connection.close())
    const manager = await connection.jetstreamManager()
    await manager.consumers.delete(`${prefix.toUpperCase()}_V1_TEST_QUEUE`, 'worker')
    expect(await client.call(contract, { text: 'one' }, within(15_000))).toMatchObject({ text: 'one' })
    await manager.streams.delete(`${prefix.toUpperCase()}_V1_TEST_QUEUE`)
    expect(await client.call(contract, { text: 'two' }, within(15_000))).toMatchObject({ text: 'two' })
  })

  test('that is not meant for a bus is passed over', async () => {
    const { log, lines } = listLog()
    const prefix = freshPrefix()
    const join = openSystem('nats', { prefix, log })
    const worker = await join('worker')
    const client = await join('client')
    for (const by of ['direct', 'queue'] as const) await worker.serve(echoBy(by), echo)
    const connection = await connect({ servers: inject('natsUrl') })
    onTestFinished(() => connection.close())
    for (const by of ['direct', 'queue']) connection.publish(`${prefix}.v1.test.${by}`, 'hello?')
    await connection.flush()
    for (const by of ['direct', 'queue'] as const) {
      expect(await client.call(echoBy(by), { text: 'x' }, within(5_000))).toMatchObject({ text: 'x' })
    }
    expect(lines.filter(({ level }) => level === 'error' || level === 'warn')).toHaveLength(2)
  })
})

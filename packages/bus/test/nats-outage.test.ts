import { setTimeout as sleep } from 'node:timers/promises'
import { topic } from '@tollgate/contracts'
import { freshPrefix, type RestartableNats, restartableNats } from '@tollgate/testing'
import { connect } from 'nats'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import type { Bus } from '../src/index.ts'
import { echo, echoBy, gate, type Join, listLog, openSystem, within } from './open-buses.ts'

const contracts = { direct: echoBy('direct'), queue: echoBy('queue') }
const once = { direct: echoBy('direct', false), queue: echoBy('queue', false) }
const used = topic({ subject: 'tg.v1.test.used', event: z.object({ n: z.int() }) })

async function queueLength(servers: string, prefix: string): Promise<number> {
  const connection = await connect({ servers })
  try {
    const manager = await connection.jetstreamManager()
    return (await manager.streams.info(`${prefix.toUpperCase()}_V1_TEST_QUEUE`)).state.messages
  } catch {
    return -1 // not made yet
  } finally {
    await connection.close()
  }
}

async function openServer(): Promise<{ server: RestartableNats; join: Join; prefix: string }> {
  const server = await restartableNats()
  // after the buses, which are closed in the opposite order of their opening
  onTestFinished(() => server.close())
  const prefix = freshPrefix()
  return { server, prefix, join: openSystem('nats', { servers: server.url, prefix }) }
}

const outcome = (calling: Promise<{ text: string }>) =>
  calling.then(
    ({ text }) => text,
    ({ failure }) => failure as string,
  )

/** Serves both contracts, counting how often each call was run, and holding those in work until told. */
async function serveBoth(worker: Bus, which: typeof contracts, open: Promise<void>) {
  const runs = new Map<string, number>()
  const running = () => [...runs.values()].reduce((sum, count) => sum + count, 0)
  for (const contract of Object.values(which)) {
    await worker.serve(
      contract,
      async (input) => {
        runs.set(input.text, (runs.get(input.text) ?? 0) + 1)
        await open
        return echo(input)
      },
      { slots: 50 },
    )
  }
  return { runs, running }
}

/** Milliseconds as a rule; a loaded machine may take its time. */
const SOON = { timeout: 15_000 }

describe('while NATS is restarted', () => {
  test.each(['stop', 'kill'] as const)(
    'BR-157 every call ends with its answer, and ran once, over a %s of five seconds',
    async (how) => {
      const { server, join } = await openServer()
      const client = await join('client')
      const worker = await join('worker')
      const open = gate()
      const { runs, running } = await serveBoth(worker, contracts, open.promise)
      const call = (kind: 'direct' | 'queue', text: string) =>
        outcome(client.call(contracts[kind], { text }, within(18_000)))
      const texts = Array.from({ length: 10 }, (_, index) => [`direct in flight ${index}`, `queue in flight ${index}`])
      const inFlight = texts.flatMap(([a = '', b = '']) => [call('direct', a), call('queue', b)])
      await expect.poll(running, SOON).toBe(20)

      await server[how]()
      await expect.poll(() => client.status(), SOON).toMatchObject({ connected: false, canRecord: false })
      await expect.poll(() => worker.status().connected, SOON).toBe(false)
      // what is in work is done while nobody can be told
      open.resolve()
      const during = texts.flatMap((_, index) => [call('direct', `direct ${index}`), call('queue', `queue ${index}`)])
      await sleep(5_000)
      await server.start()

      expect(await Promise.all(inFlight)).toEqual(texts.flat())
      expect(await Promise.all(during)).toEqual(texts.flatMap((_, index) => [`direct ${index}`, `queue ${index}`]))
      expect(runs.size).toBe(40)
      expect([...runs.values()].every((count) => count === 1)).toBe(true)
      await expect.poll(() => client.status(), { timeout: 6_000 }).toMatchObject({ connected: true, canRecord: true })
    },
    40_000,
  )

  test('BR-157 a call that may not run twice never does, and ends by its deadline', async () => {
    const { server, join } = await openServer()
    const client = await join('client')
    const worker = await join('worker')
    const open = gate()
    const { runs, running } = await serveBoth(worker, once, open.promise)
    const { deadline } = within(9_000)
    const texts = Array.from({ length: 10 }, (_, index) => `${index}`)
    const calls = texts.flatMap((text) => [
      outcome(client.call(once.direct, { text: `direct ${text}` }, { deadline })),
      outcome(client.call(once.queue, { text: `queue ${text}` }, { deadline })),
    ])
    await expect.poll(running, { timeout: 5_000 }).toBe(20)
    await server.kill()
    await server.start()
    await expect.poll(() => client.status().connected && worker.status().connected, { timeout: 5_000 }).toBe(true)
    open.resolve()
    const ended = await Promise.all(calls)
    expect(Date.now()).toBeLessThan(deadline + 500)
    expect(ended).toEqual(texts.flatMap((text) => [`direct ${text}`, `queue ${text}`]))
    expect([...runs.values()].every((count) => count === 1)).toBe(true)
  }, 30_000)

  test('a queued call that no worker had taken yet is in the queue again, though it was in memory', async () => {
    const { server, join } = await openServer()
    const client = await join('client')
    const waiting = Array.from({ length: 5 }, (_, n) =>
      outcome(client.call(contracts.queue, { text: `${n}` }, within(15_000))),
    )
    await sleep(300)
    await server.kill()
    await server.start()
    const worker = await join('worker')
    const started: string[] = []
    await worker.serve(contracts.queue, async (input) => {
      started.push(input.text)
      return echo(input)
    })
    expect(await Promise.all(waiting)).toEqual(['0', '1', '2', '3', '4'])
    expect(started.sort()).toEqual(['0', '1', '2', '3', '4'])
  }, 30_000)

  test('the end of a call from before says nothing about a call of the same number in the queue made anew', async () => {
    const { server, join, prefix } = await openServer()
    const client = await join('client')
    const [before, holding] = [gate(), gate()]
    const openWorker = async () => {
      const worker = await join('worker')
      const handler = async (input: { text: string; times: number }) => {
        if (input.text === 'before') await before.promise
        if (input.text === 'holding') await holding.promise
        return echo(input)
      }
      await worker.serve(contracts.queue, handler, { slots: 1 })
      return { busy: () => worker.status().serving[contracts.queue.subject]?.busy }
    }
    const call = (text: string) => outcome(client.call(contracts.queue, { text }, within(20_000)))
    const first = await openWorker()
    await call('number 1')
    const held = call('before')
    await expect.poll(first.busy).toBe(1)
    const second = await openWorker()
    await server.kill()
    await server.start()
    await expect.poll(() => client.status().connected, { timeout: 5_000 }).toBe(true)
    const taken = call('holding')
    await expect.poll(second.busy, { timeout: 10_000 }).toBe(1)
    // the first of these has the number that the held call had in the queue before
    const waiting = ['one', 'two'].map(call)
    await expect.poll(() => queueLength(server.url, prefix), { timeout: 5_000 }).toBe(3)
    before.resolve()
    expect(await held).toBe('before')
    holding.resolve()
    expect(await Promise.all([taken, ...waiting])).toEqual(['holding', 'one', 'two'])
  }, 40_000)

  test('a call that waits for NATS longer than it pays gives up, and one that is cancelled ends at once', async () => {
    const { server, join } = await openServer()
    const client = await join('client', { timing: { patienceMs: 500 } })
    await server.kill()
    await expect.poll(() => client.status().connected).toBe(false)
    const begun = Date.now()
    expect(await outcome(client.call(contracts.direct, { text: '' }, within(20_000)))).toBe('unavailable')
    expect(Date.now() - begun).toBeLessThan(2_000)
    const leaving = new AbortController()
    const cancelled = outcome(client.call(contracts.queue, { text: '' }, { ...within(20_000), signal: leaving.signal }))
    leaving.abort()
    expect(await cancelled).toBe('cancelled')
    expect(await outcome(client.call(contracts.queue, { text: '' }, within(400)))).toBe('timeout')
  })

  test('no event is lost or stored twice, and all reach their consumer', async () => {
    const { server, join, prefix } = await openServer()
    const sender = await join('gateway')
    const consumer = await join('billing')
    const seen = new Set<number>()
    await consumer.consume(used, { durable: 'billing' }, async (events) => {
      for (const { n } of events) seen.add(n)
    })
    let sent = 0
    const recorded: Promise<void>[] = []
    const sending = setInterval(() => {
      recorded.push(sender.record(used, `event ${sent}`, { n: sent }, within(15_000)))
      sent += 1
    }, 3)
    try {
      for (const how of ['kill', 'stop', 'kill'] as const) {
        await sleep(300)
        await server[how]()
        await sleep(300)
        await server.start()
        await expect.poll(() => sender.status().connected, { timeout: 5_000 }).toBe(true)
      }
      await sleep(300)
    } finally {
      clearInterval(sending)
    }
    await Promise.all(recorded)
    await expect.poll(() => seen.size, { timeout: 10_000 }).toBe(sent)
    expect(sent).toBeGreaterThan(100)

    const connection = await connect({ servers: server.url })
    const { state } = await (await connection.jetstreamManager()).streams.info(`${prefix.toUpperCase()}_V1_TEST_USED`)
    await connection.close()
    expect(state.messages).toBe(sent)
  }, 40_000)

  test('an event that cannot be stored by its deadline fails, and readiness tells', async () => {
    const { server, join } = await openServer()
    const sender = await join('gateway')
    await sender.record(used, 'first', { n: 1 }, within(5_000))
    expect(sender.status().canRecord).toBe(true)
    await server.stop()
    const recording = sender.record(used, 'second', { n: 2 }, within(600))
    await expect(recording).rejects.toMatchObject({ failure: 'unavailable' })
    expect(sender.status()).toMatchObject({ connected: false, canRecord: false })
    await server.start()
    await sender.record(used, 'second', { n: 2 }, within(10_000))
    expect(sender.status()).toMatchObject({ connected: true, canRecord: true })
  })

  test('draining ends by its deadline though the server does not answer', async () => {
    const { server, join } = await openServer()
    const worker = await join('worker')
    const { running } = await serveBoth(worker, contracts, new Promise(() => undefined))
    const client = await join('client')
    const calling = outcome(client.call(contracts.direct, { text: 'x' }, within(30_000)))
    const recording = client.record(used, 'one', { n: 1 }, within(30_000)).catch(({ failure }) => failure)
    await expect.poll(running).toBe(1)
    await server.kill()
    const begun = Date.now()
    expect(await worker.drain(Date.now() + 300)).toBe(false)
    await client.drain(Date.now() + 300)
    expect(Date.now() - begun).toBeLessThan(5_000)
    expect(await calling).toBe('unavailable')
    await recording
  })

  test('nothing is logged as an error, nor more than once that the connection is lost', async () => {
    const { log, lines } = listLog()
    const { server, join } = await openServer()
    const bus = await join('worker', { log })
    await bus.serve(contracts.queue, echo, { slots: 8 })
    await bus.serve(contracts.direct, echo)
    await bus.consume(used, { durable: 'billing' }, async () => undefined)
    await server.kill()
    await expect.poll(() => bus.status().connected).toBe(false)
    await sleep(1_500)
    await server.start()
    await expect.poll(() => bus.status().connected, { timeout: 5_000 }).toBe(true)
    expect(await outcome(bus.call(contracts.queue, { text: 'again' }, within(10_000)))).toBe('again')
    const texts = lines.filter(({ level }) => level !== 'debug').map(({ text }) => text)
    expect(texts).toEqual(['the connection to NATS is lost; trying again until it is back', 'connected to NATS again'])
  })
})

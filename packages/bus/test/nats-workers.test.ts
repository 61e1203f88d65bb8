import { setTimeout as sleep } from 'node:timers/promises'
import { freshPrefix } from '@tollgate/testing'
import { connect } from 'nats'
import { describe, expect, inject, test } from 'vitest'
import { echo, echoBy, gate, openSystem, untilStopped, within } from './open-buses.ts'
import { startWorker } from './worker-processes.ts'

const timing = { beatMs: 200, silenceMs: 1_500, ackWaitMs: 1_500, patienceMs: 2_000 }

describe('a queued call', () => {
  const contract = echoBy('queue')

  test('is taken over by another worker when its own is killed', async () => {
    const prefix = freshPrefix()
    const join = openSystem('nats', { prefix, timing })
    const client = await join('client')
    const victim = await startWorker({ prefix, timing, delivery: 'queue', takesMs: 60_000 })
    const events: unknown[] = []
    const calling = client.call(
      contract,
      { text: 'page' },
      { ...within(15_000), onEvent: (event) => events.push(event) },
    )
    await expect.poll(() => victim.started()).toEqual(['page 1'])
    victim.signal('SIGKILL')
    const heir = await join('worker')
    await heir.serve(contract, async (_, { attempt, emit }) => {
      emit({ type: 'begun' })
      return { text: `attempt ${attempt}` }
    })
    expect(await calling).toMatchObject({ text: 'attempt 2' })
    expect(events).toEqual([{ type: 'begun' }, { type: 'begun' }])
  })

  test('that lasts longer than a worker may be silent stays with its worker', async () => {
    const join = openSystem('nats', { timing })
    const client = await join('client')
    const [one, two] = [await join('worker'), await join('worker')]
    let started = 0
    for (const worker of [one, two]) {
      await worker.serve(contract, async ({ text }, { attempt }) => {
        started += 1
        await sleep(2 * timing.ackWaitMs)
        return { text: `${text} ${attempt}` }
      })
    }
    expect(await client.call(contract, { text: 'slow' }, within(15_000))).toMatchObject({ text: 'slow 1' })
    expect(started).toBe(1)
  })

  test('goes on elsewhere when its worker is stopped before it is done', async () => {
    const join = openSystem('nats', { timing })
    const client = await join('client')
    const worker = await join('worker')
    const { seen, handler } = untilStopped()
    await worker.serve(contract, handler)
    const calling = client.call(contract, { text: 'page' }, within(15_000))
    await expect.poll(() => seen.started).toHaveLength(1)
    const heir = await join('worker')
    await heir.serve(contract, echo)
    expect(await worker.drain(Date.now())).toBe(false)
    expect(await calling).toMatchObject({ text: 'page' })
  })

  test('fails soon when its third worker dies too, and leaves the queue', async () => {
    const prefix = freshPrefix()
    const join = openSystem('nats', { prefix, timing })
    const client = await join('client')
    const victims = await Promise.all(
      [1, 2, 3].map(() => startWorker({ prefix, timing, delivery: 'queue', takesMs: 60_000 })),
    )
    const calling = client.call(contract, { text: 'poison' }, within(60_000)).catch((error) => error)
    for (const attempt of [1, 2, 3]) {
      const holder = () => victims.find((victim) => victim.started().includes(`poison ${attempt}`))
      await expect.poll(holder, { timeout: 10_000 }).toBeDefined()
      holder()?.signal('SIGKILL')
    }
    const killed = Date.now()
    expect(await calling).toMatchObject({ failure: 'unavailable' })
    expect(Date.now() - killed).toBeLessThan(5_000)
    expect(victims.flatMap((victim) => victim.started()).sort()).toEqual(['poison 1', 'poison 2', 'poison 3'])
    expect(await queueLength(prefix)).toBe(0)
  }, 90_000)

  test('that may not run twice is not given to another worker', async () => {
    const prefix = freshPrefix()
    const join = openSystem('nats', { prefix, timing })
    const client = await join('client')
    const once = echoBy('queue', false)
    const victim = await startWorker({ prefix, timing, delivery: 'queue', idempotent: false, takesMs: 60_000 })
    const calling = client.call(once, { text: 'page' }, within(30_000)).catch((error) => error)
    await expect.poll(() => victim.started()).toEqual(['page 1'])
    victim.signal('SIGKILL')
    let started = 0
    const other = await join('worker')
    await other.serve(once, async (input) => {
      started += 1
      return echo(input)
    })
    expect(await calling).toMatchObject({ failure: 'unavailable' })
    expect(await client.call(once, { text: 'next' }, within(5_000))).toMatchObject({ text: 'next' })
    expect(started).toBe(1)
  })

  test('is dropped unstarted when its deadline has passed before a worker is free', async () => {
    const prefix = freshPrefix()
    const join = openSystem('nats', { prefix })
    const client = await join('client')
    const worker = await join('worker')
    const started: string[] = []
    const open = gate()
    await worker.serve(
      contract,
      async (input) => {
        started.push(input.text)
        await open.promise
        return echo(input)
      },
      { slots: 1 },
    )
    const first = client.call(contract, { text: 'first' }, within(10_000))
    await expect.poll(() => started).toEqual(['first'])
    const expired = client.call(contract, { text: 'expired' }, within(300))
    await expect(expired).rejects.toMatchObject({ failure: 'timeout' })
    const last = client.call(contract, { text: 'last' }, within(10_000))
    open.resolve()
    expect(await Promise.all([first, last])).toMatchObject([{ text: 'first' }, { text: 'last' }])
    expect(started).toEqual(['first', 'last'])
    await expect.poll(() => queueLength(prefix)).toBe(0)
  })

  test('goes to whoever is free: a slow worker does not sit on what a quick one could do', async () => {
    const join = openSystem('nats')
    const client = await join('client')
    const [slow, quick] = [await join('worker'), await join('worker')]
    const done = { slow: 0, quick: 0 }
    const open = gate()
    await slow.serve(
      contract,
      async (input) => {
        await open.promise
        done.slow += 1
        return echo(input)
      },
      { slots: 2 },
    )
    await quick.serve(
      contract,
      async (input) => {
        done.quick += 1
        return echo(input)
      },
      { slots: 2 },
    )
    const calls = Array.from({ length: 40 }, () => client.call(contract, { text: 'x' }, within(10_000)))
    await expect.poll(() => done.quick, { timeout: 5_000 }).toBe(38)
    open.resolve()
    await Promise.all(calls)
    expect(done).toEqual({ slow: 2, quick: 38 })
  })

  test('is answered `busy` at once when ten thousand wait already', async () => {
    const prefix = freshPrefix()
    const join = openSystem('nats', { prefix })
    const client = await join('client')
    const first = client.call(contract, { text: 'x' }, within(300)).catch(({ failure }) => failure)
    expect(await first).toBe('timeout')
    await fillQueue(prefix, 9_999)
    const started = Date.now()
    const calling = client.call(contract, { text: 'x' }, within(20_000))
    await expect(calling).rejects.toMatchObject({ failure: 'unavailable', retryAfterSeconds: 1 })
    expect(Date.now() - started).toBeLessThan(2_000)
  })
})

describe('a direct call', () => {
  const contract = echoBy('direct')

  test('is sent once more when its worker is killed, and answered by another', async () => {
    const prefix = freshPrefix()
    const join = openSystem('nats', { prefix, timing })
    const client = await join('client')
    const victim = await startWorker({ prefix, timing, delivery: 'direct', takesMs: 60_000 })
    const calling = client.call(contract, { text: 'query' }, within(15_000))
    await expect.poll(() => victim.started()).toEqual(['query 1'])
    victim.signal('SIGKILL')
    const heir = await join('worker')
    await heir.serve(contract, async ({ text }, { attempt }) => ({ text: `${text} ${attempt}` }))
    expect(await calling).toMatchObject({ text: 'query 2' })
  })

  test('that may not run twice fails when its worker is killed, well before its deadline', async () => {
    const prefix = freshPrefix()
    const join = openSystem('nats', { prefix, timing })
    const client = await join('client')
    const once = echoBy('direct', false)
    const victim = await startWorker({ prefix, timing, delivery: 'direct', idempotent: false, takesMs: 60_000 })
    const calling = client.call(once, { text: 'exec' }, within(60_000)).catch((error) => error)
    await expect.poll(() => victim.started()).toEqual(['exec 1'])
    victim.signal('SIGKILL')
    let started = 0
    const other = await join('worker')
    await other.serve(once, async (input) => {
      started += 1
      return echo(input)
    })
    const killed = Date.now()
    expect(await calling).toMatchObject({ failure: 'unavailable' })
    expect(Date.now() - killed).toBeLessThan(5_000)
    expect(started).toBe(0)
  })

  test('that lasts longer than a worker may be silent lives by the beats of its worker, also while it waits', async () => {
    const join = openSystem('nats', { timing })
    const client = await join('client')
    const worker = await join('worker')
    const started: string[] = []
    await worker.serve(
      contract,
      async (input) => {
        started.push(input.text)
        await sleep(1.5 * timing.silenceMs)
        return echo(input)
      },
      { slots: 1 },
    )
    const calls = ['first', 'second'].map((text) => client.call(contract, { text }, within(15_000)))
    expect(await Promise.all(calls)).toMatchObject([{ text: 'first' }, { text: 'second' }])
    expect(started).toEqual(['first', 'second'])
  })

  test('is not given up by a caller that was too busy itself to hear its worker', async () => {
    const prefix = freshPrefix()
    const join = openSystem('nats', { prefix, timing })
    const client = await join('client')
    const once = echoBy('direct', false)
    const worker = await startWorker({ prefix, timing, delivery: 'direct', idempotent: false, takesMs: 3_000 })
    const calling = client.call(once, { text: 'exec' }, within(20_000))
    await expect.poll(() => worker.started()).toEqual(['exec 1'])
    // in this place of the event loop, so that its timers are looked at before what has come meanwhile is read
    setImmediate(() => {
      for (const busyUntil = Date.now() + timing.silenceMs + 500; Date.now() < busyUntil; );
    })
    expect(await calling).toMatchObject({ text: 'exec by a process' })
  })

  test('that reaches a worker which drains is answered by another, even if it may not run twice', async () => {
    const join = openSystem('nats', { timing })
    const client = await join('client')
    const once = echoBy('direct', false)
    const workers = [await join('worker'), await join('worker')]
    const started: string[] = []
    for (const worker of workers) {
      await worker.serve(once, async (input) => {
        started.push(input.text)
        return echo(input)
      })
    }
    const texts = Array.from({ length: 300 }, (_, index) => `${index}`)
    const calls = texts.map((text, index) => sleep(index % 60).then(() => client.call(once, { text }, within(10_000))))
    await sleep(15)
    await workers[0]?.drain(Date.now() + 5_000)
    expect((await Promise.all(calls)).map(({ text }) => text)).toEqual(texts)
    expect(started.toSorted()).toEqual(texts.toSorted())
  })
})

const streamOf = (prefix: string) => `${prefix.toUpperCase()}_V1_TEST_QUEUE`

async function queueLength(prefix: string): Promise<number> {
  const connection = await connect({ servers: inject('natsUrl') })
  try {
    const manager = await connection.jetstreamManager()
    return (await manager.streams.info(streamOf(prefix))).state.messages
  } finally {
    await connection.close()
  }
}

async function fillQueue(prefix: string, count: number): Promise<void> {
  const connection = await connect({ servers: inject('natsUrl') })
  try {
    for (let index = 0; index < count; index++) connection.publish(`${prefix}.v1.test.queue`, '{}')
    await connection.flush()
    await expect.poll(() => queueLength(prefix), { timeout: 10_000 }).toBe(10_000)
  } finally {
    await connection.close()
  }
}

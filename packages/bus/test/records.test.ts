import { Fault, topic } from '@tollgate/contracts'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { gate, kinds, listLog, openSystem, within } from './open-buses.ts'

const used = topic({
  subject: 'tg.v1.test.used',
  event: z.object({ n: z.int(), by: z.string().default('nobody') }),
})

describe.each(kinds)('recording over a %s bus', (kind) => {
  test('brings every event to its consumer, as the schema fills it in', async () => {
    const join = openSystem(kind)
    const consumer = await join('billing')
    const sender = await join('gateway')
    const seen: unknown[] = []
    await consumer.consume(used, { durable: 'billing' }, async (events) => void seen.push(...events))
    await sender.record(used, 'one', { n: 1 }, within(5_000))
    await sender.record(used, 'two', { n: 2, by: 'me' }, within(5_000))
    await expect
      .poll(() => seen)
      .toEqual([
        { n: 1, by: 'nobody' },
        { n: 2, by: 'me' },
      ])
  })

  test('takes an id once, whether it comes again later or at the same time', async () => {
    const join = openSystem(kind)
    const consumer = await join('billing')
    const sender = await join('gateway')
    const seen: number[] = []
    await consumer.consume(used, { durable: 'billing' }, async (events) => void seen.push(...events.map(({ n }) => n)))
    await Promise.all([1, 1, 1].map((n) => sender.record(used, 'same', { n }, within(5_000))))
    await sender.record(used, 'same', { n: 1 }, within(5_000))
    await sender.record(used, 'other', { n: 2 }, within(5_000))
    await expect.poll(() => seen).toContain(2)
    expect(seen.sort()).toEqual([1, 2])
  })

  test('keeps what was recorded before its consumer came', async () => {
    const join = openSystem(kind)
    const sender = await join('gateway')
    const recording = [1, 2, 3].map((n) => sender.record(used, `early ${n}`, { n }, within(10_000)))
    const consumer = await join('billing')
    const seen: number[] = []
    await consumer.consume(used, { durable: 'billing' }, async (events) => void seen.push(...events.map(({ n }) => n)))
    await Promise.all(recording)
    await expect.poll(() => seen.toSorted()).toEqual([1, 2, 3])
  })

  test('hands over together what came while the consumer was busy, up to the size of a batch', async () => {
    const join = openSystem(kind)
    const consumer = await join('billing')
    const sender = await join('gateway')
    const open = gate()
    const sizes: number[] = []
    await consumer.consume(used, { durable: 'billing', batch: 10 }, async (events) => {
      sizes.push(events.length)
      await open.promise
    })
    const first = sender.record(used, 'first', { n: 0 }, within(10_000))
    await expect.poll(() => sizes).toEqual([1])
    const rest = Array.from({ length: 35 }, (_, n) => sender.record(used, `rest ${n}`, { n }, within(10_000)))
    if (kind === 'nats') await Promise.all(rest)
    open.resolve()
    await Promise.all([first, ...rest])
    await expect.poll(() => sizes.reduce((sum, size) => sum + size, 0)).toBe(36)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(10)
    expect(sizes.length).toBeLessThan(16)
  })

  test('offers a batch that failed one at a time, so that a bad event holds up no other', async () => {
    const { log, lines } = listLog()
    const join = openSystem(kind, { log })
    const consumer = await join('billing')
    const sender = await join('gateway')
    const open = gate()
    const tries: number[] = []
    const taken = new Set<number>()
    let healed = false
    await consumer.consume(used, { durable: 'billing' }, async (events) => {
      await open.promise
      for (const { n } of events) {
        if (n === 3) tries.push(events.length)
        if (n === 3 && !healed) throw new Fault('unavailable', 'the database is away')
      }
      for (const { n } of events) taken.add(n)
    })
    const recording = [0, 1, 2, 3, 4, 5].map((n) => sender.record(used, `event ${n}`, { n }, within(15_000)))
    const results = Promise.allSettled(recording)
    if (kind === 'nats') await results
    open.resolve()
    await expect.poll(() => [...taken].sort(), { timeout: 5_000 }).toEqual([0, 1, 2, 4, 5])
    expect(tries).toContain(1)
    expect(lines.some(({ level }) => level === 'error')).toBe(true)
    healed = true
    // in one process the sender is told, since nothing else keeps the event; over NATS it is offered again by itself
    if (kind === 'memory') {
      expect((await results)[3]).toMatchObject({ status: 'rejected', reason: { failure: 'unavailable' } })
      await sender.record(used, 'event 3', { n: 3 }, within(5_000))
    }
    await expect.poll(() => taken.has(3), { timeout: 10_000 }).toBe(true)
  })

  test('refuses an event that does not fit, or is larger than may travel', async () => {
    const join = openSystem(kind)
    const sender = await join('gateway')
    const wrong = sender.record(used, 'wrong', { n: 'x' } as never, within(5_000))
    await expect(wrong).rejects.toMatchObject({ failure: 'invalid_request' })
    const large = sender.record(used, 'large', { n: 1, by: 'x'.repeat(256 * 1024) }, within(5_000))
    await expect(large).rejects.toMatchObject({ failure: 'too_large' })
  })

  test('brings an event to each consumer by its own name', async () => {
    const join = openSystem(kind)
    const consumer = await join('billing')
    const sender = await join('gateway')
    const seen: string[] = []
    for (const durable of ['billing', 'reports']) {
      await consumer.consume(used, { durable }, async (events) => void seen.push(...events.map(() => durable)))
    }
    await sender.record(used, 'one', { n: 1 }, within(5_000))
    await expect.poll(() => seen.toSorted()).toEqual(['billing', 'reports'])
  })

  test('lets the batch in hand be finished when its consumer drains, and takes no other', async () => {
    const join = openSystem(kind)
    const consumer = await join('billing')
    const sender = await join('gateway')
    const open = gate()
    const begun: number[] = []
    const done: number[] = []
    await consumer.consume(used, { durable: 'billing', batch: 1 }, async ([event]) => {
      begun.push(event?.n ?? 0)
      await open.promise
      done.push(event?.n ?? 0)
    })
    const one = sender.record(used, 'one', { n: 1 }, within(10_000))
    await expect.poll(() => begun).toEqual([1])
    const drained = consumer.drain(Date.now() + 5_000)
    const two = sender.record(used, 'two', { n: 2 }, within(1_000)).catch(() => undefined)
    open.resolve()
    expect(await drained).toBe(true)
    await Promise.all([one, two])
    expect(done).toEqual([1])
  })
})

describe('recording in one process', () => {
  test('ends when the bus is closed, though nobody ever consumed', async () => {
    const bus = await openSystem('memory')('all')
    const recording = bus.record(used, 'one', { n: 1 }, within(60_000)).catch(({ failure }) => failure)
    expect(await bus.drain(Date.now() + 50)).toBe(false)
    expect(await recording).toBe('unavailable')
  })

  test('may be tried again under the same id after it failed, also while nobody consumed', async () => {
    const bus = await openSystem('memory')('all')
    await expect(bus.record(used, 'one', { n: 1 }, within(100))).rejects.toMatchObject({ failure: 'unavailable' })
    const again = bus.record(used, 'one', { n: 1 }, within(5_000))
    const seen: number[] = []
    await bus.consume(used, { durable: 'billing' }, async (events) => void seen.push(...events.map(({ n }) => n)))
    await again
    expect(seen).toEqual([1])
  })

  test('fails at its deadline when nobody consumes, since nothing would keep the event', async () => {
    const bus = await openSystem('memory')('all')
    const recording = bus.record(used, 'one', { n: 1 }, within(200))
    await expect(recording).rejects.toMatchObject({ failure: 'unavailable' })
  })
})

describe('recording over NATS', () => {
  test('stores an event that nobody consumes yet', async () => {
    const join = openSystem('nats')
    const sender = await join('gateway')
    await sender.record(used, 'one', { n: 1 }, within(5_000))
    expect(sender.status()).toMatchObject({ connected: true, canRecord: true })
  })

  test('shares the events among the replicas of a consumer', async () => {
    const join = openSystem('nats')
    const replicas = [await join('billing'), await join('billing')]
    const sender = await join('gateway')
    const seen: number[][] = [[], []]
    for (const [index, replica] of replicas.entries()) {
      await replica.consume(used, { durable: 'billing', batch: 4 }, async (events) => {
        seen[index]?.push(...events.map(({ n }) => n))
      })
    }
    await Promise.all(Array.from({ length: 60 }, (_, n) => sender.record(used, `${n}`, { n }, within(10_000))))
    await expect.poll(() => seen.flat().length).toBe(60)
    expect(new Set(seen.flat()).size).toBe(60)
    expect(seen.every((events) => events.length > 0)).toBe(true)
  })

  test('drops an event that its consumer cannot read, says so in the log, and goes on', async () => {
    const { log, lines } = listLog()
    const join = openSystem('nats')
    const consumer = await join('billing', { log })
    const sender = await join('gateway')
    const stricter = { ...used, event: used.event.refine(({ n }) => n !== 13) }
    const seen: number[] = []
    await consumer.consume(
      stricter,
      { durable: 'billing' },
      async (events) => void seen.push(...events.map(({ n }) => n)),
    )
    for (const n of [12, 13, 14]) await sender.record(used, `${n}`, { n }, within(5_000))
    await expect.poll(() => seen).toEqual([12, 14])
    await expect.poll(() => lines.map(({ text }) => text)).toContain('a recorded event cannot be read, and is dropped')
  })

  test('waits longer before each further try of a bad event, which keeps nobody waiting', async () => {
    const join = openSystem('nats')
    const consumer = await join('billing')
    const sender = await join('gateway')
    const tries: number[] = []
    const others: number[] = []
    await consumer.consume(used, { durable: 'billing' }, async (events) => {
      if (events.some(({ n }) => n === 13)) {
        if (events.length === 1) tries.push(Date.now())
        throw new Error('cannot be taken')
      }
      others.push(...events.map(({ n }) => n))
    })
    await sender.record(used, 'bad', { n: 13 }, within(5_000))
    await expect.poll(() => tries.length).toBe(1)
    await sender.record(used, 'good', { n: 1 }, within(5_000))
    await expect.poll(() => others, { timeout: 900 }).toEqual([1])
    await expect.poll(() => tries.length, { timeout: 8_000 }).toBe(3)
    const [first = 0, second = 0, third = 0] = tries
    expect(second - first).toBeGreaterThan(900)
    expect(third - second).toBeGreaterThan(1_900)
  })

  test('offers again what a consumer took and never answered for', async () => {
    const join = openSystem('nats', { timing: { ackWaitMs: 400 } })
    const lost = await join('billing')
    const sender = await join('gateway')
    let begun = 0
    await lost.consume(used, { durable: 'billing' }, () => {
      begun += 1
      return new Promise(() => undefined)
    })
    await sender.record(used, 'one', { n: 1 }, within(5_000))
    await expect.poll(() => begun).toBe(1)
    // it is cut off in the middle: the event in hand is neither taken nor given back
    expect(await lost.drain(Date.now())).toBe(false)
    const seen: number[] = []
    const next = await join('billing')
    await next.consume(used, { durable: 'billing' }, async (events) => void seen.push(...events.map(({ n }) => n)))
    await expect.poll(() => seen, { timeout: 8_000 }).toEqual([1])
  })
})

describe('recording over NATS to a consumer that waits for company', () => {
  test('hands over together what comes within its time, and a full batch without waiting', async () => {
    const join = openSystem('nats')
    const consumer = await join('billing')
    const sender = await join('gateway')
    const sizes: number[] = []
    await consumer.consume(used, { durable: 'billing', batch: 4, lingerMs: 2_000 }, async (events) => {
      sizes.push(events.length)
    })
    // one after the other: each is stored, and could have been handed over, before the next
    for (let n = 0; n < 3; n += 1) await sender.record(used, `slow ${n}`, { n }, within(5_000))
    await expect.poll(() => sizes, { timeout: 10_000 }).toEqual([3])
    const began = performance.now()
    await Promise.all(Array.from({ length: 8 }, (_, n) => sender.record(used, `quick ${n}`, { n }, within(5_000))))
    await expect.poll(() => sizes.reduce((sum, size) => sum + size, 0), { timeout: 10_000 }).toBe(11)
    expect(performance.now() - began).toBeLessThan(2 * 2_000 + 4_000)
    expect(Math.max(...sizes)).toBeLessThanOrEqual(4)
  })
})

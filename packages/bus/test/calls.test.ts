import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@tollgate/contracts'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { echo, echoBy, gate, kinds, listLog, openPair, openSystem, untilStopped, within } from './open-buses.ts'

const KIB = 1024
const MIB = KIB * KIB
const deliveries = ['direct', 'queue'] as const

describe.each(kinds.flatMap((kind) => deliveries.map((delivery) => ({ kind, delivery }))))(
  'a $delivery call over a $kind bus',
  ({ kind, delivery }) => {
    const contract = echoBy(delivery)

    test('carries input and answer, each as its schema fills it in', async () => {
      const { worker, client } = await openPair(kind)
      await worker.serve(contract, echo)
      expect(await client.call(contract, { text: 'ünïcode ✓' }, within(5_000))).toEqual({
        text: 'ünïcode ✓',
        note: 'none',
      })
      expect(await client.call(contract, { text: 'ab', times: 3 }, within(5_000))).toMatchObject({ text: 'ababab' })
    })

    test('answers many calls at once, each with its own answer', async () => {
      const { worker, client } = await openPair(kind)
      await worker.serve(contract, async (input) => {
        await sleep(Math.random() * 10)
        return echo(input)
      })
      const texts = Array.from({ length: 200 }, (_, index) => `call ${index}`)
      const answers = await Promise.all(texts.map((text) => client.call(contract, { text }, within(10_000))))
      expect(answers.map(({ text }) => text)).toEqual(texts)
    })

    test('hands over events in order and before the answer, and passes over those it has no shape for', async () => {
      const { worker, client } = await openPair(kind)
      const later = { ...contract, event: z.object({ type: z.string() }) }
      await worker.serve(later, async (input, { emit }) => {
        for (const type of ['begun', 'of a later release', 'half']) emit({ type })
        return echo(input)
      })
      const heard: unknown[] = []
      await client.call(contract, { text: '' }, { ...within(5_000), onEvent: (event) => heard.push(event) })
      expect(heard).toEqual([{ type: 'begun' }, { type: 'half' }])
    })

    test('goes on when whoever listens to its events throws, or nobody listens', async () => {
      const { log, lines } = listLog()
      const { worker, client } = await openPair(kind, { log })
      await worker.serve(contract, async (input, { emit }) => {
        emit({ type: 'begun' })
        return echo(input)
      })
      const onEvent = () => {
        throw new Error('a listener at fault')
      }
      await client.call(contract, { text: 'a' }, { ...within(5_000), onEvent })
      await client.call(contract, { text: 'b' }, within(5_000))
      expect(lines.filter(({ level }) => level === 'error')).toHaveLength(1)
    })

    test('refuses an input that does not fit, says where, does not repeat the value, and starts no work', async () => {
      const { worker, client } = await openPair(kind)
      let started = 0
      await worker.serve(contract, async (input) => {
        started += 1
        return echo(input)
      })
      const wrong = { text: 'x', times: 'sk-secret' } as never
      const fault = await client.call(contract, wrong, within(5_000)).catch((error) => error)
      expect(fault).toBeInstanceOf(Fault)
      expect(fault).toMatchObject({ failure: 'invalid_request', message: expect.stringMatching(/^times: /) })
      expect(fault.message).not.toContain('sk-secret')
      expect(started).toBe(0)
    })

    test('fails as our own mistake when the answer does not fit', async () => {
      const { worker, client } = await openPair(kind)
      await worker.serve({ ...contract, output: z.object({ txt: z.string() }) }, async () => ({ txt: 'x' }))
      const calling = client.call(contract, { text: 'x' }, within(5_000))
      await expect(calling).rejects.toMatchObject({
        failure: 'internal',
        message: 'something went wrong on our side',
      })
    })

    test.each([[undefined], [7]])('brings a failure back by name, text and Retry-After (%s)', async (seconds) => {
      const { worker, client } = await openPair(kind)
      await worker.serve(contract, async () => {
        throw new Fault('rate_limited', 'too many searches', {
          cause: new Error('key sk-secret at 10.0.0.7'),
          ...(seconds === undefined ? {} : { retryAfterSeconds: seconds }),
        })
      })
      const fault = await client.call(contract, { text: 'x' }, within(5_000)).catch((error) => error)
      expect(fault).toBeInstanceOf(Fault)
      expect(fault).toMatchObject({ failure: 'rate_limited', message: 'too many searches', status: 429 })
      expect(fault.retryAfterSeconds).toBe(seconds)
      expect(fault.cause).toBeUndefined()
    })

    test('tells nothing of an error that nobody foresaw, which is logged where it happened', async () => {
      const { log, lines } = listLog()
      const { worker, client } = await openPair(kind, { log })
      await worker.serve(contract, async () => {
        throw new TypeError('cannot read properties of undefined')
      })
      const fault = await client.call(contract, { text: 'x' }, within(5_000)).catch((error) => error)
      expect(fault).toMatchObject({ failure: 'internal', message: 'something went wrong on our side' })
      const { details } = lines.find(({ level }) => level === 'error') ?? {}
      expect(details).toMatchObject({
        subject: contract.subject,
        err: { cause: { message: 'cannot read properties of undefined' } },
      })
    })

    test('does not run a handler again for a failure of its own', async () => {
      const { worker, client } = await openPair(kind)
      let started = 0
      await worker.serve(contract, async () => {
        started += 1
        throw new Fault('unavailable', 'the engine is down')
      })
      const calling = client.call(contract, { text: 'x' }, within(5_000))
      await expect(calling).rejects.toMatchObject({ failure: 'unavailable', message: 'the engine is down' })
      expect(started).toBe(1)
    })

    test('ends at its deadline, and so does the work', async () => {
      const { worker, client } = await openPair(kind)
      const { seen, handler } = untilStopped()
      await worker.serve(contract, handler)
      const deadline = Date.now() + 400
      await expect(client.call(contract, { text: 'x' }, { deadline })).rejects.toMatchObject({ failure: 'timeout' })
      expect(Math.abs(Date.now() - deadline)).toBeLessThan(200)
      await expect.poll(() => seen.stopped).toHaveLength(1)
    })

    test('is not sent after its deadline, nor by a caller that has left', async () => {
      const { worker, client } = await openPair(kind)
      const { seen, handler } = untilStopped()
      await worker.serve(contract, handler)
      const late = client.call(contract, { text: 'late' }, { deadline: Date.now() - 1 })
      await expect(late).rejects.toMatchObject({ failure: 'timeout' })
      const gone = client.call(contract, { text: 'gone' }, { ...within(5_000), signal: AbortSignal.abort() })
      await expect(gone).rejects.toMatchObject({ failure: 'cancelled' })
      expect(seen.started).toEqual([])
    })

    test('ends at once when its caller leaves, and so does the work', async () => {
      const { worker, client } = await openPair(kind)
      const { seen, handler } = untilStopped()
      await worker.serve(contract, handler)
      const leaving = new AbortController()
      const calling = client.call(contract, { text: 'x' }, { ...within(20_000), signal: leaving.signal })
      await expect.poll(() => seen.started).toHaveLength(1)
      leaving.abort()
      await expect(calling).rejects.toMatchObject({ failure: 'cancelled' })
      await expect.poll(() => seen.stopped).toEqual(['cancelled'])
    })

    test('gives its worker the deadline of the caller, and says that it is the first try', async () => {
      const { worker, client } = await openPair(kind)
      const { deadline } = within(7_654)
      await worker.serve(contract, async (_, context) => ({ text: `${context.deadline} ${context.attempt}` }))
      expect(await client.call(contract, { text: '' }, { deadline })).toMatchObject({ text: `${deadline} 1` })
    })

    test('works on as many at once as there are slots, and no more', async () => {
      const { worker, client } = await openPair(kind)
      let busy = 0
      let most = 0
      const open = gate()
      await worker.serve(
        contract,
        async (input) => {
          busy += 1
          most = Math.max(most, busy)
          await open.promise
          busy -= 1
          return echo(input)
        },
        { slots: 3 },
      )
      expect(worker.status().serving).toEqual({ [contract.subject]: { busy: 0, slots: 3 } })
      const calls = Array.from({ length: 9 }, () => client.call(contract, { text: 'x' }, within(10_000)))
      await expect.poll(() => worker.status().serving[contract.subject]?.busy).toBe(3)
      open.resolve()
      await Promise.all(calls)
      expect(most).toBe(3)
    })

    test('that was cancelled while it waited for a slot is never started', async () => {
      const { worker, client } = await openPair(kind)
      const { seen, handler } = untilStopped()
      await worker.serve(contract, handler, { slots: 1 })
      const first = new AbortController()
      const second = new AbortController()
      const one = client.call(contract, { text: 'one' }, { ...within(20_000), signal: first.signal })
      await expect.poll(() => seen.started).toEqual(['one'])
      const two = client.call(contract, { text: 'two' }, { ...within(20_000), signal: second.signal })
      const third = new AbortController()
      const three = client.call(contract, { text: 'three' }, { ...within(20_000), signal: third.signal })
      second.abort()
      await expect(two).rejects.toMatchObject({ failure: 'cancelled' })
      first.abort()
      await expect(one).rejects.toMatchObject({ failure: 'cancelled' })
      await expect.poll(() => seen.started).toEqual(['one', 'three'])
      third.abort()
      await expect(three).rejects.toMatchObject({ failure: 'cancelled' })
    })

    test('takes a request of 256 KiB, and refuses one byte more at once', async () => {
      const { worker, client } = await openPair(kind)
      await worker.serve(contract, async ({ text }) => ({ text: `${text.length}` }))
      const room = 256 * KIB - JSON.stringify({ text: '' }).length
      expect(await client.call(contract, { text: 'x'.repeat(room) }, within(5_000))).toMatchObject({ text: `${room}` })
      const started = Date.now()
      const tooLarge = client.call(contract, { text: 'x'.repeat(room + 1) }, within(5_000))
      await expect(tooLarge).rejects.toMatchObject({ failure: 'too_large' })
      expect(Date.now() - started).toBeLessThan(1_000)
      // few characters, but three bytes each
      const wide = client.call(contract, { text: '€'.repeat(100 * KIB) }, within(5_000))
      await expect(wide).rejects.toMatchObject({ failure: 'too_large' })
      // few bytes, but escaped in JSON
      const escaped = client.call(contract, { text: '\u0001'.repeat(50 * KIB) }, within(5_000))
      await expect(escaped).rejects.toMatchObject({ failure: 'too_large' })
      await expect(client.call(contract, { text: 'small' }, within(5_000))).resolves.toMatchObject({ text: '5' })
    })

    test.each([0, 256 * KIB - 11, 256 * KIB - 10, 900_000, MIB + 1, 5_000_000])(
      'BR-158 brings back a result of %i bytes as it was',
      async (bytes) => {
        const { worker, client } = await openPair(kind)
        const result = Array.from({ length: Math.ceil(bytes / 10) }, (_, index) => `${index}`.padStart(10)).join('')
        await worker.serve(contract, async () => ({ text: result.slice(0, bytes) }))
        const { text } = await client.call(contract, { text: '' }, within(10_000))
        expect(text === result.slice(0, bytes)).toBe(true)
      },
    )

    test.each([0, 1, 2])('BR-158 splits no character of three bytes, %i bytes off', async (off) => {
      const { worker, client } = await openPair(kind)
      const result = 'x'.repeat(off) + '€'.repeat(300 * KIB)
      await worker.serve(contract, async () => ({ text: result }))
      const { text } = await client.call(contract, { text: '' }, within(10_000))
      expect(text === result).toBe(true)
    })

    test.each([8 * MIB + 1, 40_000_000])(
      'BR-158 says at once that a result of %i bytes is too large, and leaves other calls alone',
      async (bytes) => {
        const { worker, client } = await openPair(kind)
        await worker.serve(contract, async ({ times }) => ({ text: 'x'.repeat(times) }))
        const others = Array.from({ length: 10 }, () => client.call(contract, { text: '', times: 5 }, within(10_000)))
        const large = client.call(contract, { text: '', times: bytes }, within(10_000))
        await expect(large).rejects.toMatchObject({
          failure: 'too_large',
          message: 'the result is larger than 8192 KiB',
        })
        await expect(Promise.all(others)).resolves.toHaveLength(10)
        await expect(client.call(contract, { text: '', times: 2 }, within(5_000))).resolves.toMatchObject({
          text: 'xx',
        })
      },
    )

    test('lets what runs finish when its worker drains, and nothing new begin there', async () => {
      const { worker, client } = await openPair(kind)
      const open = gate()
      const started: string[] = []
      await worker.serve(contract, async (input) => {
        started.push(input.text)
        await open.promise
        return echo(input)
      })
      const running = client.call(contract, { text: 'running' }, within(10_000))
      await expect.poll(() => started).toEqual(['running'])
      const drained = worker.drain(Date.now() + 5_000)
      const late = client.call(contract, { text: 'late' }, within(700)).catch(({ failure }) => failure)
      expect(await late).toMatch(/unavailable|timeout/)
      open.resolve()
      expect(await running).toMatchObject({ text: 'running' })
      expect(await drained).toBe(true)
      expect(await worker.drain(0)).toBe(true)
      expect(started).toEqual(['running'])
      expect(worker.status().connected).toBe(false)
    })
  },
)

describe.each(kinds)('a %s bus', (kind) => {
  const direct = echoBy('direct')
  const queue = echoBy('queue')

  test('says at once that nobody serves a direct call', async () => {
    const join = openSystem(kind)
    const client = await join('client')
    const started = Date.now()
    await expect(client.call(direct, { text: '' }, within(10_000))).rejects.toMatchObject({ failure: 'unavailable' })
    expect(Date.now() - started).toBeLessThan(1_500)
  })

  test('keeps a queued call until somebody serves it', async () => {
    const join = openSystem(kind)
    const client = await join('client')
    const waiting = ['a', 'b'].map((text) => client.call(queue, { text }, within(10_000)))
    const given = client.call(queue, { text: 'c' }, within(300))
    await expect(given).rejects.toMatchObject({ failure: 'timeout' })
    const worker = await join('worker')
    const started: string[] = []
    await worker.serve(queue, async (input) => {
      started.push(input.text)
      return echo(input)
    })
    expect(await Promise.all(waiting)).toMatchObject([{ text: 'a' }, { text: 'b' }])
    expect(started.sort()).toEqual(['a', 'b'])
  })

  test('answers a direct call that finds twice as many waiting as there are slots: busy', async () => {
    const { worker, client } = await openPair(kind)
    const open = gate()
    let started = 0
    await worker.serve(
      direct,
      async (input) => {
        started += 1
        await open.promise
        return echo(input)
      },
      { slots: 2 },
    )
    const calls = Array.from({ length: 6 }, () => client.call(direct, { text: 'x' }, within(10_000)))
    await expect.poll(() => started).toBe(2)
    await expect(client.call(direct, { text: 'x' }, within(10_000))).rejects.toMatchObject({
      failure: 'unavailable',
      retryAfterSeconds: 1,
    })
    open.resolve()
    await expect(Promise.all(calls)).resolves.toHaveLength(6)
  })

  test('cancels what is left at the end of draining, and says that it had to', async () => {
    const { worker, client } = await openPair(kind)
    const { seen, handler } = untilStopped()
    await worker.serve(direct, handler)
    const calling = client.call(direct, { text: 'x' }, within(20_000))
    calling.catch(() => undefined)
    await expect.poll(() => seen.started).toHaveLength(1)
    const started = Date.now()
    expect(await worker.drain(Date.now() + 200)).toBe(false)
    expect(Date.now() - started).toBeLessThan(2_500)
    await expect(calling).rejects.toMatchObject({ failure: 'unavailable' })
    expect(seen.stopped).toHaveLength(1)
  })

  test('lets a call that drains make the calls it needs', async () => {
    const join = openSystem(kind)
    const worker = await join('worker')
    const helper = await join('helper')
    const client = await join('client')
    const open = gate()
    await helper.serve(queue, echo)
    await worker.serve(direct, async ({ text }, { deadline, signal }) => {
      await open.promise
      return worker.call(queue, { text: `${text} page` }, { deadline, signal })
    })
    const calling = client.call(direct, { text: 'a' }, within(10_000))
    await expect.poll(() => worker.status().serving[direct.subject]?.busy).toBe(1)
    const drained = worker.drain(Date.now() + 5_000)
    open.resolve()
    expect(await calling).toMatchObject({ text: 'a page' })
    expect(await drained).toBe(true)
  })

  test('refuses calls once it is closed', async () => {
    const join = openSystem(kind)
    const client = await join('client')
    await client.drain(Date.now())
    for (const contract of [direct, queue]) {
      const calling = client.call(contract, { text: '' }, within(5_000))
      await expect(calling).rejects.toMatchObject({ failure: 'unavailable' })
    }
  })

  test('serves a subject once in a process', async () => {
    const join = openSystem(kind)
    const worker = await join('worker')
    await worker.serve(direct, echo)
    await expect(worker.serve(direct, echo)).rejects.toThrow('served twice')
  })
})

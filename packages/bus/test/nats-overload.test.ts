import { setTimeout as sleep } from 'node:timers/promises'
import { freshPrefix } from '@tollgate/testing'
import { describe, expect, test } from 'vitest'
import { echo, echoBy, gate, openSystem, within } from './open-buses.ts'
import { startWorker } from './worker-processes.ts'

const timing = { beatMs: 200, silenceMs: 1_500, ackWaitMs: 1_500, patienceMs: 2_000 }

const outcome = (calling: Promise<{ text: string }>) =>
  calling.then(
    ({ text }) => text,
    ({ failure }) => failure as string,
  )

describe('a worker that stops under load', () => {
  test('BR-165 begins nothing more, ends by its deadline with a job that never ends, and loses no call', async () => {
    const contract = echoBy('queue')
    const join = openSystem('nats', { timing })
    const client = await join('client')
    const worker = await join('worker')
    const open = gate()
    const started: string[] = []
    await worker.serve(
      contract,
      async (input, { signal }) => {
        started.push(input.text)
        if (input.text === 'running 0') await new Promise(() => undefined)
        await open.promise
        return signal.aborted ? { text: 'too late' } : echo(input)
      },
      { slots: 8 },
    )
    const call = (text: string) => outcome(client.call(contract, { text }, within(15_000)))
    const running = Array.from({ length: 8 }, (_, index) => call(`running ${index}`))
    await expect.poll(() => started).toHaveLength(8)
    const begun = Date.now()
    const drained = worker.drain(begun + 1_000)
    const late = Array.from({ length: 100 }, (_, index) => call(`late ${index}`))
    open.resolve()
    expect(await Promise.all(running.slice(1))).toEqual(Array.from({ length: 7 }, (_, index) => `running ${index + 1}`))
    expect(await drained).toBe(false)
    expect(Date.now() - begun).toBeLessThan(4_000)
    expect(started).toHaveLength(8)
    const heir = await join('worker')
    await heir.serve(contract, echo, { slots: 8 })
    expect(await Promise.all(late)).toEqual(Array.from({ length: 100 }, (_, index) => `late ${index}`))
    // what never ended there was given back, and is done here
    expect(await running[0]).toBe('running 0')
  }, 30_000)
})

describe('five thousand calls at once to two workers of eight slots', () => {
  test('BR-165 by queue are all answered', async () => {
    const contract = echoBy('queue')
    const join = openSystem('nats')
    const client = await join('client')
    let started = 0
    for (const worker of [await join('worker'), await join('worker')]) {
      await worker.serve(
        contract,
        async (input) => {
          started += 1
          return echo(input)
        },
        { slots: 8 },
      )
    }
    const texts = Array.from({ length: 5_000 }, (_, index) => `${index}`)
    const ended = await Promise.all(texts.map((text) => outcome(client.call(contract, { text }, within(50_000)))))
    expect(ended).toEqual(texts)
    expect(started).toBe(5_000)
  }, 60_000)

  test('BR-165 directly are each answered, with a result or that the worker is busy', async () => {
    const contract = echoBy('direct')
    const join = openSystem('nats')
    const client = await join('client')
    const started: string[] = []
    for (const worker of [await join('worker'), await join('worker')]) {
      await worker.serve(
        contract,
        async (input) => {
          started.push(input.text)
          await sleep(2)
          return echo(input)
        },
        { slots: 8 },
      )
    }
    const texts = Array.from({ length: 5_000 }, (_, index) => `${index}`)
    const ended = await Promise.all(texts.map((text) => outcome(client.call(contract, { text }, within(30_000)))))
    const answered = ended.filter((end) => end !== 'unavailable')
    expect(answered).toEqual(texts.filter((_, index) => ended[index] !== 'unavailable'))
    expect(answered.length).toBeGreaterThanOrEqual(48)
    // nothing ran that its caller was told is not running
    expect(started.toSorted()).toEqual(answered.toSorted())
  }, 60_000)
})

describe('a worker that hangs', () => {
  test.each([true, false])(
    'BR-165 holds up nobody for long, and a call runs twice only if it may (%s)',
    async (idempotent) => {
      const contract = echoBy('direct', idempotent)
      const prefix = freshPrefix()
      const join = openSystem('nats', { prefix, timing })
      const client = await join('client')
      const paused = await startWorker({ prefix, timing, delivery: 'direct', idempotent })
      const healthy = await join('worker')
      const started: string[] = []
      await healthy.serve(contract, async (input) => {
        started.push(input.text)
        return echo(input)
      })
      paused.signal('SIGSTOP')
      const texts = Array.from({ length: 40 }, (_, index) => `${index}`)
      const begun = Date.now()
      const ended = await Promise.all(texts.map((text) => outcome(client.call(contract, { text }, within(20_000)))))
      expect(Date.now() - begun).toBeLessThan(8_000)
      expect(ended.filter((end) => end !== 'unavailable').toSorted()).toEqual(started.toSorted())
      expect(started.length).toBeGreaterThan(0)
      paused.signal('SIGCONT')
      // it wakes up to calls that have been given up, some of which went to the other one
      expect(await outcome(client.call(contract, { text: 'after' }, within(10_000)))).toMatch(/^after/)
      if (idempotent) return
      const ran = [...started, ...paused.started().map((call) => call.split(' ')[0])].filter((text) => text !== 'after')
      expect(new Set(ran).size).toBe(ran.length)
    },
    60_000,
  )
})

describe('large results for a caller that reads slowly', () => {
  test('BR-165 each end in a result or a failure, and calls after them go well', async () => {
    const contract = echoBy('direct')
    const join = openSystem('nats', { timing })
    const client = await join('client')
    const worker = await startWorkerOfLargeResults(join)
    const calls = Array.from({ length: 12 }, () =>
      outcome(client.call(contract, { text: 'x', times: 5_000_000 }, within(20_000))),
    )
    await expect.poll(() => worker.started()).toBeGreaterThan(0)
    // nothing is read meanwhile, and the server holds no more than its limit for one client
    for (const blockedUntil = Date.now() + 1_500; Date.now() < blockedUntil; );
    const ended = await Promise.all(calls)
    expect(ended.every((end) => end.length === 5_000_000 || /^(unavailable|timeout)$/.test(end))).toBe(true)
    expect(await outcome(client.call(contract, { text: 'small' }, within(10_000)))).toBe('small')
  }, 60_000)
})

async function startWorkerOfLargeResults(join: ReturnType<typeof openSystem>): Promise<{ started(): number }> {
  const worker = await join('worker')
  let started = 0
  await worker.serve(echoBy('direct'), async (input) => {
    started += 1
    return echo(input)
  })
  return { started: () => started }
}

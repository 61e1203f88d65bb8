import { Fault } from '@tollgate/contracts'
import { expect, test } from 'vitest'
import { batched } from '../src/batched.ts'

const recorder = (run: (items: number[]) => Promise<number[]>) => {
  const runs: number[][] = []
  const batch = batched<number, number>({
    most: 3,
    inFlight: 1,
    mostWaiting: 5,
    run(items) {
      runs.push(items)
      return run(items)
    },
  })
  return { runs, batch }
}

test('calls of one moment run together, up to the most, and each gets its own answer', async () => {
  const { runs, batch } = recorder(async (items) => items.map((n) => n * 10))
  await expect(Promise.all([1, 2, 3, 4].map((n) => batch.add(n)))).resolves.toEqual([10, 20, 30, 40])
  expect(runs).toEqual([[1, 2, 3], [4]])
})

test('what comes while a run is under way waits for the next', async () => {
  let release = () => {}
  const { runs, batch } = recorder(async (items) => {
    if (items.includes(1)) await new Promise<void>((resolve) => (release = resolve))
    return items
  })
  const first = batch.add(1)
  await expect.poll(() => runs.length).toBe(1)
  const rest = [2, 3].map((n) => batch.add(n))
  expect(batch.waiting()).toBe(2)
  release()
  await Promise.all([first, ...rest])
  expect(runs).toEqual([[1], [2, 3]])
})

test('a bad item fails alone', async () => {
  const { runs, batch } = recorder(async (items) => {
    if (items.includes(2)) throw new Error('two is bad')
    return items
  })
  const outcomes = await Promise.allSettled([1, 2, 3].map((n) => batch.add(n)))
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(runs).toEqual([[1, 2, 3], [1], [2], [3]])
})

test('an outage fails all at once', async () => {
  const { runs, batch } = recorder(async () => {
    throw new Fault('unavailable', 'down')
  })
  const outcomes = await Promise.allSettled([1, 2, 3].map((n) => batch.add(n)))
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  expect(runs).toHaveLength(1)
})

test('a full queue refuses', async () => {
  const { batch } = recorder(async (items) => items)
  const waiting = [1, 2, 3, 4, 5].map((n) => batch.add(n))
  await expect(batch.add(6)).rejects.toMatchObject({ failure: 'unavailable' })
  await Promise.all(waiting)
  await expect(batch.add(7)).resolves.toBe(7)
})

test('a caller who left before its turn is not run', async () => {
  const { runs, batch } = recorder(async (items) => items)
  const gone = new AbortController()
  const leaving = batch.add(1, gone.signal)
  const staying = batch.add(2)
  gone.abort()
  await expect(leaving).rejects.toMatchObject({ failure: 'cancelled' })
  await staying
  expect(runs).toEqual([[2]])
})

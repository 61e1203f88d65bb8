import { fakeSearxng } from '@tollgate/testing'
import { describe, expect, test } from 'vitest'
import { openBackends } from '../src/backends.ts'
import { withRuntime } from '../src/runtime-settings.ts'
import { defaultBounds } from '../src/settings.ts'
import { mapAtMost, openSlots } from '../src/slots.ts'
import { kept } from './engines.ts'
import { openWorld, recordingLog, times } from './world.ts'

const idle = new AbortController().signal

test('CFG-52 other settings open backends anew, whose calls under way still have their places', async () => {
  const { log } = recordingLog()
  const bounds = { ...defaultBounds, searches: 1, waitingSearches: 0, fetches: 1, waitingFetches: 0 }
  const started = {
    searchTools: { main: { provider: 'searxng' } },
    fetchTools: { pages: { provider: 'exa', apiKey: 'key' } },
    legacy: { url: 'http://first.test' },
  }
  const before = openBackends(started, bounds, log)
  const slotsIn = ({ instances, fetchers, legacy }: typeof before) => [
    instances.find('main')?.slots,
    fetchers.find('pages')?.slots,
    legacy?.slots,
  ]
  const ends: (() => void)[] = []
  const running = slotsIn(before).map((slots) => slots?.run(idle, () => new Promise<void>((end) => ends.push(end))))

  const set = { web_search_url: 'http://second.test', web_fetch_default_tool: 'pages', web_search_max_results: 3 }
  const after = openBackends(withRuntime(started, set), bounds, log, before)
  for (const slots of slotsIn(after)) expect(await slots?.run(idle, async () => 'ran')).toBe('full')
  // D-08: an instance without an address of its own follows the one that is in force
  expect(after.instances.find('main')?.apiBase).toBe('http://second.test')
  expect([after.fetchers.inLoop?.name, after.defaultResults]).toEqual(['pages', 3])
  for (const end of ends) end()
  await Promise.all(running)
  for (const slots of slotsIn(after)) expect(await slots?.run(idle, async () => 'ran')).toBe('ran')
})

describe('slots', () => {
  test('run at most so many at once, in order of asking, and say when too many wait', async () => {
    const slots = openSlots({ places: 2, waiting: 2 })
    const order: number[] = []
    const ends: (() => void)[] = []
    const ask = (n: number) =>
      slots.run(idle, () => {
        order.push(n)
        return new Promise<number>((end) => ends.push(() => end(n)))
      })
    const asked = [1, 2, 3, 4].map(ask)
    expect(await ask(5)).toBe('full')
    expect(order).toEqual([1, 2])
    ends[1]?.()
    expect(await asked[1]).toBe(2)
    expect(order).toEqual([1, 2, 3])
    for (let n = 0; n < 4; n++) {
      ends[n]?.()
      await Promise.resolve()
    }
    expect(await asked[0]).toBe(1)
    expect(await asked[2]).toBe(3)
    ends[3]?.()
    expect(await asked[3]).toBe(4)
    expect(await slots.run(idle, async () => 'free again')).toBe('free again')
  })

  test('a place is given back when work fails', async () => {
    const slots = openSlots({ places: 1, waiting: 0 })
    await expect(slots.run(idle, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
    expect(await slots.run(idle, async () => 1)).toBe(1)
  })

  test('who leaves while waiting gives up the wait, and nobody else’s', async () => {
    const slots = openSlots({ places: 1, waiting: 2 })
    let end = () => {}
    const first = slots.run(idle, () => new Promise<void>((done) => (end = done)))
    const gone = new AbortController()
    const left = slots.run(gone.signal, async () => 'never')
    const stays = slots.run(idle, async () => 'ran')
    gone.abort(new Error('left'))
    await expect(left).rejects.toThrow('left')
    end()
    await first
    expect(await stays).toBe('ran')
  })

  test('a signal that has fired already runs nothing', async () => {
    let ran = false
    const slots = openSlots({ places: 1, waiting: 1 })
    const work = async () => {
      ran = true
    }
    await expect(slots.run(AbortSignal.abort(new Error('gone')), work)).rejects.toThrow('gone')
    expect(ran).toBe(false)
  })

  test('results keep the order of the items, and a failure is the whole run’s', async () => {
    expect(await mapAtMost([30, 1, 20], 2, async (ms) => later(ms).then(() => ms))).toEqual([30, 1, 20])
    expect(await mapAtMost([], 5, async () => 1)).toEqual([])
    await expect(mapAtMost([1, 2], 1, () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  })
})

describe('searches', () => {
  async function openBusy(bounds: { searches: number; waitingSearches: number }, tool = {}) {
    const fake = await kept(fakeSearxng())
    const settings = { searchTools: { searxng: { apiBase: fake.url, ...tool } }, bounds }
    return { fake, world: await openWorld({ settings }) }
  }

  test('an instance is asked at most so many at once; some more wait, the rest are rate_limited', async () => {
    const { fake, world } = await openBusy({ searches: 2, waitingSearches: 3 })
    fake.alwaysSuffers({ kind: 'slow', ms: 200 })
    const replies = await Promise.all(times(8, () => world.query({})))
    expect(replies.filter(({ status }) => status === 'ok')).toHaveLength(5)
    expect(replies.filter(({ status }) => status === 'failed')).toEqual(
      times(3, () => ({ status: 'failed', label: 'searxng:searxng', tag: 'rate_limited' })),
    )
    expect(fake.mostInFlight).toBe(2)
    expect(fake.requests).toHaveLength(5)
  })

  test('a full instance does not keep another one from being asked', async () => {
    const busy = await kept(fakeSearxng())
    const other = await kept(fakeSearxng())
    busy.alwaysSuffers({ kind: 'hang' })
    const settings = {
      searchTools: {
        busy: { provider: 'searxng', apiBase: busy.url },
        other: { provider: 'searxng', apiBase: other.url },
      },
      bounds: { searches: 1, waitingSearches: 0 },
    }
    const { query } = await openWorld({ settings })
    const hanging = query({ instance: 'busy' }, { timeoutMs: 1_500 })
    await expect.poll(() => busy.inFlight).toBe(1)
    expect(await query({ instance: 'busy' })).toMatchObject({ tag: 'rate_limited' })
    expect(await query({ instance: 'other' })).toMatchObject({ status: 'ok' })
    expect(await hanging).toMatchObject({ tag: 'timeout' })
  })

  test('who waits in vain until the deadline is told timeout, and the provider nothing', async () => {
    const { fake, world } = await openBusy({ searches: 1, waitingSearches: 5 })
    fake.alwaysSuffers({ kind: 'hang' })
    const hanging = world.query({}, { timeoutMs: 3_000 })
    await expect.poll(() => fake.inFlight).toBe(1)
    expect(await world.query({}, { timeoutMs: 1_000 })).toMatchObject({ status: 'failed', tag: 'timeout' })
    expect(fake.requests).toHaveLength(1)
    expect(await hanging).toMatchObject({ tag: 'timeout' })
  })

  test('a late provider is answered for before the caller’s own deadline', async () => {
    const { fake, world } = await openBusy({ searches: 1, waitingSearches: 1 }, { timeoutMs: 30_000 })
    fake.suffers({ kind: 'hang' })
    const started = performance.now()
    expect(await world.query({}, { timeoutMs: 1_000 })).toMatchObject({ status: 'failed', tag: 'timeout' })
    expect(performance.now() - started).toBeLessThan(1_000)
    await expect.poll(() => fake.abandoned).toBe(1)
  })

  test('D-12 an instance’s own timeout ends a search long before the caller’s deadline', async () => {
    const { fake, world } = await openBusy({ searches: 1, waitingSearches: 1 }, { timeoutMs: 300 })
    fake.suffers({ kind: 'hang' })
    const started = performance.now()
    expect(await world.query({})).toMatchObject({ status: 'failed', tag: 'timeout' })
    expect(performance.now() - started).toBeLessThan(5_000)
  })

  test('a caller who leaves stops the request to the provider', async () => {
    const { fake, world } = await openBusy({ searches: 1, waitingSearches: 1 })
    fake.suffers({ kind: 'hang' })
    const gone = new AbortController()
    const asking = world.query({}, { signal: gone.signal })
    await expect.poll(() => fake.inFlight).toBe(1)
    gone.abort()
    await expect(asking).rejects.toMatchObject({ failure: 'cancelled' })
    await expect.poll(() => fake.abandoned).toBe(1)
    expect(await world.query({})).toMatchObject({ status: 'ok' })
  })
})

describe('closing', () => {
  test('lets a running search finish and takes no new one', async () => {
    const fake = await kept(fakeSearxng())
    const world = await openWorld({ settings: { searchTools: { searxng: { apiBase: fake.url } } } })
    fake.suffers({ kind: 'slow', ms: 300 })
    const running = world.query({})
    await expect.poll(() => fake.inFlight).toBe(1)
    const closing = world.broker.close(Date.now() + 5_000)
    await expect(world.query({})).rejects.toMatchObject({ failure: 'unavailable' })
    expect(await running).toMatchObject({ status: 'ok' })
    expect(await closing).toBe(true)
  })

  test('cuts off what is left at the deadline, and says so', async () => {
    const fake = await kept(fakeSearxng())
    const world = await openWorld({ settings: { searchTools: { searxng: { apiBase: fake.url } } } })
    fake.suffers({ kind: 'hang' })
    const running = world.query({}).catch((error: unknown) => error)
    await expect.poll(() => fake.inFlight).toBe(1)
    expect(await world.broker.close(Date.now() + 200)).toBe(false)
    expect(await running).toMatchObject({ failure: 'unavailable' })
    await expect.poll(() => fake.abandoned).toBe(1)
  })
})

const later = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms))

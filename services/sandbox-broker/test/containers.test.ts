import { memoryBus } from '@tollgate/bus'
import { Fault, sandboxOpen, sandboxRenew, sandboxSeed } from '@tollgate/contracts'
import { describe, expect, test } from 'vitest'
import { openSession } from '../src/leases.ts'
import { openProtocol } from '../src/protocol/client.ts'
import { kept, request, startKeeping, useDatabase } from './kept-rig.ts'
import { content, log, soon, start } from './rig.ts'

useDatabase()

const fault = (work: Promise<unknown>) =>
  work.then(
    () => {
      throw new Error('it was not refused')
    },
    (thrown: unknown) => Fault.from(thrown),
  )
const gone = (id: string) => ({
  failure: 'invalid_request',
  message: `Container '${id}' has expired or does not exist.`,
})
const inUse = {
  failure: 'conflict',
  message: 'Container is in use by another request. A sandbox runs one request at a time; retry when it finishes.',
}
const secondsTo = (time: string | undefined) => Math.round((Date.parse(time ?? '') - Date.now()) / 1_000)

describe('a kept sandbox', () => {
  test('C-09 C-12 C-21 CP-12 CP-25 CP-26 is found by the next request as the last one left it', async () => {
    const broker = await startKeeping()
    const { id } = await kept(broker, { code: 'x = 41\nopen("a.txt", "w").write("a")' })
    const at = request()
    const opened = await broker.open(at, id)
    expect(opened.container?.id).toBe(id)
    expect(await broker.run(at, opened.session, 'print(x + 1)\nprint(open("a.txt").read())')).toMatchObject({
      stdout: '42\na\n',
    })
    const ended = await broker.close(at, { ...opened, container: { id } })
    expect(secondsTo(ended.container?.expiresAt)).toBeGreaterThan(590)

    // one lease, asked for once more before anything runs, and never given back
    expect(broker.backend.requests.map(({ operation }) => operation)).toEqual([
      'create',
      'list',
      'exec',
      'list',
      'exec',
    ])
    expect(broker.backend.requests[0]?.body).toBe('{"idle_timeout_seconds":600}')
  })

  test('FI-18 C-09 has a request’s uploads put on top of what is there, in place of files of the same name', async () => {
    const broker = await startKeeping({ store: true })
    const { id } = await kept(broker, { code: 'open("data.csv", "w").write("old")\nopen("a.txt", "w").write("a")' })
    await broker.files.put('file-1', content('new'), { maxBytes: 100 })
    const at = request()
    const { session } = await broker.open(at, id)
    const upload = { id: 'file-1', name: 'data.csv', mediaType: 'text/csv', bytes: 3 }
    const seeded = await broker.bus.call(sandboxSeed, { tenancy: at, session, files: [upload] }, soon())
    expect(seeded).toEqual({ names: ['data.csv'] })
    const read = 'print(open("data.csv").read())\nprint(open("a.txt").read())'
    // what was given is no output (FI-20)
    expect(await broker.run(at, session, read)).toMatchObject({ stdout: 'new\na\n', files: [] })
  })

  test.each(['made', 'claimed'])('is known as soon as it is %s, should its request never be answered', async (how) => {
    let silent = false
    const broker = await startKeeping({
      respond: ({ operation }) => (silent && operation === 'list' ? new Promise(() => {}) : undefined),
    })
    const { id } = await kept(broker)
    silent = true
    const left = new AbortController()
    const told: string[] = []
    const container = how === 'made' ? { kind: 'auto' as const } : { kind: 'id' as const, id }
    const onEvent = ({ session }: { session: string }) => {
      told.push(session)
      left.abort()
    }
    const opening = broker.bus.call(
      sandboxOpen,
      { tenancy: request(), container },
      { ...soon(), signal: left.signal, onEvent },
    )
    expect(await fault(opening)).toMatchObject({ failure: 'cancelled' })
    expect(told).toEqual([...broker.backend.sessions.keys()].slice(-1))
  })

  test('C-32 has an id that nobody can guess', async () => {
    const broker = await startKeeping()
    const ids = await Promise.all([kept(broker), kept(broker)])
    expect(ids[0].id).toMatch(/^otari_cntr_[0-9a-f]{32}$/)
    expect(ids[0].id).not.toBe(ids[1].id)
    expect(JSON.stringify(ids[0].session)).not.toContain(ids[0].id.slice(11))
  })

  test('C-02 CP-03 is nothing that a request gets unasked: its session is made plain, and ended', async () => {
    const { open, close, backend, rows } = await startKeeping()
    const before = (await rows()).length
    const at = request()
    const opened = await open(at)
    expect(opened).not.toHaveProperty('container')
    expect(await close(at, opened as { session: string })).toEqual({})
    expect(backend.requests.map(({ operation, body }) => [operation, body])).toEqual([
      ['create', '{}'],
      ['destroy', ''],
    ])
    expect(await rows()).toHaveLength(before)
  })

  test('C-03 C-08 is not had where that is forbidden: auto is served without, an id is refused', async () => {
    const allowed = await startKeeping()
    const { id } = await kept(allowed)
    const forbidden = await startKeeping({ settings: { containerIdleSeconds: 0 } })
    const at = request()
    const opened = await forbidden.open(at, 'auto')
    expect(opened).not.toHaveProperty('container')
    expect(forbidden.backend.requests[0]?.body).toBe('{}')
    await forbidden.close(at, opened as { session: string })
    expect(forbidden.backend.sessions.size).toBe(0)
    expect(await fault(forbidden.open(request(), id))).toMatchObject(gone(id))
  })

  test('C-03 is not had of a broker without a database, whose requests are served all the same', async () => {
    const { bus, backend } = await start()
    const opened = await bus.call(sandboxOpen, { tenancy: request(), container: { kind: 'auto' } }, soon())
    expect(opened).not.toHaveProperty('container')
    expect(backend.requests[0]?.body).toBe('{}')
    const id = `otari_cntr_${'0'.repeat(32)}`
    const named = bus.call(sandboxOpen, { tenancy: request(), container: { kind: 'id', id } }, soon())
    expect(await fault(named)).toMatchObject(gone(id))
  })

  test('C-19 CP-12 is not promised of a backend that does not reclaim by itself', async () => {
    const { open, close, backend, rows } = await startKeeping({ idleTimeoutSeconds: null })
    const before = (await rows()).length
    const at = request()
    const opened = await open(at, 'auto')
    expect(opened).not.toHaveProperty('container')
    expect(await rows()).toHaveLength(before)
    await close(at, opened as { session: string })
    expect(backend.sessions.size).toBe(0)
  })

  test('CP-18 is not promised of a backend that cannot say whether it still has it', async () => {
    const { open, close, backend } = await startKeeping({ files: false })
    const at = request()
    const opened = await open(at, 'auto')
    expect(opened).not.toHaveProperty('container')
    await close(at, opened as { session: string })
    expect(backend.sessions.size).toBe(0)
  })

  test.each([
    [120, 120],
    [3_600, 600],
  ])('C-20 CP-06 of a backend that allows %i s is reported for %i s', async (allowed, reported) => {
    const { open } = await startKeeping({ idleTimeoutSeconds: allowed })
    const { container } = await open(request(), 'auto')
    expect(secondsTo(container?.expiresAt)).toBeGreaterThan(reported - 10)
    expect(secondsTo(container?.expiresAt)).toBeLessThanOrEqual(reported)
  })

  test('C-29 of which nobody was told is ended with its request', async () => {
    const { open, close, backend, row } = await startKeeping()
    const at = request()
    const opened = await open(at, 'auto')
    const { id } = opened.container ?? { id: '' }
    await close(at, { session: opened.session, container: { id } }, true)
    expect(backend.sessions.size).toBe(0)
    expect(await row(id)).toBeUndefined()
    expect(await fault(open(request(), id))).toMatchObject(gone(id))
  })
})

describe('the two clocks', () => {
  test('C-08 C-10 the idle one starts again with every use and ends a container that nobody uses', async () => {
    const broker = await startKeeping({ settings: { containerIdleSeconds: 100 } })
    const { id } = await kept(broker)
    for (let use = 0; use < 3; use += 1) {
      await broker.age(id, 60)
      const at = request()
      const opened = await broker.open(at, id)
      await broker.close(at, { ...opened, container: { id } })
    }
    await broker.age(id, 101)
    expect(await fault(broker.open(request(), id))).toMatchObject(gone(id))
  })

  test('C-10 C-11 the hard one is never extended, and the time reported stops moving before it', async () => {
    const settings = { containerIdleSeconds: 100, containerLifetimeSeconds: 250 }
    const broker = await startKeeping({ settings })
    const { id } = await kept(broker)
    const left: number[] = []
    for (let use = 0; use < 3; use += 1) {
      await broker.age(id, 80)
      const at = request()
      const opened = await broker.open(at, id)
      const ended = await broker.close(at, { ...opened, container: { id } })
      left.push(secondsTo(ended.container?.expiresAt))
    }
    expect(left[0]).toBeGreaterThan(90)
    expect(left[1]).toBeLessThanOrEqual(90)
    expect(left[2]).toBeLessThanOrEqual(10)
    await broker.age(id, 11)
    expect(await fault(broker.open(request(), id))).toMatchObject(gone(id))
  })

  test('C-10 a container whose hard clock runs out in use is ended with that use', async () => {
    const broker = await startKeeping()
    const at = request()
    const opened = await broker.open(at, 'auto')
    const { id } = opened.container ?? { id: '' }
    await broker.age(id, 3_601)
    expect(await broker.close(at, { session: opened.session, container: { id } })).toEqual({})
    expect(broker.backend.sessions.size).toBe(0)
    expect(await broker.row(id)).toBeUndefined()
  })

  test('C-07 an idle time longer than the whole life is cut to it', async () => {
    const { open, backend } = await startKeeping({
      settings: { containerIdleSeconds: 600, containerLifetimeSeconds: 60 },
    })
    const { container } = await open(request(), 'auto')
    expect(backend.requests[0]?.body).toBe('{"idle_timeout_seconds":60}')
    expect(secondsTo(container?.expiresAt)).toBeLessThanOrEqual(60)
  })
})

describe('a refusal', () => {
  test('C-13 C-15 C-27 is the same, byte for byte, whatever stands in the way', async () => {
    const broker = await startKeeping()
    const make = () => kept(broker)
    const refusals: Record<string, [string, Fault]> = {}
    const refuse = async (why: string, id: string, whose = {}) => {
      refusals[why] = [id, await fault(broker.open(request(whose), id))]
    }
    await refuse('unknown', `otari_cntr_${'a'.repeat(32)}`)
    await refuse('no id of ours', "'; drop table sandbox.containers; --")
    const own = await make()
    await refuse('another user', own.id, { user: 'eve' })
    await refuse('another workspace', own.id, { workspace: 'other' })
    await refuse('another organization', own.id, { organization: 'other' })
    const expired = await make()
    await broker.age(expired.id, 601)
    await refuse('expired', expired.id)
    const elsewhere = await make()
    await broker.servedBy(elsewhere.id, 'another')
    await refuse('another provider', elsewhere.id)
    const forgotten = await make()
    ;(broker.backend.sessions as Map<string, unknown>).delete(forgotten.session)
    await refuse('gone at the backend', forgotten.id)
    const used = await make()
    await broker.open(request(), used.id)
    await refuse('in use by another user', used.id, { user: 'eve' })

    for (const [why, [id, refusal]] of Object.entries(refusals)) {
      const { failure, message, status, retryAfterSeconds } = refusal
      expect({ why, failure, message, status, retryAfterSeconds }).toEqual({
        why,
        ...gone(id),
        status: 400,
        retryAfterSeconds: undefined,
      })
    }
    // what was refused to others is still there for its owner
    expect((await broker.open(request(), own.id)).session).toBe(own.session)
    expect(await broker.row(forgotten.id)).toBeUndefined()
  })

  test('C-27 is what a container of another sandbox_provider gets, and that one is there again once it is back', async () => {
    const broker = await startKeeping()
    const { id, session } = await kept(broker)
    const switched = await broker.replica({ provider: 'e2b' })
    expect(await fault(switched.open(request(), id))).toMatchObject(gone(id))
    expect((await broker.open(request(), id)).session).toBe(session)
  })

  test('C-14 repeats an id in printable ASCII and no longer than 64 characters', async () => {
    const { open } = await startKeeping()
    expect((await fault(open(request(), `x\n\u0007é${'y'.repeat(200)}`))).message).toBe(
      `Container 'x${'y'.repeat(63)}…' has expired or does not exist.`,
    )
  })

  test('C-16 C-18 says to its owner alone that another request has it, until that one ends', async () => {
    const broker = await startKeeping()
    const { id } = await kept(broker)
    const at = request()
    const opened = await broker.open(at, id)
    expect(await fault(broker.open(request(), id))).toMatchObject({ ...inUse, status: 409 })
    expect(await fault(broker.open(request({ user: 'eve' }), id))).toMatchObject(gone(id))
    await broker.close(at, { ...opened, container: { id } })
    expect((await broker.open(request(), id)).session).toBe(opened.session)
  })

  test('C-16 C-29 a new container is its request’s alone until that ends', async () => {
    const broker = await startKeeping()
    const { container } = await broker.open(request(), 'auto')
    expect(await fault(broker.open(request(), container?.id))).toMatchObject(inUse)
  })

  test.each([
    ['unreachable', 502],
    ['at capacity', 503],
  ])('X-28 X-29 C-30 a backend that is %s refuses the request and keeps the container', async (why, status) => {
    let broken = false
    const broker = await startKeeping({
      respond: () => (broken ? { status: why === 'unreachable' ? 500 : 503 } : undefined),
    })
    const { id } = await kept(broker)
    broken = true
    expect(await fault(broker.open(request(), id))).toMatchObject({ status })
    broken = false
    expect((await broker.open(request(), id)).container?.id).toBe(id)
  })
})

describe('claims', () => {
  test('C-17 of fifty requests at once, through two brokers, one gets the container', async () => {
    const broker = await startKeeping()
    const other = await broker.replica()
    const { id } = await kept(broker)
    const all = Array.from({ length: 50 }, (_, at) => (at % 2 ? broker : other).open(request(), id))
    const settled = await Promise.allSettled(all)
    expect(settled.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const ended of settled) {
      if (ended.status === 'rejected') expect(ended.reason).toMatchObject(inUse)
    }
  })

  test('C-17 that are taken and given back at once by many never meet in one sandbox', async () => {
    const broker = await startKeeping()
    const other = await broker.replica()
    const { id } = await kept(broker)
    let inside = 0
    let most = 0
    let served = 0
    const worker = async (through: typeof other) => {
      while (served < 20) {
        const at = request()
        const opened = await through.open(at, id).catch(() => undefined)
        if (!opened) continue
        inside += 1
        most = Math.max(most, inside)
        served += 1
        await through.run(at, opened.session, 'print(1)')
        inside -= 1
        await through.close(at, { ...opened, container: { id } })
      }
    }
    await Promise.all([broker, other, broker, other].map(worker))
    expect(most).toBe(1)
  })

  test('C-17 of a gateway that died ends by itself, and what that one did late changes nothing', async () => {
    const broker = await startKeeping()
    const other = await broker.replica()
    const { id } = await kept(broker)
    const dead = request()
    const lost = await broker.open(dead, id)
    await broker.age(id, 59)
    expect(await fault(other.open(request(), id))).toMatchObject(inUse)
    await broker.age(id, 2)
    const next = request()
    expect((await other.open(next, id)).session).toBe(lost.session)

    expect(await broker.bus.call(sandboxRenew, { tenancy: dead, container: id }, soon())).toEqual({ renewed: false })
    expect(await broker.close(dead, { ...lost, container: { id } })).toEqual({})
    expect(await broker.close(dead, { ...lost, container: { id } }, true)).toEqual({})
    expect(broker.backend.sessions.has(lost.session)).toBe(true)
    expect(await fault(broker.open(request(), id))).toMatchObject(inUse)
    expect((await other.close(next, { ...lost, container: { id } })).container?.id).toBe(id)
  })

  test('C-17 that are renewed last as long as their request', async () => {
    const broker = await startKeeping()
    const { id } = await kept(broker)
    const at = request()
    await broker.open(at, id)
    for (let minute = 0; minute < 3; minute += 1) {
      await broker.age(id, 50)
      expect(await broker.bus.call(sandboxRenew, { tenancy: at, container: id }, soon())).toEqual({ renewed: true })
      expect(await fault(broker.open(request(), id))).toMatchObject(inUse)
    }
    const stranger = { tenancy: request(), container: id }
    expect(await broker.bus.call(sandboxRenew, stranger, soon())).toEqual({ renewed: false })
  })

  test('C-17 given back twice are given back once', async () => {
    const broker = await startKeeping()
    const at = request()
    const opened = await broker.open(at, 'auto')
    const { id } = opened.container ?? { id: '' }
    expect((await broker.close(at, { session: opened.session, container: { id } })).container?.id).toBe(id)
    expect(await broker.close(at, { session: opened.session, container: { id } })).toEqual({})
    expect(broker.backend.sessions.size).toBe(1)
  })
})

test('BR-128 a sandbox lost in use is forgotten, and whoever names it learns that it is gone', async () => {
  const broker = await startKeeping()
  const { id, session } = await kept(broker)
  const at = request()
  await broker.open(at, id)
  ;(broker.backend.sessions as Map<string, unknown>).delete(session)
  expect(await broker.run(at, session, 'print(1)')).toEqual({ status: 'failed', reason: 'lost' })
  expect(await broker.row(id)).toBeUndefined()
  expect(await fault(broker.open(request(), id))).toMatchObject(gone(id))
})

test('C-28 a sweep forgets what nobody can resume, leaves the rest and asks the backend nothing', async () => {
  const broker = await startKeeping({ sweepEveryMs: 20 })
  const [dead, alive, used] = [await kept(broker), await kept(broker), await kept(broker)]
  await broker.open(request(), used.id)
  const asked = broker.backend.requests.length
  await broker.age(dead.id, 601)
  await expect.poll(() => broker.row(dead.id)).toBeUndefined()
  expect(await broker.row(alive.id)).toBeDefined()
  expect(await broker.row(used.id)).toBeDefined()
  expect(broker.backend.requests).toHaveLength(asked)
})

test('CP-24 a provider that must be told is told how long the request, or the container, may last', async () => {
  const { backend, settings } = await startKeeping()
  const protocol = openProtocol(settings)
  const provider = { ...protocol, capabilities: { ...protocol.capabilities, lifetimes: true } }
  const bus = memoryBus({ log })
  await bus.serve(sandboxOpen, openSession({ provider, settings, containers: undefined, log }))
  await bus.call(sandboxOpen, { tenancy: request(), leaseSeconds: 2_460 }, soon())
  expect(backend.requests[0]?.body).toBe('{"max_lifetime_seconds":2460}')
  await protocol.close()
})

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Bus, memoryBus } from '@tollgate/bus'
import { sandboxClose, sandboxDescribe, sandboxExec, sandboxOpen, sandboxSeed } from '@tollgate/contracts'
import { localFiles } from '@tollgate/files'
import { openLog } from '@tollgate/telemetry'
import { type FakeSandboxOptions, openFakeSandbox } from '@tollgate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type SandboxBrokerSettings, startSandboxBroker } from '../src/index.ts'
import { workspaceNames } from '../src/seed.ts'

const log = openLog({ service: 'test', level: 'silent' })
const tenancy = { organization: 'o', workspace: 'w', user: 'u', key: 'k', request: 'r', attempt: 0 }
const soon = () => ({ deadline: Date.now() + 30_000 })

interface StartOptions extends FakeSandboxOptions {
  settings?: Partial<SandboxBrokerSettings>
  /** Whether there is a store for files. */
  store?: boolean
}

async function start({ settings, store = false, ...fake }: StartOptions = {}) {
  const backend = await openFakeSandbox(fake)
  const bus = memoryBus({ log })
  const folder = await mkdtemp(join(tmpdir(), 'broker-'))
  const files = await localFiles(folder)
  const broker = await startSandboxBroker({
    bus,
    log,
    ...(store ? { files } : {}),
    settings: { provider: 'protocol', url: backend.url, execTimeoutSeconds: 60, ...settings },
  })
  onTestFinished(async () => {
    await bus.drain(Date.now() + 1_000)
    await broker.close(Date.now())
    await backend.close()
    await rm(folder, { recursive: true })
  })
  return { backend, bus, files }
}

/** A file's content, as a store takes it. */
async function* content(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text)
}

const lease = async (bus: Bus) => (await bus.call(sandboxOpen, { tenancy }, soon())).session
const run = async (bus: Bus, session: string, code: string, timeoutSeconds?: number) =>
  bus.call(sandboxExec, { tenancy, session, code, ...(timeoutSeconds ? { timeoutSeconds } : {}) }, soon())

describe('what there is', () => {
  test('code execution is available when a sandbox is configured', async () => {
    const { bus } = await start()
    expect(await bus.call(sandboxDescribe, {}, soon())).toEqual({ available: true, provider: 'protocol' })
  })

  test('without one it is not, and the reason is told', async () => {
    const bus = memoryBus({ log })
    const settings = { provider: 'protocol', execTimeoutSeconds: 60 }
    const broker = await startSandboxBroker({ bus, log, settings })
    const described = await bus.call(sandboxDescribe, {}, soon())
    expect(described).toEqual({
      available: false,
      provider: 'protocol',
      reason: expect.stringContaining('sandbox_url'),
    })
    await expect(lease(bus)).rejects.toMatchObject({ failure: 'unavailable' })
    Object.assign(settings, { unavailableReason: 'no Python 3 here' })
    expect(await bus.call(sandboxDescribe, {}, soon())).toMatchObject({ reason: 'no Python 3 here' })
    await broker.close(Date.now())
  })

  test('CP-28 a provider without an adapter stops the start and says which there are', async () => {
    const settings = { provider: 'e2b', execTimeoutSeconds: 60 }
    await expect(startSandboxBroker({ bus: memoryBus({ log }), log, settings })).rejects.toThrow(/'e2b'.*protocol/)
    const odd = { provider: 'constructor', execTimeoutSeconds: 60 }
    await expect(startSandboxBroker({ bus: memoryBus({ log }), log, settings: odd })).rejects.toThrow('constructor')
  })

  test('a sandbox configured while the broker runs serves the next call', async () => {
    const backend = await openFakeSandbox()
    const bus = memoryBus({ log })
    const settings: SandboxBrokerSettings = { provider: 'protocol', execTimeoutSeconds: 60 }
    const broker = await startSandboxBroker({ bus, log, settings })
    settings.url = backend.url
    expect(await bus.call(sandboxDescribe, {}, soon())).toMatchObject({ available: true })
    expect(await lease(bus)).toBeTruthy()
    await broker.close(Date.now())
    await backend.close()
  })
})

describe('a session from lease to release', () => {
  test('CP-01 C-01 calls of one session share their state, and it is gone after the release', async () => {
    const { bus, backend } = await start()
    const session = await lease(bus)
    expect(await run(bus, session, 'x = 41')).toMatchObject({ status: 'ok', returnCode: 0 })
    expect(await run(bus, session, 'print(x + 1)')).toEqual({
      status: 'ok',
      stdout: '42\n',
      stderr: '',
      returnCode: 0,
      files: [],
    })
    expect(await bus.call(sandboxClose, { tenancy, session }, soon())).toEqual({})
    expect(backend.sessions.size).toBe(0)
    expect(await run(bus, session, 'print(x)')).toEqual({ status: 'failed', reason: 'lost' })
  })

  test('the request carries nothing of ours: no trace, no tenant, no request id', async () => {
    const { bus, backend } = await start()
    await run(bus, await lease(bus), 'print(1)')
    for (const { headers, body } of backend.requests) {
      expect(Object.keys(headers).sort()).toEqual(
        ['accept', 'accept-encoding', 'connection', 'content-length', 'content-type', 'host']
          .filter((name) => name in headers)
          .sort(),
      )
      expect(body).not.toMatch(/tenancy|organization|"r"/)
    }
  })

  test('a caller hears that its code runs before it hears the result', async () => {
    const { bus } = await start()
    const session = await lease(bus)
    const events: unknown[] = []
    const onEvent = (event: unknown) => void events.push(event)
    await bus.call(sandboxExec, { tenancy, session, code: 'print(1)' }, { ...soon(), onEvent })
    expect(events).toEqual([{ type: 'running' }])
  })

  test('X-31 the grant is 60 s unless the caller or the operator says less', async () => {
    const { bus, backend } = await start()
    const session = await lease(bus)
    await run(bus, session, 'print(1)')
    await run(bus, session, 'print(1)', 5)
    const lower = await start({ settings: { execTimeoutSeconds: 20 } })
    await run(lower.bus, await lease(lower.bus), 'print(1)', 60)
    const granted = [...backend.requests, ...lower.backend.requests]
      .filter(({ operation }) => operation === 'exec')
      .map(({ body }) => JSON.parse(body).timeout_seconds)
    expect(granted).toEqual([60, 5, 20])
  })

  test('CP-05 an image is sent for a pin or a deployment default, the pin first', async () => {
    const { bus, backend } = await start({ settings: { sessionImage: 'python:3.12' } })
    await lease(bus)
    await bus.call(sandboxOpen, { tenancy, image: 'pinned:1' }, soon())
    const plain = await start()
    await lease(plain.bus)
    expect([...backend.requests, ...plain.backend.requests].map(({ body }) => body)).toEqual([
      '{"image":"python:3.12"}',
      '{"image":"pinned:1"}',
      '{}',
    ])
  })

  test('output larger than a reply may be is cut, and stays whole text', async () => {
    const stdout = '\u0001'.repeat(2_000_000)
    const content = { stdout, stderr: '😀'.repeat(400_000), return_code: 0 }
    const result_block = { type: 't', tool_use_id: 't', content }
    const { bus } = await start({
      respond: ({ operation }) =>
        operation === 'exec' ? { status: 200, body: { tool_use_id: 't', result_block } } : undefined,
    })
    const done = await run(bus, await lease(bus), 'print(1)')
    if (done.status !== 'ok') throw new Error(done.reason)
    for (const stream of [done.stdout, done.stderr]) {
      expect(Buffer.byteLength(stream)).toBeLessThanOrEqual(512 * 1024)
      expect(stream.endsWith('512 KiB are kept]')).toBe(true)
      expect(stream).not.toContain('\ufffd')
    }
  })
})

describe('when the sandbox fails', () => {
  test('X-28 one that cannot be reached is a 502 with a fixed text', async () => {
    const { bus, backend } = await start()
    const session = await lease(bus)
    await backend.close()
    await expect(lease(bus)).rejects.toMatchObject({
      failure: 'upstream',
      status: 502,
      message:
        "code_execution sandbox unreachable. Check the sandbox URL in the dashboard's Tools settings, or OTARI_SANDBOX_URL, and that the container is running.",
    })
    expect(await run(bus, session, 'print(1)')).toEqual({ status: 'failed', reason: 'unreachable' })
    expect(await bus.call(sandboxClose, { tenancy, session }, soon())).toEqual({})
  })

  test.each([400, 401, 404, 422, 500])('CP-14 X-28 a %i at the lease is a 502, its body not shown', async (status) => {
    const { bus } = await start({ respond: () => ({ status, body: { detail: 'http://10.0.0.7 said' } }) })
    const failed = await lease(bus).catch((error: unknown) => error)
    expect(failed).toMatchObject({ failure: 'upstream', status: 502 })
    expect(String(failed)).not.toContain('10.0.0.7')
  })

  test.each([[{ session_id: 7 }], [{}], [{ session_id: '' }]])('CP-04 the handle %j is a 502', async (body) => {
    const { bus } = await start({ respond: () => ({ status: 201, body }) })
    await expect(lease(bus)).rejects.toMatchObject({ failure: 'upstream' })
  })

  test.each([
    ['30', 30],
    ['Wed, 21 Oct 2026 07:28:00 GMT', undefined],
    ['1234567', undefined],
  ])('X-29 CP-23 at capacity is a 503 with Retry-After %s read as %s, asked once', async (header, seconds) => {
    const { bus, backend } = await start({ respond: () => ({ status: 503, headers: { 'retry-after': header } }) })
    const failed = await lease(bus).catch((error: unknown) => error)
    expect(failed).toMatchObject({
      failure: 'unavailable',
      status: 503,
      message: 'code_execution sandbox temporarily unavailable. Retry later.',
    })
    expect((failed as { retryAfterSeconds?: number }).retryAfterSeconds).toBe(seconds)
    expect(backend.requests).toHaveLength(1)
  })

  test.each([
    [400, 'refused'],
    [401, 'refused'],
    [404, 'lost'],
    [422, 'refused'],
    [503, 'busy'],
  ] as const)('CP-14 CP-23 BR-128 a %i of a call is told as %s', async (status, reason) => {
    const { bus } = await start({ respond: ({ operation }) => (operation === 'exec' ? { status } : undefined) })
    expect(await run(bus, await lease(bus), 'print(1)')).toEqual({ status: 'failed', reason })
  })

  test('CP-13 X-30 a program that fails is a result, its code and its words', async () => {
    const { bus } = await start()
    const done = await run(bus, await lease(bus), 'raise ValueError("no")')
    expect(done).toMatchObject({ status: 'ok', returnCode: 1, stderr: expect.stringContaining('ValueError: no') })
  })

  test('CP-15 a release that fails fails nobody', async () => {
    const { bus } = await start({ respond: ({ operation }) => (operation === 'destroy' ? { status: 500 } : undefined) })
    expect(await bus.call(sandboxClose, { tenancy, session: await lease(bus) }, soon())).toEqual({})
  })

  test('a caller that leaves takes the call with it', async () => {
    const { bus } = await start({
      respond: ({ operation }) => (operation === 'exec' ? new Promise(() => {}) : undefined),
    })
    const session = await lease(bus)
    const gone = new AbortController()
    const call = bus.call(sandboxExec, { tenancy, session, code: 'print(1)' }, { ...soon(), signal: gone.signal })
    gone.abort()
    await expect(call).rejects.toMatchObject({ failure: 'cancelled' })
  })
})

describe('files for the code', () => {
  const reference = (id: string, name: string) => ({ id, name, mediaType: 'text/csv', bytes: 3 })

  test('FI-12 stored files are put into the session, under the names that are told', async () => {
    const { bus, backend, files } = await start({ store: true })
    await files.put('file-1', content('a,b'), { maxBytes: 100 })
    await files.put('file-2', content('c,d'), { maxBytes: 100 })
    const session = await lease(bus)
    const seeded = await bus.call(
      sandboxSeed,
      { tenancy, session, files: [reference('file-1', 'x/data.csv'), reference('file-2', 'data.csv')] },
      soon(),
    )
    expect(seeded).toEqual({ names: ['data.csv', 'data-2.csv'] })
    const held = backend.sessions.get(session)?.files
    expect([...(held ?? [])].map(([path, bytes]) => [path, Buffer.from(bytes).toString()])).toEqual([
      ['data.csv', 'a,b'],
      ['data-2.csv', 'c,d'],
    ])
  })

  test('FI-16 a file that the sandbox refuses fails the request', async () => {
    const { bus, files } = await start({ maxFileBytes: 2, store: true })
    await files.put('file-1', content('a,b'), { maxBytes: 100 })
    const session = await lease(bus)
    const seeding = bus.call(sandboxSeed, { tenancy, session, files: [reference('file-1', 'data.csv')] }, soon())
    await expect(seeding).rejects.toMatchObject({ failure: 'upstream', status: 502 })
  })

  test('a file that is not stored is not found', async () => {
    const { bus } = await start({ store: true })
    const session = await lease(bus)
    const seeding = bus.call(sandboxSeed, { tenancy, session, files: [reference('file-9', 'data.csv')] }, soon())
    await expect(seeding).rejects.toMatchObject({ failure: 'not_found' })
  })

  test.each([
    [
      ['data.csv', 'data.csv', 'DATA.csv'],
      ['data.csv', 'data-2.csv', 'DATA-3.csv'],
    ],
    [
      ['../../etc/passwd', 'C:\\secret\\x.txt'],
      ['passwd', 'x.txt'],
    ],
    [
      ['', '..', '/', '...'],
      ['file', 'file-2', 'file-3', 'file-4'],
    ],
    [
      ['a;rm -rf ~.csv', 'über straße.csv', '$(x).py', 'tab\tnew\nline'],
      ['arm -rf .csv', 'über straße.csv', '(x).py', 'tabnewline'],
    ],
    [
      ['.bashrc', '-rf'],
      ['bashrc', 'rf'],
    ],
    [
      ['a.tar.gz', 'a.tar.gz'],
      ['a.tar.gz', 'a.tar-2.gz'],
    ],
    [
      [`${'x'.repeat(300)}.csv`, '😀\ud800.txt'],
      [`${'x'.repeat(96)}.csv`, 'txt'],
    ],
  ])('FI-13 %j become %j', (names, expected) => {
    expect(workspaceNames(names.map((name) => ({ name })))).toEqual(expected)
  })
})

describe('files the code made', () => {
  /** A backend whose calls name files in the block, which the fake itself never does. */
  const naming = (...names: string[]): FakeSandboxOptions => ({
    respond: ({ operation }) =>
      operation !== 'exec'
        ? undefined
        : {
            status: 200,
            body: {
              tool_use_id: 't',
              result_block: {
                type: 't',
                tool_use_id: 't',
                content: { content: names.map((filename) => ({ file_id: filename, filename })) },
              },
            },
          },
  })
  const filesOf = async (bus: Bus, session: string, code: string) => {
    const done = await run(bus, session, code)
    if (done.status !== 'ok') throw new Error(done.reason)
    return done.files
  }
  const textOf = async (stored: { content: AsyncIterable<Uint8Array> } | undefined) => {
    const chunks = []
    for await (const chunk of stored?.content ?? []) chunks.push(chunk)
    return Buffer.concat(chunks).toString()
  }

  test('without a store they are named and stay where they are', async () => {
    const { bus, backend } = await start(naming('a.csv', 'b.csv'))
    expect(await filesOf(bus, await lease(bus), 'x')).toEqual([{ name: 'a.csv' }, { name: 'b.csv' }])
    expect(backend.requests.map(({ operation }) => operation)).toEqual(['create', 'exec'])
  })

  test('FI-20 FI-21 what the listing shows as new or changed is stored, what was given is not', async () => {
    const { bus, files } = await start({ store: true })
    await files.put('file-1', content('given'), { maxBytes: 100 })
    const session = await lease(bus)
    const given = { id: 'file-1', name: 'given.csv', mediaType: 'text/csv', bytes: 5 }
    await bus.call(sandboxSeed, { tenancy, session, files: [given] }, soon())
    const [made, ...rest] = await filesOf(bus, session, 'open("out.txt", "w").write("hello")')
    expect(rest).toEqual([])
    expect(made).toEqual({
      name: 'out.txt',
      file: {
        id: expect.stringMatching(/^file-[0-9a-f]{32}$/),
        name: 'out.txt',
        mediaType: 'application/octet-stream',
        bytes: 5,
      },
    })
    expect(await textOf(await files.get(made?.file?.id ?? ''))).toBe('hello')
    expect(await filesOf(bus, session, 'print(1)')).toEqual([])
    expect((await filesOf(bus, session, 'open("given.csv", "w").write("changed")')).map(({ name }) => name)).toEqual([
      'given.csv',
    ])
  })

  test('FI-20 what the block names is stored where there is no listing, and once where there are both', async () => {
    const unlisted = await start({ ...naming('a.txt'), files: false, store: true })
    expect(await filesOf(unlisted.bus, await lease(unlisted.bus), 'x')).toEqual([{ name: 'a.txt' }])
    const both = await start({ ...naming('a.txt'), store: true })
    const session = await lease(both.bus)
    both.backend.sessions.get(session)?.files.set('a.txt', Buffer.from('named'))
    expect(await filesOf(both.bus, session, 'x')).toMatchObject([{ name: 'a.txt', file: { bytes: 5 } }])
  })

  test('FI-22 more than may be are named without an id, empty ones not at all', async () => {
    const names = Array.from({ length: 25 }, (_, index) => `f${String(index).padStart(2, '0')}`)
    const { bus, backend } = await start({
      ...naming(...names, 'empty'),
      store: true,
      settings: { outputMaxFiles: 22 },
    })
    const session = await lease(bus)
    for (const name of names) backend.sessions.get(session)?.files.set(name, Buffer.from(name))
    backend.sessions.get(session)?.files.set('f03', Buffer.alloc(0))
    const produced = await filesOf(bus, session, 'x')
    expect(produced.map(({ name }) => name)).toEqual([...names.filter((name) => name !== 'f03'), 'empty'])
    expect(produced.filter(({ file }) => file).length).toBe(21)
  })

  test('FI-22 one over the bytes that are left, or that cannot be fetched, is named and leaves nothing', async () => {
    const { bus, backend, files } = await start({
      ...naming('big', 'gone', 'small'),
      store: true,
      settings: { outputMaxBytes: 10 },
    })
    const session = await lease(bus)
    backend.sessions.get(session)?.files.set('big', Buffer.alloc(11))
    backend.sessions.get(session)?.files.set('small', Buffer.from('1234567'))
    const produced = await filesOf(bus, session, 'x')
    expect(produced).toEqual([
      { name: 'big' },
      { name: 'gone' },
      { name: 'small', file: expect.objectContaining({ bytes: 7 }) },
    ])
    expect(await files.stat(produced[2]?.file?.id ?? '')).toBeTruthy()
  })
})

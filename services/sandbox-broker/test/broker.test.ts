import { memoryBus } from '@tollgate/bus'
import { sandboxClose, sandboxDescribe, sandboxExec, sandboxOpen } from '@tollgate/contracts'
import { openFakeSandbox } from '@tollgate/testing'
import { describe, expect, test } from 'vitest'
import { type SandboxBrokerSettings, startSandboxBroker } from '../src/index.ts'
import { lease, log, run, soon, start, tenancy } from './rig.ts'

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
    const settings = { provider: 'daytona', execTimeoutSeconds: 60 }
    const started = startSandboxBroker({ bus: memoryBus({ log }), log, settings })
    await expect(started).rejects.toThrow(/'daytona'.*known: protocol, e2b/)
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

test('output goes out while a call runs, in events of whole characters, and the result tells the limit', async () => {
  const text = '😀'.repeat(20_000)
  const events = [
    `event: output\ndata: ${JSON.stringify({ stream: 'stdout', text })}\n\n`,
    `event: result\ndata: ${JSON.stringify({ tool_use_id: 't', result_block: { type: 'x', tool_use_id: 't', content: { stdout: text, ended_by: 'time' } } })}\n\n`,
  ]
  const reply = { status: 200, headers: { 'content-type': 'text/event-stream' }, body: Buffer.from(events.join('')) }
  const { bus } = await start({ respond: ({ operation }) => (operation === 'exec' ? reply : undefined) })
  const session = await lease(bus)
  const heard: string[] = []
  const onEvent = (event: { type: string; text?: string }) => {
    if (event.type === 'output') heard.push(event.text ?? '')
  }
  const answer = await bus.call(sandboxExec, { tenancy, session, code: '1', stream: true }, { ...soon(), onEvent })
  expect(answer).toMatchObject({ status: 'ok', stdout: text, limit: 'time' })
  expect(heard.join('')).toBe(text)
  expect(heard.length).toBeGreaterThan(1)
  for (const piece of heard) expect(piece.isWellFormed()).toBe(true)
})

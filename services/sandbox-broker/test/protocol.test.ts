import { describe, expect, onTestFinished, test } from 'vitest'
import { openProtocol } from '../src/protocol/client.ts'
import { fileOf, lease, limits, open, ran, refused, text } from './protocol-rig.ts'

describe('operations and paths', () => {
  test('CP-01 a backend with only the three mandatory operations runs code', async () => {
    const { provider, backend } = await open({ files: false })
    const session = await lease(provider)
    expect(
      await provider.exec(session, { kind: 'python', code: 'x = 40\nprint(x + 2)', timeoutSeconds: 5 }, limits()),
    ).toEqual({
      ...ran,
      stdout: '42\n',
    })
    expect(await provider.destroy(session, limits())).toEqual({ status: 'ok' })
    expect(backend.requests.map(({ operation }) => operation)).toEqual(['create', 'exec', 'destroy'])
    expect(backend.sessions.size).toBe(0)
  })

  test.each(['127.0.0.1', 'localhost', '127.1', '[::ffff:127.0.0.1]'])(
    "CP-27 a backend at %s is called: its address is the operator's, and no tenant is told it",
    async (host) => {
      const { backend } = await open()
      const { port } = new URL(backend.url)
      const provider = openProtocol({ url: `http://${host}:${port}` })
      onTestFinished(() => provider.close())
      const session = await lease(provider)
      const python = { kind: 'python', code: 'print(1)', timeoutSeconds: 5 } as const
      expect(await provider.exec(session, python, limits())).toMatchObject({ status: 'ok', stdout: '1\n' })
      await backend.close()
      const lost = await provider.exec(session, python, limits())
      expect(lost).toMatchObject({ status: 'failed' })
      for (const secret of [host, port]) expect(JSON.stringify(lost)).not.toContain(secret)
    },
  )

  test.each(['', '/', '///'])('CP-02 a base URL that ends in "%s" is tolerated', async (suffix) => {
    const { provider, backend } = await open({}, { suffix })
    await lease(provider)
    expect(backend.requests[0]?.target).toBe('/sessions')
  })

  test.each(['a/b', '../x', 'a?b#c', 'é d%2F', '%2e%2e', '...'])(
    'CP-02 the session id %j stays one path segment, used verbatim',
    async (id) => {
      const { provider, backend } = await open({ sessionId: () => id })
      const session = await lease(provider)
      expect(session).toBe(id)
      await provider.exec(session, { kind: 'python', code: 'print(1)', timeoutSeconds: 5 }, limits())
      await provider.list(session, '.', limits())
      expect(await provider.destroy(session, limits())).toEqual({ status: 'ok' })
      expect(backend.requests.slice(1).map(({ session }) => session)).toEqual([id, id, id])
      expect(backend.requests[1]?.target).toBe(`/sessions/${encodeURIComponent(id)}/exec`)
    },
  )

  test.each(['.', '..'])('CP-02 the session id %j, which no URL can address, is a failure', async (id) => {
    const { provider } = await open({ sessionId: () => id })
    expect(await provider.create({}, limits())).toEqual(refused)
  })

  test('CP-22 the credential goes with all six operations, and none goes without a setting', async () => {
    const { provider, backend } = await open({ token: 's3cret' })
    const session = await lease(provider)
    await provider.exec(session, { kind: 'python', code: 'print(1)', timeoutSeconds: 5 }, limits())
    await provider.put(session, fileOf('a.csv', '1'), limits())
    await provider.list(session, '.', limits())
    const got = await provider.get(session, 'a.csv', limits())
    expect(got.status === 'ok' && (await text(got.content))).toBe('1')
    expect(await provider.destroy(session, limits())).toEqual({ status: 'ok' })
    expect(backend.requests.map(({ operation }) => operation)).toEqual([
      'create',
      'exec',
      'put',
      'list',
      'get',
      'destroy',
    ])
    for (const { headers } of backend.requests) expect(headers.authorization).toBe('Bearer s3cret')

    const open2 = await open()
    await lease(open2.provider)
    expect(open2.backend.requests[0]?.headers).not.toHaveProperty('authorization')
  })
})

/** Header values are bytes: what is not ASCII travels as its UTF-8 read as Latin-1. */
const encodeHeader = (value: string): string => Buffer.from(value).toString('latin1')

describe('leasing a session', () => {
  test('CP-03 a plain request is {}, as a backend older than any member expects', async () => {
    const { provider, backend } = await open()
    await lease(provider)
    expect(backend.requests[0]?.body).toBe('{}')
    expect(backend.requests[0]?.headers['content-type']).toBe('application/json')
  })

  test('CP-03 CP-05 members with something to say are sent, and only those', async () => {
    const { provider, backend } = await open()
    await lease(provider, { image: 'python:3.12' })
    await lease(provider, { idleTimeoutSeconds: 60, maxLifetimeSeconds: 600 })
    expect(backend.requests.map(({ body }) => JSON.parse(body))).toEqual([
      { image: 'python:3.12' },
      { idle_timeout_seconds: 60, max_lifetime_seconds: 600 },
    ])
  })

  test('CP-04 CP-06 what the handle reports is what is in force', async () => {
    const { provider } = await open({ idleTimeoutSeconds: 30 })
    expect(await provider.create({ idleTimeoutSeconds: 600 }, limits())).toMatchObject({ idleTimeoutSeconds: 30 })
  })

  test('CP-12 a handle without an idle timeout promises no reclaim', async () => {
    const { provider } = await open({ idleTimeoutSeconds: null })
    const opened = await provider.create({}, limits())
    expect(opened.status).toBe('ok')
    expect(opened).not.toHaveProperty('idleTimeoutSeconds')
  })

  test.each([
    ['none', {}],
    ['a number', { session_id: 7 }],
    ['an empty one', { session_id: '' }],
    ['null', { session_id: null }],
    ['a list instead of a handle', []],
    ['a malformed idle timeout', { session_id: 'x', idle_timeout_seconds: 'soon' }],
  ])('CP-04 a handle with %s for an id or a lifetime is a failure of the sandbox', async (_what, body) => {
    const { provider } = await open({ respond: () => ({ status: 201, body }) })
    expect(await provider.create({}, limits())).toEqual(refused)
  })

  test('CP-04 fractional times and CP-21 unknown members are no obstacle', async () => {
    const body = { session_id: 'x', created_at: 1786000000.25, last_activity_at: 1786000000.5, shiny: { new: true } }
    const { provider } = await open({ respond: () => ({ status: 201, body: { ...body, isolation: 'ns' } }) })
    expect(await provider.create({}, limits())).toEqual({ status: 'ok', session: 'x', isolation: 'ns' })
  })

  test.each([
    ['30', 30],
    ['0', 0],
    ['999999', 999_999],
    ['1000000', undefined],
    ['Wed, 21 Oct 2026 07:28:00 GMT', undefined],
    ['-1', undefined],
    ['1.5', undefined],
    ['٣٠', undefined],
    [undefined, undefined],
  ])('CP-23 503 is "at capacity", and Retry-After %s is kept only as 1 to 6 ASCII digits', async (header, seconds) => {
    const headers: Record<string, string> = header === undefined ? {} : { 'retry-after': encodeHeader(header) }
    const { provider, backend } = await open({ respond: () => ({ status: 503, headers }) })
    expect(await provider.create({}, limits())).toEqual({
      status: 'failed',
      reason: 'busy',
      ...(seconds === undefined ? {} : { retryAfterSeconds: seconds }),
    })
    expect(backend.requests).toHaveLength(1)
  })

  test.each([400, 401, 403, 422, 429, 500, 302])('CP-14 a %i is refused, without its body', async (status) => {
    const { provider } = await open({ respond: () => ({ status, body: { detail: 'inside' } }) })
    expect(await provider.create({}, limits())).toEqual(refused)
  })

  test('nobody there is unreachable', async () => {
    const { provider, backend } = await open()
    await backend.close()
    expect(await provider.create({}, limits())).toEqual({ status: 'failed', reason: 'unreachable' })
  })
})

describe('releasing a session', () => {
  test.each([
    [204, { status: 'ok' }],
    [200, { status: 'ok' }],
    [404, { status: 'ok' }],
    [500, refused],
    [401, refused],
  ])('CP-15 DELETE answered with %i', async (status, expected) => {
    const { provider } = await open({ respond: () => ({ status }) })
    expect(await provider.destroy('x', limits())).toEqual(expected)
  })
})

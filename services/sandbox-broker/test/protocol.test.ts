import { Readable } from 'node:stream'
import { type FakeSandboxOptions, openFakeSandbox, type SandboxReply } from '@tollgate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openProtocol } from '../src/protocol/client.ts'

const limits = () => ({ signal: new AbortController().signal, deadline: Date.now() + 60_000 })

async function open(options: FakeSandboxOptions = {}, { suffix = '' } = {}) {
  const backend = await openFakeSandbox(options)
  const { token } = options
  const provider = openProtocol({ url: backend.url + suffix, ...(token === undefined ? {} : { token }) })
  onTestFinished(async () => {
    await provider.close()
    await backend.close()
  })
  return { backend, provider }
}

/** A session on a backend that answers every exec with `reply`. */
async function answering(reply: SandboxReply | (() => Promise<SandboxReply>)) {
  const respond: FakeSandboxOptions['respond'] = ({ operation }) =>
    operation === 'exec' ? (typeof reply === 'function' ? reply() : reply) : undefined
  const { provider, backend } = await open({ respond })
  const session = await provider.create({}, limits())
  if (session.status !== 'ok') throw new Error(session.reason)
  return {
    backend,
    exec: (timeoutSeconds = 60) => provider.exec(session.session, { code: 'print(1)', timeoutSeconds }, limits()),
  }
}

const result = (content: unknown, envelope: object = {}): SandboxReply => ({
  status: 200,
  body: {
    tool_use_id: 't',
    result_block: { type: 'code_execution_tool_result', tool_use_id: 't', content },
    ...envelope,
  },
})
const ran = { status: 'ok', stdout: '', stderr: '', returnCode: 0, files: [] }
const refused = { status: 'failed', reason: 'refused' }

const lease = async (provider: ReturnType<typeof openProtocol>, options = {}) => {
  const opened = await provider.create(options, limits())
  if (opened.status !== 'ok') throw new Error(opened.reason)
  return opened.session
}
const text = async (content: Readable) => Buffer.concat(await content.toArray()).toString()
const fileOf = (path: string, body: string, mediaType = 'text/csv') => ({
  path,
  mediaType,
  bytes: Buffer.byteLength(body),
  content: Readable.from([Buffer.from(body)]),
})

describe('operations and paths', () => {
  test('CP-01 a backend with only the three mandatory operations runs code', async () => {
    const { provider, backend } = await open({ files: false })
    const session = await lease(provider)
    expect(await provider.exec(session, { code: 'x = 40\nprint(x + 2)', timeoutSeconds: 5 }, limits())).toEqual({
      ...ran,
      stdout: '42\n',
    })
    expect(await provider.destroy(session, limits())).toEqual({ status: 'ok' })
    expect(backend.requests.map(({ operation }) => operation)).toEqual(['create', 'exec', 'destroy'])
    expect(backend.sessions.size).toBe(0)
  })

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
      await provider.exec(session, { code: 'print(1)', timeoutSeconds: 5 }, limits())
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
    await provider.exec(session, { code: 'print(1)', timeoutSeconds: 5 }, limits())
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

/** Header values are bytes: what is not ASCII travels as its UTF-8 read as Latin-1. */
const encodeHeader = (value: string): string => Buffer.from(value).toString('latin1')

describe('running code', () => {
  test('CP-07 CP-08 the body is tool, input and the grant, and nothing else', async () => {
    const { backend, exec } = await answering(result({}))
    await exec()
    expect(backend.requests[1]?.body).toBe('{"tool":"code_execution","input":{"code":"print(1)"},"timeout_seconds":60}')
  })

  test('CP-09 a nested block is read, a bare one is a failure', async () => {
    const block = { type: 'code_execution_tool_result', tool_use_id: 't', content: { stdout: 'hi' } }
    const nested = await answering({ status: 200, body: { tool_use_id: 't', result_block: block } })
    expect(await nested.exec()).toEqual({ ...ran, stdout: 'hi' })
    const bare = await answering({ status: 200, body: block })
    expect(await bare.exec()).toEqual(refused)
  })

  test.each([
    ['empty', {}, ran],
    ['null streams', { stdout: null, stderr: null, return_code: null, content: null }, ran],
    ['everything', { stdout: 'o', stderr: 'e', return_code: 3 }, { ...ran, stdout: 'o', stderr: 'e', returnCode: 3 }],
    ['a negative exit code', { return_code: -9 }, { ...ran, returnCode: -9 }],
    ['unknown members', { stdout: 'o', colour: 'red' }, { ...ran, stdout: 'o' }],
    ['another success type', { type: 'bash_code_execution_result', stdout: 'o' }, { ...ran, stdout: 'o' }],
    ['an exit code that is text', { return_code: '1' }, refused],
    ['an exit code that is no whole number', { return_code: 1.5 }, refused],
    ['a list', [{ type: 'code_execution_result', stdout: 'o' }], refused],
    ['a string', 'o', refused],
    ['null', null, refused],
    ['nothing at all', undefined, refused],
    ['files that are no list', { content: { filename: 'a' } }, refused],
  ])('CP-10 content that is %s', async (_what, content, expected) => {
    const { exec } = await answering(result(content))
    expect(await exec()).toEqual(expected)
  })

  test('CP-10 CP-21 a block of an unknown type with unknown members is read like any other', async () => {
    const block = { type: 'julia_execution_tool_result', tool_use_id: 't', content: { stdout: '1' }, more: 1 }
    const { exec } = await answering({ status: 200, body: { tool_use_id: 't', result_block: block, extra: [] } })
    expect(await exec()).toEqual({ ...ran, stdout: '1' })
  })

  test('CP-11 entries without a name or an id are ignored', async () => {
    const content = [
      { type: 'code_execution_output', file_id: 'f1', filename: 'chart.png' },
      { type: 'code_execution_output', file_id: 'f2' },
      { type: 'code_execution_output', filename: 'lost.csv' },
      { file_id: 'f3', filename: 'untyped.csv' },
      'rubbish',
      null,
    ]
    const { exec } = await answering(result({ content }))
    expect(await exec()).toEqual({ ...ran, files: ['chart.png', 'untyped.csv'] })
  })

  test.each([
    { type: 'code_execution_tool_result_error', error_code: 'unavailable' },
    { type: 'bash_code_execution_tool_result_error' },
    { error_code: 'execution_time_exceeded' },
  ])('CP-13 the error variant %j is a failed call, never an empty success', async (content) => {
    const { exec } = await answering(result(content))
    expect(await exec()).toEqual(refused)
  })

  test('CP-13 a program that fails is an answer', async () => {
    const { provider } = await open()
    const session = await lease(provider)
    const failing = await provider.exec(session, { code: 'raise ValueError("no")', timeoutSeconds: 5 }, limits())
    expect(failing).toMatchObject({ status: 'ok', returnCode: 1 })
    expect(failing.status === 'ok' && failing.stderr).toContain('ValueError: no')
  })

  test.each([
    [400, 'refused'],
    [401, 'refused'],
    [404, 'lost'],
    [422, 'refused'],
    [500, 'refused'],
    [502, 'refused'],
    [503, 'busy'],
  ])('CP-14 CP-23 a %i is a failed operation: %s', async (status, reason) => {
    const { exec } = await answering({ status, body: { detail: 'secret inside' } })
    const outcome = await exec()
    expect(outcome).toEqual({ status: 'failed', reason })
  })

  test.each([
    ['a number', 42, '42'],
    ['true', true, 'true'],
    ['a list', ['a', 1], '["a",1]'],
    ['an object', { a: 1 }, '{"a":1}'],
    ['a lone surrogate', 'a\ud800b', 'a\ufffdb'],
    ['a pair', '😀', '😀'],
    ['NUL and escapes', '\u0000\u001b[31m', '\u0000\u001b[31m'],
  ])('CP-30 stdout and stderr that are %s become text', async (_what, value, expected) => {
    const { exec } = await answering(result({ stdout: value, stderr: value }))
    expect(await exec()).toEqual({ ...ran, stdout: expected, stderr: expected })
  })

  test('CP-30 bytes that are not UTF-8 are replaced', async () => {
    const [head, tail] = JSON.stringify(result({ stdout: '*' }).body).split('*') as [string, string]
    const body = Buffer.concat([Buffer.from(head), Buffer.from([0x61, 0xff, 0x62]), Buffer.from(tail)])
    const { exec } = await answering({ status: 200, headers: { 'content-type': 'application/json' }, body })
    expect(await exec()).toEqual({ ...ran, stdout: 'a\ufffdb' })
  })

  test('an answer that is no JSON is refused', async () => {
    const { exec } = await answering({ status: 200, body: Buffer.from('<html>') })
    expect(await exec()).toEqual(refused)
  })

  test('CP-16 X-31 an answer 5 s after the grant still counts', { timeout: 30_000 }, async () => {
    const { exec } = await answering(async () => {
      await new Promise((done) => setTimeout(done, 6_000))
      return result({ stdout: 'late' })
    })
    expect(await exec(1)).toEqual({ ...ran, stdout: 'late' })
  })

  test('CP-16 X-31 15 s after the grant nobody waits any more', { timeout: 30_000 }, async () => {
    const { exec } = await answering(async () => {
      await new Promise((done) => setTimeout(done, 16_000))
      return result({ stdout: 'too late' })
    })
    const began = Date.now()
    expect(await exec(1)).toEqual({ status: 'failed', reason: 'timeout' })
    expect(Date.now() - began).toBeGreaterThanOrEqual(10_900)
    expect(Date.now() - began).toBeLessThan(14_000)
  })

  test('a fired signal ends the call at once', async () => {
    const { provider } = await open({
      respond: ({ operation }) => (operation === 'exec' ? new Promise(() => {}) : undefined),
    })
    const session = await lease(provider)
    const gone = new AbortController()
    const call = provider.exec(session, { code: 'print(1)', timeoutSeconds: 60 }, { ...limits(), signal: gone.signal })
    setTimeout(() => gone.abort(new Error('left')), 50)
    await expect(call).rejects.toThrow('left')
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

describe('files', () => {
  test('CP-20 CP-18 CP-19 what is put is listed and read back', async () => {
    const { provider } = await open()
    const session = await lease(provider)
    const body = 'a,b\r\n--boundary\r\n1,"é"\r\n'
    expect(await provider.put(session, fileOf('in/dä"ta\r\n.csv', body), limits())).toMatchObject({ status: 'ok' })
    expect(await provider.put(session, fileOf('in/data.csv', body), limits())).toEqual({
      status: 'ok',
      path: 'in/data.csv',
    })
    const listed = await provider.list(session, 'in', limits())
    expect(listed.status === 'ok' && listed.files).toContainEqual({
      path: 'in/data.csv',
      bytes: Buffer.byteLength(body),
      modifiedAt: expect.any(Number),
    })
    const got = await provider.get(session, 'in/data.csv', limits())
    if (got.status !== 'ok') throw new Error(got.reason)
    expect(got.mediaType).toBe('application/octet-stream')
    expect(await text(got.content)).toBe(body)
  })

  test('CP-18 a backend without file operations says so with a 404', async () => {
    const { provider } = await open({ files: false })
    const session = await lease(provider)
    expect(await provider.list(session, '.', limits())).toEqual({ status: 'failed', reason: 'lost' })
  })

  test('CP-18 CP-19 CP-20 paths outside, folders, missing files and files too large are refused', async () => {
    const { provider } = await open({ maxFileBytes: 10 })
    const session = await lease(provider)
    await provider.put(session, fileOf('d/a', '1'), limits())
    expect(await provider.list(session, '../etc', limits())).toEqual(refused)
    expect(await provider.list(session, 'nowhere', limits())).toEqual({ status: 'failed', reason: 'lost' })
    expect(await provider.get(session, 'd', limits())).toEqual(refused)
    expect(await provider.get(session, '../../etc/passwd', limits())).toEqual(refused)
    expect(await provider.get(session, 'nothing', limits())).toEqual({ status: 'failed', reason: 'lost' })
    expect(await provider.put(session, fileOf('big', '12345678901'), limits())).toEqual(refused)
    expect(await provider.put(session, fileOf('../out', '1'), limits())).toEqual(refused)
  })

  test('CP-18 a listing of another shape is refused, unknown members are not', async () => {
    const replies: unknown[] = [
      { files: [{ path: 'a' }] },
      { files: [{ path: 'a', size_bytes: 1, mime_type: null, x: 1 }], y: 2 },
    ]
    const { provider } = await open({ respond: () => ({ status: 200, body: replies.shift() }) })
    expect(await provider.list('x', '.', limits())).toEqual(refused)
    expect(await provider.list('x', '.', limits())).toEqual({ status: 'ok', files: [{ path: 'a', bytes: 1 }] })
  })
})

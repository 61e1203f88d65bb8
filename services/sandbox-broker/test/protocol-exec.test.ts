import { describe, expect, test } from 'vitest'
import { answering, lease, limits, open, ran, refused, result } from './protocol-rig.ts'

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
    const failing = await provider.exec(
      session,
      { kind: 'python', code: 'raise ValueError("no")', timeoutSeconds: 5 },
      limits(),
    )
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
    const call = provider.exec(
      session,
      { kind: 'python', code: 'print(1)', timeoutSeconds: 60 },
      { ...limits(), signal: gone.signal },
    )
    setTimeout(() => gone.abort(new Error('left')), 50)
    await expect(call).rejects.toThrow('left')
  })
})

describe('a call whose output is listened to', () => {
  const event = (name: string, data: object) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`
  const whole = result({ stdout: 'é😀\n', stderr: 'warn', return_code: 3, ended_by: 'memory' }).body as object
  const sse = (text: string) => ({
    status: 200,
    headers: { 'content-type': 'text/event-stream' },
    body: Buffer.from(text),
  })
  async function listen(reply: Parameters<typeof answering>[0]) {
    const { provider, session, backend } = await answering(reply)
    const heard: { stream: string; text: string }[] = []
    const call = { kind: 'python' as const, code: 'print(1)', timeoutSeconds: 60 }
    const outcome = await provider.exec(session, { ...call, onOutput: (piece) => heard.push(piece) }, limits())
    return { outcome, heard, asked: backend.requests.at(-1)?.headers.accept }
  }
  const pieces = [
    { stream: 'stdout', text: 'é😀\n' },
    { stream: 'stderr', text: 'warn' },
  ]
  const ended = { status: 'ok', stdout: 'é😀\n', stderr: 'warn', returnCode: 3, files: [], limit: 'memory' }

  test('hears it piece by piece, and has the result of the plain call', async () => {
    const text = `: alive\n\n${pieces.map((piece) => event('output', piece)).join('')}${event('result', whole)}`
    const { outcome, heard, asked } = await listen(sse(text))
    expect([outcome, heard]).toEqual([ended, pieces])
    expect(asked).toContain('text/event-stream')
    const windows = await listen(sse(text.replaceAll('\n', '\r\n').replaceAll('data: ', 'data:')))
    expect([windows.outcome, windows.heard]).toEqual([ended, pieces])
  })

  test('CP-21 hears nothing of a backend that knows no events, and has the result all the same', async () => {
    const { outcome, heard } = await listen({ status: 200, body: whole })
    expect([outcome, heard]).toEqual([ended, []])
  })

  test.each([
    ['BR-128 lost in the middle', event('output', pieces[0] as object) + event('error', { status: 404 }), 'lost'],
    ['busy', event('error', { status: 503 }), 'busy'],
    ['failed', event('error', { status: 500 }), 'refused'],
    ['without a result', event('output', pieces[0] as object), 'refused'],
    ['cut off in its result', event('result', whole).slice(0, -30), 'refused'],
    ['with a result of another shape', event('result', { stdout: 'x' }), 'refused'],
    ['with an output of another shape', event('output', { stream: 'stdin', text: 1 }), 'refused'],
    ['that never ends a line', `data: ${'x'.repeat(17 * 1024 * 1024)}`, 'refused'],
  ])('CP-14 a stream %s is a failed call', async (_what, text, reason) => {
    expect((await listen(sse(text))).outcome).toMatchObject({ status: 'failed', reason })
  })

  test.each([404, 503, 422])('CP-14 a %i before it began is a failed call', async (status) => {
    const reason = { 404: 'lost', 503: 'busy', 422: 'refused' }[status]
    expect((await listen({ status, body: {} })).outcome).toMatchObject({ status: 'failed', reason })
  })
})

import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Backend, openBackend, printed, type SessionClient } from './harness.ts'

let backend: Backend
let session: SessionClient
beforeAll(async () => {
  backend = await openBackend({ idleSeconds: 600, lifetimeSeconds: 3_600, maxSessions: 8 })
  session = await backend.open()
})
afterAll(() => backend.close())

describe('sessions', () => {
  test('CP-03 CP-04 CP-06 a lease says what is in force, and hints only shorten it', async () => {
    const plain = await backend.send('POST', '/sessions', { json: {} })
    expect(plain.status).toBe(201)
    expect(plain.body).toEqual({
      session_id: expect.stringMatching(/^sbx_[0-9a-f]{32}$/),
      created_at: expect.any(Number),
      last_activity_at: expect.any(Number),
      idle_timeout_seconds: 600,
      max_lifetime_seconds: 3_600,
      isolation: backend.sandbox.isolation,
    })
    const hints = { idle_timeout_seconds: 30, max_lifetime_seconds: 999_999, image: 'any', more: [1] }
    const hinted = await backend.send('POST', '/sessions', { json: hints })
    expect(hinted.body).toMatchObject({ idle_timeout_seconds: 30, max_lifetime_seconds: 3_600 })
    for (const { body } of [plain, hinted]) await backend.send('DELETE', `/sessions/${body.session_id}`)
  })

  test('CP-03 a lease needs no body at all', async () => {
    const { status, body } = await backend.send('POST', '/sessions')
    expect(status).toBe(201)
    await backend.send('DELETE', `/sessions/${body.session_id}`)
  })

  test.each([{ idle_timeout_seconds: 0 }, { max_lifetime_seconds: -1 }, { idle_timeout_seconds: 1.5 }, [1], 'x'])(
    'a malformed lease is a 422: %j',
    async (json) => {
      expect((await backend.send('POST', '/sessions', { json })).status).toBe(422)
    },
  )

  test('CP-23 H1 at capacity a lease is a 503 with Retry-After, and room made is room again', async () => {
    const held = []
    for (;;) {
      const { status, headers, body } = await backend.send<{ session_id: string }>('POST', '/sessions')
      if (status === 201) held.push(body.session_id)
      else {
        expect(status).toBe(503)
        expect(headers.get('retry-after')).toMatch(/^[0-9]{1,6}$/)
        break
      }
    }
    expect(held.length).toBe(7)
    await backend.send('DELETE', `/sessions/${held[0]}`)
    const again = await backend.send<{ session_id: string }>('POST', '/sessions')
    expect(again.status).toBe(201)
    for (const id of [...held, again.body.session_id]) await backend.send('DELETE', `/sessions/${id}`)
  })

  test('CP-12 a session made for a client that left before it was told is given back at once', async () => {
    const slow = await openBackend({ warmSessions: 0, maxSessions: 4 })
    onTestFinished(() => slow.close())
    const { hostname, port } = new URL(slow.url)
    for (let client = 0; client < 4; client += 1) {
      const socket = connect(Number(port), hostname)
      const sent = new Promise((done) =>
        socket.write('POST /sessions HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n', done),
      )
      await sent
      // told of none: it is gone before a session can have been made
      socket.resetAndDestroy()
    }
    const held: string[] = []
    const openAnother = async () => {
      const { status, body } = await slow.send<{ session_id: string }>('POST', '/sessions')
      if (status === 201) held.push(body.session_id)
      return held.length
    }
    await expect.poll(openAnother, { timeout: 10_000 }).toBe(4)
  })

  test('CP-15 D19 a session that is gone or never was: 204 to DELETE, 404 to everything else', async () => {
    const own = await backend.open()
    expect((await own.end()).status).toBe(204)
    for (const id of [own.id, 'sbx_00000000000000000000000000000000', 'x', 'a%2Fb', 'x'.repeat(400)]) {
      expect((await backend.send('DELETE', `/sessions/${id}`)).status).toBe(204)
      const json = { tool: 'code_execution', input: { code: '1' } }
      expect((await backend.send('POST', `/sessions/${id}/exec`, { json })).status).toBe(404)
      expect((await backend.send('GET', `/sessions/${id}/files/list`)).status).toBe(404)
      expect((await backend.send('GET', `/sessions/${id}/files?path=a`)).status).toBe(404)
    }
  })

  test('CP-29 a session nobody uses is reclaimed, one in use is not', async () => {
    const idle = await backend.open({ idle_timeout_seconds: 1 })
    expect(printed(await idle.python('import time; time.sleep(2); 1', 5))).toBe('1\n')
    await expect.poll(async () => (await idle.list()).status, { interval: 1_500, timeout: 10_000 }).toBe(404)
    const aged = await backend.open({ max_lifetime_seconds: 1 })
    await expect.poll(async () => (await aged.list()).status, { interval: 200, timeout: 10_000 }).toBe(404)
  })
})

describe('calls', () => {
  test('CP-07 CP-09 CP-10 the block is nested, and the id is echoed or made', async () => {
    const named = await session.exec({ tool: 'code_execution', input: { code: 'print(2 + 2)' }, tool_use_id: 'mine' })
    expect(named.status).toBe(200)
    expect(named.body).toEqual({
      tool_use_id: 'mine',
      execution_time_ms: expect.any(Number),
      result_block: {
        type: 'code_execution_tool_result',
        tool_use_id: 'mine',
        content: { type: 'code_execution_result', stdout: '4\n', stderr: '', return_code: 0, content: [] },
      },
    })
    const { body } = await session.exec({ tool: 'bash_code_execution', input: { command: 'true' }, tool_use_id: null })
    expect(body.tool_use_id).toMatch(/^srvtoolu_[0-9a-f]{24}$/)
    expect(body.result_block).toMatchObject({ type: 'bash_code_execution_tool_result', tool_use_id: body.tool_use_id })
  })

  test('CP-08 a shell command runs in the workspace', async () => {
    await session.shell('echo hello > from-shell.txt')
    expect(printed(await session.python('open("from-shell.txt").read()'))).toBe("'hello\\n'\n")
    expect(await session.shell('echo out; echo err >&2; exit 3')).toMatchObject({
      stdout: 'out\n',
      stderr: 'err\n',
      return_code: 3,
    })
  })

  test('BR-125 a command is over when its own process is, whoever still holds its output', async () => {
    const began = performance.now()
    const { stdout } = await session.shell('echo before; sleep 60 &')
    expect(stdout).toBe('before\n')
    expect(performance.now() - began).toBeLessThan(5_000)
  })

  test.each([
    ['an unknown kind', { tool: 'julia', input: {} }, 400],
    ['an unknown kind without input', { tool: 'no_such_tool_kind' }, 400],
    ['no kind', { input: { code: '1' } }, 422],
    ['a kind that is a number', { tool: 7, input: { code: '1' } }, 422],
    ['no input', { tool: 'code_execution' }, 422],
    ['no code', { tool: 'code_execution', input: {} }, 422],
    ['empty code', { tool: 'code_execution', input: { code: '' } }, 422],
    ['code that is a list', { tool: 'code_execution', input: { code: ['1'] } }, 422],
    ['a command where code belongs', { tool: 'code_execution', input: { command: 'ls' } }, 422],
    ['no command', { tool: 'bash_code_execution', input: {} }, 422],
    ['no editor command', { tool: 'text_editor_code_execution', input: { path: 'a' } }, 422],
    ['an unknown editor command', { tool: 'text_editor_code_execution', input: { command: 'rm', path: 'a' } }, 422],
    ['create without text', { tool: 'text_editor_code_execution', input: { command: 'create', path: 'a' } }, 422],
    ['an id that is a number', { tool: 'code_execution', input: { code: '1' }, tool_use_id: 7 }, 422],
    ['a list', [], 422],
  ])('CP-14 H9 a call with %s', async (_what, request, status) => {
    const answer = await session.exec(request)
    expect(answer.status).toBe(status)
  })

  test.each([0, -1, 1.5, 'x', [5]])('A12 timeout_seconds %j is a 422', async (timeout_seconds) => {
    const answer = await session.exec({ tool: 'code_execution', input: { code: '1' }, timeout_seconds })
    expect(answer.status).toBe(422)
  })

  test('A12 a huge timeout is clamped, null is none', async () => {
    for (const timeout_seconds of [1_000_000_000, null])
      expect((await session.exec({ tool: 'code_execution', input: { code: '1' }, timeout_seconds })).status).toBe(200)
  })

  test.each([
    ['malformed JSON', { body: '{"tool":', headers: { 'content-type': 'application/json' } }],
    ['no body', { headers: { 'content-type': 'application/json' } }],
    [
      'another media type',
      { body: '{"tool":"code_execution","input":{"code":"1"}}', headers: { 'content-type': 'text/plain' } },
    ],
    ['2 MiB', { json: { tool: 'code_execution', input: { code: '#'.repeat(2 << 20) } } }],
  ])('H9 %s is a 422', async (_what, options) => {
    expect((await backend.send('POST', `/sessions/${session.id}/exec`, options)).status).toBe(422)
  })

  test('CP-21 unknown members anywhere are no obstacle', async () => {
    const request = { tool: 'code_execution', input: { code: '1', colour: 'red' }, shiny: {}, timeout_seconds: 5 }
    expect((await session.exec(request)).status).toBe(200)
  })

  test('A14 calls at once are taken in turn, and no output crosses', async () => {
    const calls = [1, 2, 3, 4].map((n) =>
      session.python(`import time\nfor i in range(3):\n  print(${n})\n  time.sleep(0.02)`),
    )
    const outputs = (await Promise.all(calls)).map(printed)
    expect(outputs).toEqual(['1\n1\n1\n', '2\n2\n2\n', '3\n3\n3\n', '4\n4\n4\n'])
  })

  test('CP-11 files that a call made are named, those that were there are not', async () => {
    const own = await backend.open()
    await own.put('given.csv', 'a,b')
    const code =
      'import os; os.makedirs("out/deep"); open("out/deep/a.txt", "w").write("1"); open("b.txt", "w").close(); open(".hidden", "w").close()'
    expect((await own.python(code)).content).toEqual([
      { type: 'code_execution_output', file_id: 'b.txt', filename: 'b.txt' },
      { type: 'code_execution_output', file_id: 'out/deep/a.txt', filename: 'out/deep/a.txt' },
    ])
    expect((await own.python('open("given.csv").read()')).content).toEqual([])
    expect((await own.python('open("b.txt", "a").write("more")')).content.map(({ filename }) => filename)).toEqual([
      'b.txt',
    ])
    expect((await own.shell('echo 1 > given.csv')).content.map(({ filename }) => filename)).toEqual(['given.csv'])
    await own.end()
  })
})

describe('who may use it', () => {
  test('CP-22 with a token every operation asks for it, health does not', async () => {
    const closed = await openBackend({ token: 's3cret', warmSessions: 0 })
    const { id } = await closed.open()
    const operations = [
      ['POST', '/sessions'],
      ['POST', `/sessions/${id}/exec`],
      ['GET', `/sessions/${id}/files/list`],
      ['GET', `/sessions/${id}/files?path=a`],
      ['POST', `/sessions/${id}/files`],
      ['DELETE', `/sessions/${id}`],
    ] as const
    for (const authorization of ['', 'Bearer', 'Bearer s3cre', 'Bearer s3cret1', 'Basic s3cret', 's3cret'])
      for (const [method, path] of operations)
        expect((await closed.send(method, path, { headers: { authorization } })).status).toBe(401)
    expect((await closed.send('GET', '/health', { headers: { authorization: '' } })).status).toBe(200)
    expect((await closed.send('DELETE', `/sessions/${id}`)).status).toBe(204)
    await closed.close()
  })

  test('a page in a browser cannot drive it', async () => {
    const { status } = await backend.send('POST', '/sessions', { headers: { origin: 'https://site.test' } })
    expect(status).toBe(403)
  })

  test('H6 it does not listen on an address that others reach without a token', async () => {
    await expect(openBackend({ host: '0.0.0.0' })).rejects.toThrow('set sandbox_token')
    await expect(openBackend({ host: '0.0.0.0', token: 't', minIsolation: 'process' })).rejects.toThrow('loopback')
  })

  test('health says what keeps sessions apart', async () => {
    const { status, body } = await backend.send('GET', '/health')
    expect(status).toBe(200)
    expect(body).toMatchObject({ status: 'ok', isolation: { level: backend.sandbox.isolation }, sessions: { most: 8 } })
  })
})

import { connect } from 'node:net'
import { type Failure, Fault, failures } from '@tollgate/contracts'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { type Rig, startRig } from '../rig.ts'

const CANARY = 'sk-canary-of-the-upstream'
let rig: Rig
beforeAll(async () => {
  rig = await startRig({
    postgresUrl: inject('postgresUrl'),
    settings: { bodyLimitBytes: 300_000 },
    routes: () => [
      async (app) => {
        for (const path of [
          '/fail/:failure',
          '/messages/:failure',
          '/messages',
          '/chat/completions',
          '/responses',
          '/echo',
        ]) {
          app.post(path, async (request) => {
            const { failure } = request.params as { failure?: string }
            if (failure === 'bug') throw new TypeError(`cannot read ${CANARY}`)
            if (failure === 'odd') throw CANARY
            if (failure === 'slow') throw new Fault('rate_limited', 'Rate limit exceeded', { retryAfterSeconds: 1.2 })
            if (failure === 'long') throw new Fault('invalid_request', `type '${'x'.repeat(100_000)}' is unknown`)
            if (failure) throw new Fault(failure as Failure, `it was ${failure}`, { cause: new Error(CANARY) })
            return { seen: request.body }
          })
        }
      },
    ],
  })
})
afterAll(() => rig.close())

const post = <B = { detail: unknown; code?: string }>(path: string, body: unknown = {}, headers = {}) =>
  rig.send<B>('POST', path, { key: rig.firstKey, body, headers })

describe('R-60 R-61 what a failure looks like', () => {
  test.each(Object.entries(failures).map(([name, { http }]) => [name, http] as const))(
    'R-60 %s is %i',
    async (failure, status) => {
      const coded = failure === 'pricing_required' || failure === 'insufficient_funds'
      const plain = await post(`/api/v1/fail/${failure}`)
      expect(plain.status).toBe(status)
      expect(plain.body).toEqual({ detail: `it was ${failure}`, ...(coded ? { code: failure } : {}) })
      expect(plain.headers.get('content-type')).toBe('application/json; charset=utf-8')
      expect(plain.headers.get('www-authenticate')).toBe(status === 401 ? 'Bearer' : null)

      const types: Record<number, string> = {
        400: 'invalid_request_error',
        401: 'authentication_error',
        403: 'permission_error',
        404: 'not_found_error',
        429: 'rate_limit_error',
      }
      for (const prefix of ['/api/v1', '/v1']) {
        const messages = await post(`${prefix}/messages/${failure}`)
        expect(messages.status).toBe(status)
        expect(messages.body).toEqual({
          detail: { type: 'error', error: { type: types[status] ?? 'api_error', message: `it was ${failure}` } },
          ...(coded ? { code: failure } : {}),
        })
      }
    },
  )

  test('R-60 a refusal that names what the client wrote is no longer than a refusal may be', async () => {
    const { status, body } = await post('/api/v1/fail/long')
    expect(status).toBe(400)
    expect(String(body.detail)).toMatch(/^type 'x{1900,2000}…$/)
    expect(String(body.detail)).toHaveLength(2_000)
  })

  test.each(['bug', 'odd'])('R-60 a %s tells the client nothing, and the log why', async (failure) => {
    const before = rig.lines().length
    const { status, body, text } = await post(`/api/v1/fail/${failure}`)
    expect(status).toBe(500)
    expect(body).toEqual({ detail: 'something went wrong on our side' })
    expect(text).not.toContain(CANARY)
    expect(
      rig
        .lines()
        .slice(before)
        .filter(({ level }) => level === 'error'),
    ).toHaveLength(1)
  })

  test('a refusal says when to come back, in whole seconds', async () => {
    const { status, headers } = await post('/api/v1/fail/slow')
    expect([status, headers.get('retry-after')]).toEqual([429, '2'])
  })

  test.each([
    ['upstream', 'warn'],
    ['timeout', 'warn'],
    ['internal', 'error'],
    ['unavailable', 'error'],
  ])('%s is logged as %s: what others do wakes nobody', async (failure, level) => {
    const { headers } = await post(`/api/v1/fail/${failure}`, {})
    const id = headers.get('x-request-id')
    const levels = () => rig.lines().flatMap((line) => (line.request === id ? [[line.msg, line.level]] : []))
    await expect.poll(levels).toContainEqual(['request failed', level])
  })

  test('every answer carries the id its log lines have', async () => {
    const { headers } = await post('/api/v1/fail/internal', {}, { 'x-request-id': 'the-client-chose' })
    const id = headers.get('x-request-id')
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    await expect
      .poll(() =>
        rig
          .lines()
          .filter((line) => line.request === id)
          .map((line) => line.msg),
      )
      .toEqual(['request failed', 'answered'])
  })
})

describe('paths that are none', () => {
  test.each([
    '/api/v1/nothing',
    '/v1/nothing',
    '/nothing',
    '/api/v1/keys/%zz',
    `/api/v1/keys/${'x'.repeat(600)}`,
    '/api/v1//keys',
    '/api/v1/../v1/tools/x',
  ])('%s is a 404 in JSON', async (path) => {
    expect(await rig.send('GET', path, { key: rig.firstKey })).toMatchObject({
      status: 404,
      body: { detail: 'Not Found' },
    })
  })

  test('R-60 and below /messages it has that dialect’s shape', async () => {
    expect((await rig.send('GET', '/api/v1/messages/a/b')).body).toMatchObject({
      detail: { error: { type: 'not_found_error' } },
    })
    expect((await rig.send('GET', '/api/v1/messagesx')).body).toEqual({ detail: 'Not Found' })
  })
})

const nested = (depth: number, open: string, close: string) => `${open.repeat(depth)}1${close.repeat(depth)}`

describe('bodies nobody should have to read', () => {
  const refused = (msg: string) => ({ status: 422, body: { detail: [{ loc: ['body'], msg, type: 'json_invalid' }] } })
  const notJson = refused('the body is not valid JSON')
  const tooDeep = refused('the body is nested deeper than 128 levels')
  const poisoned = refused('the body has a member named __proto__')

  test.each([
    ['an open brace', '{', notJson],
    ['a trailing comma', '{"a":1,}', notJson],
    ['single quotes', "{'a':1}", notJson],
    ['NaN', '{"a":NaN}', notJson],
    ['a comment', '{"a":1}//', notJson],
    ['two values', '{}{}', notJson],
    ['a bare NUL byte in a text', '{"a":"\0"}', notJson],
    ['NUL bytes alone', '\0\0\0', notJson],
    ['a blank', ' ', notJson],
    ['a byte order mark', '\ufeff{}', notJson],
    ['half a text', '{"a":"b', notJson],
    ['a key that is the secret and no JSON', CANARY, notJson],
    ['129 arrays', nested(129, '[', ']'), tooDeep],
    ['a hundred thousand arrays', nested(100_000, '[', ']'), tooDeep],
    ['ten thousand objects', nested(10_000, '{"a":', '}'), tooDeep],
    ['a hundred thousand open brackets', '['.repeat(100_000), notJson],
    ['a __proto__ member', '{"__proto__":{"isAdmin":true}}', poisoned],
    ['a __proto__ member spelled with an escape', '{"\\u005f_proto__":1}', poisoned],
    ['a __proto__ member deep inside', '{"a":[{"b":{"__proto__":null}}]}', poisoned],
  ])('%s', async (_, body, answer) => {
    for (const path of ['/api/v1/echo', '/v1/echo']) expect(await post(path, body)).toMatchObject(answer)
  })

  test('none of them is quoted in an answer or in the log', async () => {
    const { text } = await post('/api/v1/echo', `{"messages": ${CANARY}-in-a-body`)
    expect(text).not.toContain('canary')
    expect(rig.logged()).not.toContain(`${CANARY}-in-a-body`)
  })

  test.each([
    ['128 arrays', nested(128, '[', ']')],
    ['a constructor member', '{"constructor":{"prototype":{"a":1}}}'],
    ['a text that says __proto__', '{"a":"__proto__"}'],
    ['an escaped NUL in a text', '{"a":"\\u0000"}'],
    ['a half of a pair', '{"a":"\\ud800"}'],
    ['a name twice', '{"a":1,"a":2}'],
    ['a list of a thousand', `[${'{},'.repeat(999)}{}]`],
    ['a text', '"a"'],
    ['null', 'null'],
  ])('%s is a body like any other', async (_, body) => {
    expect(await post('/api/v1/echo', body)).toMatchObject({ status: 200, body: { seen: JSON.parse(body) } })
    expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined()
  })

  test('no body at all is a body that is not there', async () => {
    expect((await rig.send('POST', '/api/v1/echo', { key: rig.firstKey })).body).toEqual({})
    expect((await rig.send('POST', '/api/v1/echo', { key: rig.firstKey, body: '' })).body).toEqual({})
  })

  test.each([
    ['text/plain', 415],
    ['application/x-www-form-urlencoded', 415],
    ['multipart/form-data; boundary=x', 415],
    ['application/xml', 415],
    ['nonsense', 415],
    ['', 415],
    ['application/jsonp', 415],
    ['application/json', 200],
    ['application/json; charset=utf-8', 200],
    ['Application/JSON;charset=UTF-8', 200],
  ])('a body sent as %j is a %i', async (type, status) => {
    const answer = await post('/api/v1/echo', '{}', { 'content-type': type })
    expect(answer.status).toBe(status)
    if (status === 415) expect(answer.body).toEqual({ detail: 'the request body must be application/json' })
  })

  test('a body at the limit is read and one byte more is a 413, declared or found out', async () => {
    const text = (bytes: number) => JSON.stringify('x'.repeat(bytes - 2))
    expect((await post('/api/v1/echo', text(300_000))).status).toBe(200)
    const tooLarge = { status: 413, body: { detail: 'the request body is too large' } }
    expect(await post('/api/v1/echo', text(300_001))).toMatchObject(tooLarge)
    const streamed = await fetch(`${rig.url}/api/v1/echo`, {
      method: 'POST',
      headers: { authorization: `Bearer ${rig.firstKey}`, 'content-type': 'application/json' },
      body: new Blob([text(300_001)]).stream(),
      duplex: 'half',
    })
    expect([streamed.status, await streamed.json()]).toEqual([413, tooLarge.body])
  })

  test('R-60 a body too large for /messages is told in its shape', async () => {
    const { body } = await post('/api/v1/messages', 'x'.repeat(300_001))
    expect(body).toEqual({
      detail: { type: 'error', error: { type: 'api_error', message: 'the request body is too large' } },
    })
  })

  test('an unknown key is refused before its body is read', async () => {
    expect(await rig.send('POST', '/api/v1/echo', { key: 'gw-wrong', body: 'x'.repeat(300_001) })).toMatchObject({
      status: 401,
    })
  })
})

/** What a peer that does not speak HTTP properly gets back. */
function raw(text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(rig.url)
    let got = ''
    const socket = connect(Number(port), hostname, () => socket.write(text))
    socket.setTimeout(10_000, () => socket.destroy(new Error('no answer')))
    socket.on('data', (chunk) => {
      got += chunk
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(got))
  })
}

describe('requests that are no HTTP', () => {
  const head = `Host: x\r\nx-api-key: KEY\r\nConnection: close\r\n`
  test.each([
    ['nonsense', 'hello\r\n\r\n', 400],
    ['a header line without a colon', `GET /health HTTP/1.1\r\n${head}bad\r\n\r\n`, 400],
    ['a NUL in a header', `GET /health HTTP/1.1\r\n${head}a: b\0c\r\n\r\n`, 400],
    ['no Host', 'GET /health HTTP/1.1\r\nConnection: close\r\n\r\n', 400],
    ['two lengths that differ', `POST /health HTTP/1.1\r\n${head}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`, 400],
    [
      'a length and chunks',
      `POST /health HTTP/1.1\r\n${head}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n`,
      400,
    ],
    ['a length below zero', `POST /health HTTP/1.1\r\n${head}Content-Length: -1\r\n\r\n`, 400],
    [
      'an expectation nobody knows',
      `POST /health HTTP/1.1\r\n${head}Expect: wonders\r\nContent-Length: 0\r\n\r\n`,
      417,
    ],
    ['headers of 20 kB', `GET /health HTTP/1.1\r\n${head}a: ${'x'.repeat(20_000)}\r\n\r\n`, 431],
  ])('%s', async (_, text, status) => {
    const answer = await raw(text.replace('KEY', rig.firstKey))
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `))
    if (status !== 400) expect(answer).toContain('{"detail":"')
    expect(answer).not.toContain(rig.firstKey)
  })

  test('a body shorter than it says is no request when the client hangs up, and harms nobody', async () => {
    const text = `POST /api/v1/echo HTTP/1.1\r\n${head}Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{}`
    const { hostname, port } = new URL(rig.url)
    const socket = connect(Number(port), hostname, () => socket.end(text.replace('KEY', rig.firstKey)))
    await new Promise((resolve) => socket.resume().on('close', resolve))
    await expect.poll(() => rig.lines().some((line) => line.route === '/api/v1/echo' && line.status === 499)).toBe(true)
    expect((await post('/api/v1/echo')).status).toBe(200)
  })
})

test('nothing secret was logged by all of this', () => {
  for (const secret of [rig.firstKey, rig.masterKey]) expect(rig.logged()).not.toContain(secret.slice(4, 24))
  for (const line of rig.lines()) {
    expect(Object.keys(line)).not.toContain('headers')
    expect(String(line.route ?? '')).not.toContain('?')
  }
})

import { createServer, type IncomingMessage, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { gzipSync } from 'node:zlib'
import { dnsStub, loopbackDialer } from '@tollgate/testing'
import { afterAll, describe, expect, test } from 'vitest'
import { openGuard, openTrustedClient, type TrustedRequest } from '../src/index.ts'

const closing: (() => Promise<unknown>)[] = []
afterAll(() => Promise.all(closing.map((close) => close())))

async function endpoint(answer: RequestListener) {
  const seen: IncomingMessage[] = []
  const server = createServer((request, response) => {
    seen.push(request)
    answer(request, response)
  })
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  closing.push(() => new Promise((done) => server.close(done).closeAllConnections()))
  const { port } = server.address() as AddressInfo
  return { port, url: `http://127.0.0.1:${port}/search?key=secret`, seen }
}

const client = openTrustedClient()
closing.push(() => client.close())
const ask = (url: string, change: Partial<TrustedRequest> = {}): TrustedRequest => ({
  method: 'GET',
  url,
  deadline: Date.now() + 3_000,
  signal: new AbortController().signal,
  ...change,
})

describe('SP-03 what came of a call', () => {
  test.each([
    [200, undefined],
    [204, 'invalid_response'],
    [301, 'http_error'],
    [302, 'http_error'],
    [401, 'authentication'],
    [402, 'quota'],
    [403, 'authentication'],
    [404, 'http_error'],
    [429, 'rate_limited'],
    [500, 'http_error'],
  ])('HTTP %i is %s', async (httpStatus, tag) => {
    const other = await endpoint((_request, response) => response.end('{}'))
    const { url } = await endpoint((_request, response) =>
      response.writeHead(httpStatus, { location: other.url }).end(httpStatus === 204 ? '' : '{"a":[1]}'),
    )
    const answer = await client.json(ask(url))
    if (tag === undefined) expect(answer).toMatchObject({ status: 'ok', httpStatus, body: { a: [1] } })
    else expect(answer).toEqual({ status: 'failed', tag, httpStatus })
    expect(other.seen).toEqual([])
  })

  test.each(['not json', '', '{"a":', '\xff'])('a body that is no JSON is invalid_response: %j', async (body) => {
    const { url } = await endpoint((_request, response) => response.end(Buffer.from(body, 'latin1')))
    expect(await client.json(ask(url))).toEqual({ status: 'failed', tag: 'invalid_response', httpStatus: 200 })
  })

  test('SP-04 more than 5 MiB is invalid_response, packed or not', async () => {
    const big = JSON.stringify('x'.repeat(5 * 1024 * 1024))
    const plain = await endpoint((_request, response) => response.end(big))
    const packed = await endpoint((_request, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(big)),
    )
    for (const { url } of [plain, packed])
      expect(await client.json(ask(url))).toMatchObject({ tag: 'invalid_response' })
    expect(await client.json(ask(packed.url, { maxBytes: 6 * 1024 * 1024 }))).toMatchObject({ status: 'ok' })
  })

  test('time-outs and broken connections are told apart', async () => {
    const silent = await endpoint(() => {})
    const half = await endpoint((_request, response) => response.writeHead(200, { 'content-length': 10 }).write('{'))
    const reset = await endpoint((request) => request.socket.destroy())
    for (const { url } of [silent, half]) {
      expect(await client.json(ask(url, { deadline: Date.now() + 150 }))).toEqual({ status: 'failed', tag: 'timeout' })
    }
    expect(await client.json(ask(reset.url))).toEqual({ status: 'failed', tag: 'network' })
    expect(await client.json(ask('http://127.0.0.1:1/'))).toEqual({ status: 'failed', tag: 'network' })
    expect(await client.json(ask('http://nowhere.invalid/'))).toEqual({ status: 'failed', tag: 'network' })
  })

  test('a fired signal throws its reason and closes the connection', async () => {
    const gone = new AbortController()
    const { url, seen } = await endpoint(() => gone.abort(new Error('left')))
    await expect(client.json(ask(url, { signal: gone.signal }))).rejects.toThrow('left')
    await expect.poll(() => seen[0]?.socket.destroyed).toBe(true)
  })
})

describe('what is sent', () => {
  test('a JSON body with its type, and nothing that was not given', async () => {
    let body = ''
    const { url, seen } = await endpoint(async (request, response) => {
      for await (const chunk of request) body += chunk
      response.end('{}')
    })
    await client.json(ask(url, { method: 'POST', json: { q: 'x' }, headers: { 'x-api-key': 'k' } }))
    expect(body).toBe('{"q":"x"}')
    const { host: _host, 'content-length': _length, connection: _connection, ...headers } = seen[0]?.headers ?? {}
    expect(headers).toEqual({
      accept: 'application/json',
      'accept-encoding': 'gzip, deflate',
      'content-type': 'application/json',
      'x-api-key': 'k',
    })
  })

  test('a stream as it comes, and a stream back', async () => {
    const { url } = await endpoint((request, response) => request.pipe(response))
    const body = Readable.from(
      (function* () {
        for (let at = 0; at < 64; at++) yield Buffer.alloc(65_536, at)
      })(),
    )
    const answer = await client.stream(
      ask(url, { method: 'PUT', body, headers: { 'content-type': 'application/octet-stream' } }),
    )
    if (answer.status !== 'ok') throw new Error(answer.tag)
    let size = 0
    for await (const chunk of answer.body) size += chunk.length
    expect(size).toBe(64 * 65_536)
  })

  test('a stream ends at the deadline, and a status is judged before anything is streamed', async () => {
    const slow = await endpoint((_request, response) => response.writeHead(200).write('x'))
    const answer = await client.stream(ask(slow.url, { deadline: Date.now() + 200 }))
    if (answer.status !== 'ok') throw new Error(answer.tag)
    await expect(answer.body.toArray()).rejects.toThrow()
    const missing = await endpoint((_request, response) => response.writeHead(404).end('x'.repeat(100_000)))
    expect(await client.stream(ask(missing.url))).toEqual({ status: 'failed', tag: 'http_error', httpStatus: 404 })
  })

  test('send hands over any status with its body and headers', async () => {
    const { url } = await endpoint((_request, response) =>
      response.writeHead(429, { 'retry-after': '7' }).end('{"busy":true}'),
    )
    const answer = await client.send(ask(url))
    if (answer.status !== 'answered') throw new Error(answer.tag)
    expect([answer.httpStatus, answer.header('Retry-After'), Buffer.from(answer.bytes).toString()]).toEqual([
      429,
      '7',
      '{"busy":true}',
    ])
  })

  test('connections are kept', async () => {
    const { url, seen } = await endpoint((_request, response) => response.end('{}'))
    for (let at = 0; at < 10; at++) await client.json(ask(url))
    expect(new Set(seen.map(({ socket }) => socket.remotePort)).size).toBeLessThan(4)
  })
})

describe('O-08 an endpoint that a tenant named', () => {
  test('is judged and pinned at each call', async () => {
    const { port, seen } = await endpoint((_request, response) => response.end('{}'))
    const dns = dnsStub({ 'api.test': [['93.184.216.34'], ['10.0.0.1']] })
    const dialer = loopbackDialer({ '93.184.216.34': port })
    const guarded = openTrustedClient({ judge: openGuard(dns.resolve), dialer })
    closing.push(() => guarded.close())
    expect(await guarded.json(ask('http://api.test/v1?x=1'))).toMatchObject({ status: 'ok' })
    expect(await guarded.json(ask('http://api.test/v1'))).toEqual({ status: 'failed', tag: 'network' })
    expect(await guarded.json(ask('http://127.0.0.1/'))).toEqual({ status: 'failed', tag: 'network' })
    expect(seen.map(({ url, headers }) => [url, headers.host])).toEqual([['/v1?x=1', 'api.test']])
    expect(dns.lookups).toEqual(['api.test', 'api.test'])
    expect(dialer.dialed).toHaveLength(1)
  })

  test('BR-118 keeps its key to itself when it answers with a redirect', async () => {
    const attacker = await endpoint((_request, response) => response.end('{}'))
    for (const status of [302, 307, 308]) {
      const { url } = await endpoint((_request, response) =>
        response.writeHead(status, { location: attacker.url }).end(),
      )
      const answer = await client.json(
        ask(url, { method: 'POST', json: {}, headers: { authorization: 'Bearer sk-secret' } }),
      )
      expect(answer).toEqual({ status: 'failed', tag: 'http_error', httpStatus: status })
    }
    expect(attacker.seen).toEqual([])
  })
})

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { describeError } from '@tollgate/telemetry'
import { afterEach, describe, expect, test } from 'vitest'
import { openUpstream, type UpstreamSettings, upstreamDefaults } from '../../src/models/upstream.ts'
import { faultOf, origin, soon } from './asking.ts'

let server: Server | undefined
let sockets: Socket[] = []
const closers: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const close of closers.splice(0)) await close()
  server?.closeAllConnections()
  server?.close()
})

type Handler = (request: IncomingMessage, response: ServerResponse) => void

async function upstreamOf(handler: Handler, changes: Partial<UpstreamSettings> = {}) {
  server = createServer((request, response) => {
    request.resume()
    request.on('end', () => handler(request, response))
  })
  sockets = []
  server.on('connection', (socket) => sockets.push(socket))
  await new Promise<void>((listening) => server?.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as AddressInfo
  const base = new URL(`http://127.0.0.1:${port}/v1/`)
  const hidden = { ...origin, hidden: ['sk-topsecret', base.host] }
  const upstream = openUpstream(hidden, {
    ...upstreamDefaults,
    base,
    headers: { authorization: 'Bearer sk-topsecret' },
    ...changes,
  })
  closers.push(() => upstream.close())
  return upstream
}

const answer =
  (status: number, body: string, headers: Record<string, string> = {}): Handler =>
  (_, response) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
  }
const error = (message: string, more: object = {}) => JSON.stringify({ error: { message, ...more } })
const post = (upstream: Awaited<ReturnType<typeof upstreamOf>>, limits = soon()) => upstream.post('/chat', '{}', limits)

describe('what an upstream status means', () => {
  test.each<[number, string, object]>([
    [400, error('bad tools'), { failure: 'invalid_request', status: 400, message: 'bad tools', retryable: false }],
    [400, '<html>', { failure: 'invalid_request', message: 'the model provider refused the request' }],
    [
      400,
      error('Your credit balance is too low'),
      { failure: 'upstream', status: 502, message: "the model provider refused this gateway's account" },
    ],
    [
      401,
      error('wrong key sk-topsecret'),
      {
        failure: 'upstream',
        status: 502,
        message: "the model provider refused this gateway's account",
        retryable: true,
      },
    ],
    [402, error('pay'), { failure: 'upstream', message: "the model provider refused this gateway's account" }],
    [403, error('no'), { failure: 'upstream', message: "the model provider refused this gateway's account" }],
    [404, error('no such model'), { failure: 'not_found', status: 404, message: 'no such model', retryable: true }],
    [404, 'not here', { failure: 'upstream', status: 502, message: 'the model provider failed' }],
    [408, error('x'), { failure: 'timeout', status: 504, retryable: true }],
    [413, error('too big'), { failure: 'too_large', status: 413, message: 'too big', retryable: false }],
    [
      422,
      '{"detail":"temperature is wrong"}',
      { failure: 'invalid_value', status: 422, message: 'temperature is wrong' },
    ],
    [
      422,
      '{"detail":[{"loc":["x"]}]}',
      { failure: 'invalid_value', message: 'the model provider refused the request' },
    ],
    [429, error('slow down'), { failure: 'rate_limited', status: 429, message: 'slow down', retryable: true }],
    [429, error('x', { code: 'insufficient_quota' }), { failure: 'upstream', status: 502 }],
    [500, error('stack at /srv/app.py'), { failure: 'upstream', status: 502, message: 'the model provider failed' }],
    [503, error('x'), { failure: 'unavailable', status: 503, message: 'the model provider is overloaded' }],
    [504, error('x'), { failure: 'timeout', status: 504 }],
    [529, error('x', { type: 'overloaded_error' }), { failure: 'unavailable', status: 503, upstreamStatus: 529 }],
    [418, error('x'), { failure: 'upstream', status: 502 }],
    [301, '', { failure: 'upstream', message: 'the model provider answered with a redirect, which is not followed' }],
  ])('%i %s', async (status, body, expected) => {
    const upstream = await upstreamOf(answer(status, body, { location: 'http://169.254.169.254/' }))
    expect(await faultOf(post(upstream))).toMatchObject(expected)
  })

  test('BR-043 what tells the client when to come back is kept, cookies and ids are not', async () => {
    const upstream = await upstreamOf(
      answer(429, error('slow down'), {
        'retry-after': '180000',
        'anthropic-ratelimit-unified-status': 'rejected',
        'x-ratelimit-remaining-requests': '0',
        'set-cookie': 'a=b',
        'x-request-id': 'req_1',
        'openai-organization': 'acme',
      }),
    )
    expect(await faultOf(post(upstream))).toMatchObject({
      retryAfterSeconds: 180_000,
      headers: {
        'retry-after': '180000',
        'anthropic-ratelimit-unified-status': 'rejected',
        'x-ratelimit-remaining-requests': '0',
      },
    })
  })

  test.each<[Record<string, string>, number | undefined]>([
    [{ 'retry-after-ms': '1500' }, 2],
    [{ 'retry-after': new Date(Date.now() + 61_000).toUTCString() }, 60],
    [{ 'retry-after': 'soon' }, undefined],
    [{ 'retry-after': '-5' }, undefined],
    [{}, undefined],
  ])('BR-043 %j is understood', async (headers, seconds) => {
    const upstream = await upstreamOf(answer(429, error('x'), headers))
    const { retryAfterSeconds } = await faultOf(post(upstream))
    if (seconds === undefined) expect(retryAfterSeconds).toBe(undefined)
    else expect(Math.abs((retryAfterSeconds ?? -99) - seconds)).toBeLessThanOrEqual(2)
  })

  test('a quota header beyond reason is not passed on', async () => {
    const many = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`x-ratelimit-${i}`, '1']))
    const upstream = await upstreamOf(answer(429, error('x'), { ...many, 'x-ratelimit-long': 'x'.repeat(300) }))
    const { headers } = (await faultOf(post(upstream))) as { headers?: Record<string, string> }
    expect(Object.keys(headers ?? {})).toHaveLength(32)
    expect(headers).not.toHaveProperty('x-ratelimit-long')
  })

  test('nothing of the provider’s body, key or address is in what is logged', async () => {
    for (const handler of [answer(500, error('inner words')), answer(401, error('inner words sk-topsecret'))]) {
      const upstream = await upstreamOf(handler)
      const logged = JSON.stringify(describeError(await faultOf(post(upstream))))
      for (const secret of ['inner words', 'sk-topsecret', '127.0.0.1']) expect(logged).not.toContain(secret)
    }
    const upstream = await upstreamOf((_, response) => response.destroy())
    server?.close()
    server?.closeAllConnections()
    const fault = await faultOf(post(upstream))
    expect(fault).toMatchObject({
      failure: 'upstream',
      message: 'the model provider could not be reached',
      retryable: true,
    })
    expect(JSON.stringify(describeError(fault))).not.toContain('127.0.0.1')
  })

  test('an endless error page is read no further than needed', async () => {
    const upstream = await upstreamOf((_, response) => {
      response.writeHead(500)
      const more = () => {
        while (response.write('x'.repeat(16_384)));
        response.once('drain', more)
      }
      more()
    })
    expect(await faultOf(post(upstream))).toMatchObject({ failure: 'upstream', upstreamStatus: 500 })
  })
})

describe('a call ends when it must', () => {
  const silent: Handler = () => {}
  const stalled: Handler = (_, response) =>
    void response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: x\n\n')

  /** The connection of the first request is closed in time after `end`. */
  async function closedWithin(ms: number, end: () => void): Promise<void> {
    await expect.poll(() => sockets.length).toBe(1)
    const began = performance.now()
    end()
    await expect.poll(() => sockets[0]?.destroyed, { interval: 5, timeout: 5_000 }).toBe(true)
    expect(performance.now() - began).toBeLessThan(ms)
  }

  test.each<[string, Handler]>([
    ['before the first byte', silent],
    ['in the middle of the body', stalled],
  ])('aborting closes the socket at once: %s', { retry: 2 }, async (_, handler) => {
    const upstream = await upstreamOf(handler)
    const gone = new AbortController()
    const reading = faultOf(
      post(upstream, { ...soon(), signal: gone.signal }).then(async (reply) => void (await reply.bytes())),
    )
    await expect.poll(() => sockets.length).toBe(1)
    await closedWithin(100, () => gone.abort())
    expect(await reading).toMatchObject({ failure: 'cancelled' })
  })

  test.each<[string, Handler]>([
    ['before the first byte', silent],
    ['in the middle of the body', stalled],
  ])('the deadline ends it with a timeout: %s', async (_, handler) => {
    const upstream = await upstreamOf(handler)
    const fault = await faultOf(post(upstream, soon(150)).then((reply) => reply.bytes()))
    expect(fault).toMatchObject({ failure: 'timeout', status: 504, retryable: true })
  })

  test('a provider that is silent for too long is a timeout too', async () => {
    const upstream = await upstreamOf(stalled, { bodyTimeoutMs: 100 })
    expect(await faultOf(post(upstream).then((reply) => reply.bytes()))).toMatchObject({ failure: 'timeout' })
  })

  test('a call that is cancelled before it begins is not sent', async () => {
    let seen = 0
    const upstream = await upstreamOf((_, response) => {
      seen++
      response.end()
    })
    expect(await faultOf(post(upstream, { ...soon(), signal: AbortSignal.abort() }))).toMatchObject({
      failure: 'cancelled',
    })
    expect(seen).toBe(0)
  })

  test('leaving the body early closes the connection', async () => {
    const upstream = await upstreamOf(stalled)
    const reply = await post(upstream)
    await closedWithin(1_000, () => {
      const leaving = async () => {
        for await (const _ of reply.chunks()) break
      }
      void leaving()
    })
  })
})

test('a connection serves the next call', async () => {
  const ports = new Set<number | undefined>()
  const upstream = await upstreamOf((request, response) => {
    ports.add(request.socket.remotePort)
    answer(200, '{}')(request, response)
  })
  for (let i = 0; i < 20; i++) expect((await (await post(upstream)).bytes()).toString()).toBe('{}')
  expect(ports.size).toBeLessThanOrEqual(2)
})

test('calls past the bound are refused as unavailable, and the place of one that ended is free again', async () => {
  const waiting: ServerResponse[] = []
  const upstream = await upstreamOf((_, response) => void waiting.push(response), { connections: 1 })
  const gone = new AbortController()
  const calls = [
    post(upstream, { ...soon(), signal: gone.signal }),
    post(upstream, { ...soon(), signal: gone.signal }),
  ].map(faultOf)
  await expect.poll(() => waiting.length).toBe(1)
  expect(await faultOf(post(upstream))).toMatchObject({ failure: 'unavailable', retryAfterSeconds: 1, retryable: true })
  gone.abort()
  await Promise.all(calls)
  const next = post(upstream)
  await expect.poll(() => waiting.length).toBe(2)
  waiting[1]?.writeHead(200).end('{}')
  expect((await next).status).toBe(200)
})

test('what is sent is the body, the credential and nothing that traces', async () => {
  let seen: { headers: IncomingMessage['headers']; url: string | undefined } | undefined
  const upstream = await upstreamOf((request, response) => {
    seen = { headers: request.headers, url: request.url }
    answer(200, '{}')(request, response)
  })
  await (await post(upstream)).bytes()
  expect(seen?.url).toBe('/v1/chat')
  expect(seen?.headers).toMatchObject({
    authorization: 'Bearer sk-topsecret',
    'content-type': 'application/json',
    'content-length': '2',
    'accept-encoding': 'identity',
  })
  expect(seen?.headers).not.toHaveProperty('traceparent')
})

test('a body that is encoded although identity was asked for, or larger than taken, is an upstream failure', async () => {
  const encoded = await upstreamOf(answer(200, 'x', { 'content-encoding': 'br' }))
  expect(await faultOf(post(encoded))).toMatchObject({
    failure: 'upstream',
    message: "the model provider's answer could not be read",
  })
  const large = await upstreamOf((_, response) => void response.writeHead(200).end(Buffer.alloc(33 * 1024 * 1024)))
  expect(await faultOf(post(large).then((reply) => reply.bytes()))).toMatchObject({
    failure: 'upstream',
    message: expect.stringContaining('larger'),
  })
})

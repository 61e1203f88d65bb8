import { setTimeout as sleep } from 'node:timers/promises'
import { callsTools, says } from '@tollgate/testing'
import { describe, expect, test } from 'vitest'
import type { ModelEvent } from '../../src/conversation/events.ts'
import type { ModelProvider } from '../../src/models/provider.ts'
import type { ModelRegistry } from '../../src/models/registry.ts'
import { answers, scripted } from '../loop/scripted-provider.ts'
import { framesOf, PATH, rawPost, type Served, startGateway, startWith } from './gateway.ts'

const messages = [{ role: 'user', content: 'Hello' }]
const body = (more: object = {}) => ({ model: 'fake:m', messages, stream: true, ...more })
const code = { tools: [{ type: 'otari_code_execution' }] }
const search = { tools: [{ type: 'otari_web_search' }] }

/** A registry with this one model in it. */
const modelsOf = (provider: ModelProvider): ModelRegistry => ({
  resolve: () => ({ provider, model: 'm', type: 'demo' }),
  selectorOf: (selector) => selector,
  seats: () => [],
  seatFault: () => undefined,
  setSeats: () => {},
  list: () => [],
  instances: () => [],
  close: async () => {},
})

/** Waits for the abort of everything below, which must not take longer than this. */
const AT_ONCE = { timeout: 1_000, interval: 10 }

async function settledAsCancelled({ brokers }: Pick<Served, 'brokers'>): Promise<void> {
  await expect.poll(() => brokers.settled.length, AT_ONCE).toBe(1)
  expect(brokers.settled).toMatchObject([{ status: 'cancelled' }])
  expect(brokers.asked.released).toEqual([])
}

describe('BR-160 a client that leaves', () => {
  const stalls = { says: [{ text: 'A long story begins here and goes on.' }], stallAfterBytes: 900 }

  test.each([
    ['in the fast lane', {}],
    ['with tools declared', search],
  ])('while the upstream streams, %s, ends the upstream', async (_lane, more) => {
    const gateway = await startGateway([stalls])
    const { socket, received } = rawPost(gateway.url, gateway.firstKey, body(more))
    await expect.poll(received).toContain('content')
    socket.destroy()
    await expect.poll(gateway.fake.aborted, AT_ONCE).toBe(1)
    await settledAsCancelled(gateway)
    expect(gateway.brokers.settled).toMatchObject([{ estimated: true }])
  })

  test.each([
    ['streamed, in the fast lane', {}],
    ['streamed, with tools', search],
    ['whole, in the fast lane', { stream: false }],
    ['whole, with tools', { stream: false, ...search }],
  ])('before the upstream answered, %s, ends the upstream', async (_lane, more) => {
    const gateway = await startGateway([says('late', { delayMs: 20_000 })])
    const { socket } = rawPost(gateway.url, gateway.firstKey, body(more))
    await expect.poll(() => gateway.fake.requests.length).toBe(1)
    socket.destroy()
    await expect.poll(gateway.fake.aborted, AT_ONCE).toBe(1)
    await settledAsCancelled(gateway)
  })

  test.each([
    ['streamed, in the fast lane', {}],
    ['streamed, with tools', search],
    ['whole, in the fast lane', { stream: false }],
  ])('with requests behind the one that is answered, %s, ends them all', async (_lane, more) => {
    const gateway = await startGateway(() => stalls)
    const { socket } = rawPost(gateway.url, gateway.firstKey, body(more), 12)
    await expect.poll(() => gateway.fake.requests.length, { timeout: 5_000 }).toBe(12)
    socket.destroy()
    await expect.poll(gateway.fake.aborted, { timeout: 5_000 }).toBe(12)
    await expect.poll(() => gateway.brokers.settled.length, { timeout: 5_000 }).toBe(12)
    expect(gateway.brokers.settled.every(({ status }) => status === 'cancelled')).toBe(true)
  })

  test.each([true, false])(
    'while code runs (stream %s) stops it, closes the sandbox, and asks no model again',
    async (stream) => {
      const gateway = await startGateway([callsTools([{ name: 'code_execution', input: { code: 'while 1: pass' } }])])
      const { brokers, fake } = gateway
      let stopped = false
      brokers.exec = (_input, signal) =>
        new Promise((_resolve, reject) =>
          signal.addEventListener('abort', () => {
            stopped = true
            reject(signal.reason)
          }),
        )
      const { socket } = rawPost(gateway.url, gateway.firstKey, body({ ...code, stream }))
      await expect.poll(() => brokers.asked.exec.length).toBe(1)
      socket.destroy()
      await expect.poll(() => stopped, AT_ONCE).toBe(true)
      await settledAsCancelled(gateway)
      await expect.poll(() => brokers.asked.closed).toEqual(['s1'])
      expect(fake.requests).toHaveLength(1)
      expect(brokers.settled).toMatchObject([{ tokens: { input: 11, output: 7 } }])
    },
  )

  test('by a reset is noticed as well', async () => {
    const gateway = await startGateway([says('late', { delayMs: 20_000 })])
    const { socket } = rawPost(gateway.url, gateway.firstKey, body())
    await expect.poll(() => gateway.fake.requests.length).toBe(1)
    socket.resetAndDestroy()
    await settledAsCancelled(gateway)
  })
})

describe('BR-160 a client that closes its own side alone', () => {
  test.each<[string, { stream?: boolean; tools?: object[] }]>([
    ['streamed, in the fast lane', {}],
    ['streamed, with tools', search],
    ['whole, in the fast lane', { stream: false }],
    ['whole, with tools', { stream: false, ...search }],
  ])('gets its answer, %s', async (_lane, more) => {
    const gateway = await startGateway([says('Here it is.', { delayMs: 400 })])
    const { socket, received } = rawPost(gateway.url, gateway.firstKey, body(more))
    socket.end()
    await expect.poll(received, { timeout: 5_000 }).toMatch(more.stream === false ? /Here it is\./ : /\[DONE\]/)
    expect(received()).toMatch(/^HTTP\/1\.1 102 Processing\r\n\r\n/)
    expect(gateway.brokers.settled).toMatchObject([{ status: 'success' }])
  })

  test('gets the rest of a stream that had begun', async () => {
    const pause = new Promise<void>((resolve) => setTimeout(resolve, 300))
    const model = scripted([
      async function* () {
        const [start, ...rest] = answers('slowly') as [ModelEvent, ...ModelEvent[]]
        yield start
        yield { type: 'open', index: 9, block: { kind: 'text' } }
        yield { type: 'delta', index: 9, text: 'first ' }
        await pause
        yield* rest
      },
    ])
    const gateway = await startWith(modelsOf(model))
    const { socket, received } = rawPost(gateway.url, gateway.firstKey, body())
    await expect.poll(received).toContain('first ')
    socket.end()
    await expect.poll(received, { timeout: 5_000 }).toContain('[DONE]')
    expect(received()).toContain('slowly')
    expect(gateway.brokers.settled).toMatchObject([{ status: 'success' }])
  })
})

describe('a slow tool or upstream', () => {
  test.each([
    ['a tool', search],
    ['the upstream', {}],
  ])('R-64 BR-025 that is %s is bridged by keep-alives between whole frames', async (which, more) => {
    const slow = async () => sleep(400)
    const model =
      which === 'a tool'
        ? [callsTools([{ name: 'web_search', input: { query: 'q' } }]), says('Found.')]
        : [says('Found.', { stallAfterBytes: 700 })]
    const gateway = await startGateway(model, { streamingKeepaliveIntervalMs: 60, requestTimeoutMs: 1_500 })
    const { brokers } = gateway
    const works = brokers.search
    brokers.search = async (input, signal) => {
      await slow()
      return works(input, signal)
    }
    const { text } = await gateway.send('POST', PATH, { key: gateway.firstKey, body: body(more) })
    const frames = framesOf(text)
    const alive = frames.filter((frame) => frame === ': keepalive')
    expect(alive.length).toBeGreaterThanOrEqual(3)
    expect(alive.length).toBeLessThan(30)
    expect(frames[0]).not.toBe(': keepalive')
    expect(frames.at(-1)).toBe('[DONE]')
  })

  test('R-64 gets none where the interval is 0', async () => {
    const gateway = await startGateway([callsTools([{ name: 'web_search', input: { query: 'q' } }]), says('Found.')], {
      streamingKeepaliveIntervalMs: 0,
    })
    gateway.brokers.search = async () => {
      await sleep(200)
      return { status: 'ok', label: 'exa:main', hits: [] }
    }
    const { text } = await gateway.send('POST', PATH, { key: gateway.firstKey, body: body(search) })
    expect(text).not.toContain(': keepalive')
  })

  test('BR-025 never stands before a status: an upstream that fails late is still a 502', async () => {
    const late = { status: 500, body: '{}', delayMs: 300 }
    const gateway = await startGateway([late], { streamingKeepaliveIntervalMs: 50 })
    const { status, text } = await gateway.send('POST', PATH, { key: gateway.firstKey, body: body(search) })
    expect([status, text.includes('keepalive')]).toEqual([502, false])
  })

  test.each([
    ['before the first byte', says('late', { delayMs: 20_000 }), 504],
    ['in the middle', { says: [{ text: 'A long story begins here.' }], stallAfterBytes: 900 }, 200],
  ])('that is slower than the request may take ends it, %s', async (_when, reply, status) => {
    for (const more of [{}, search]) {
      const gateway = await startGateway([reply], { requestTimeoutMs: 400 })
      const told = await gateway.send('POST', PATH, { key: gateway.firstKey, body: body(more) })
      expect(told.status).toBe(status)
      if (status === 200) expect(framesOf(told.text).slice(-2)).toMatchObject([{ error: {} }, '[DONE]'])
      expect(gateway.brokers.settled).toMatchObject([{ status: 'error', error: 'timeout' }])
      await expect.poll(gateway.fake.aborted).toBe(1)
    }
  })
})

test('a client that does not read holds the model back, and gets every byte when it does', async () => {
  let made = 0
  const piece = 'x'.repeat(16 * 1024)
  const pieces = 1_800 // more than all buffers on the way, less than an answer may have in all
  const model = scripted([
    async function* () {
      yield { type: 'start', id: 'x', created: 1, model: 'm' }
      yield { type: 'open', index: 0, block: { kind: 'text' } }
      for (; made < pieces; made += 1) yield { type: 'delta', index: 0, text: piece }
      yield { type: 'close', index: 0 }
      yield { type: 'finish', reason: 'stop', raw: 'stop' }
    },
  ])
  const gateway = await startWith(modelsOf(model))
  const { socket, received } = rawPost(gateway.url, gateway.firstKey, body())
  await expect.poll(received).toContain('content')
  socket.pause()
  let before = -1
  await expect
    .poll(
      () => {
        const stands = made === before
        before = made
        return stands
      },
      { timeout: 5_000, interval: 200 },
    )
    .toBe(true)
  expect(made).toBeLessThan(pieces)
  socket.resume()
  await expect.poll(() => received().length, { timeout: 15_000 }).toBeGreaterThan(pieces * piece.length)
  await expect.poll(received).toContain('[DONE]')
})

test('BR-159 a process that must end tells running streams so, and settles them', async () => {
  const stalls = { says: [{ text: 'A long story begins here.' }], stallAfterBytes: 900 }
  const gateway = await startGateway([stalls, stalls])
  const streams = [{}, search].map((more) => rawPost(gateway.url, gateway.firstKey, body(more)))
  await expect.poll(() => streams.every(({ received }) => received().includes('content'))).toBe(true)
  await gateway.drain(Date.now() + 4_000)
  for (const { received } of streams) await expect.poll(received).toContain('An error occurred during streaming')
  expect(gateway.brokers.settled).toMatchObject([
    { status: 'error', error: 'unavailable' },
    { status: 'error', error: 'unavailable' },
  ])
})

test('BR-149 P-45 whatever ends a request, its hold is settled or released exactly once', async () => {
  const broken = { status: 500, body: '{}' }
  const search429 = { status: 429, headers: { 'retry-after': '7' }, body: '{"error":{"message":"slow down"}}' }
  const endings = [
    broken,
    search429,
    { status: 200, headers: { 'content-type': 'text/html' }, body: '<html>login</html>' },
    { status: 200, headers: { 'content-type': 'text/event-stream' }, body: '' },
    {
      status: 200,
      headers: { 'content-type': 'text/event-stream' },
      body: 'data: {"error":{"code":429,"message":"x"}}\n\n',
    },
    says('fine'),
    { says: [{ text: 'half an answer' }], cutAfterBytes: 700 },
    callsTools([{ name: 'web_search', input: { query: 'q' } }]),
  ]
  const gateway = await startGateway((_body, round) => endings[round % endings.length] ?? broken)
  const { brokers, send, firstKey } = gateway
  const requests = Array.from({ length: 32 }, (_, n) => {
    const more = n % 2 ? search : {}
    const tools =
      n % 8 === 7 ? { tools: [{ type: 'otari_code_execution' }, { type: 'otari_web_search', max_uses: -1 }] } : more
    return send('POST', PATH, { key: firstKey, body: body({ ...tools, stream: n % 3 !== 0, max_tool_iterations: 2 }) })
  })
  const told = await Promise.all(requests)
  expect(told.filter(({ status }) => status === 400)).toHaveLength(4)
  const holds = brokers.asked.reserved.map(({ tenancy }) => `hold-${tenancy.request}`)
  expect(holds).toHaveLength(28)
  const ended = [...brokers.settled.map(({ hold }) => hold), ...brokers.asked.released]
  expect(ended.toSorted()).toEqual(holds.toSorted())
  expect(told.filter(({ status }) => status === 502 || status === 429).length).toBeGreaterThan(8)
})

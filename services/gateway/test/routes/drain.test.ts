import { once } from 'node:events'
import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { afterEach, beforeEach, describe, expect, inject, test } from 'vitest'
import { type Rig, startRig } from '../rig.ts'

let rig: Rig
let finish: () => void
let settled: string[]
beforeEach(async () => {
  settled = []
  const finished = new Promise<void>((resolve) => {
    finish = resolve
  })
  rig = await startRig({
    postgresUrl: inject('postgresUrl'),
    routes: ({ cut }) => [
      async (app) => {
        app.get('/quick', async () => ({ ok: true }))
        // a stream as a completion is one: it goes on until it is finished, or is told to end and says so
        app.get('/stream', async (_request, reply) => {
          reply.hijack()
          const { raw } = reply
          raw.writeHead(200, { 'content-type': 'text/event-stream' })
          raw.write('data: first\n\n')
          const end = await Promise.race([
            finished.then(() => 'last'),
            once(cut, 'abort').then(() => `error ${(cut.reason as Error).message}`),
          ])
          settled.push(end)
          raw.end(`data: ${end}\n\n`)
        })
        app.get('/stubborn', async (_request, reply) => {
          reply.hijack()
          reply.raw.writeHead(200).write('first')
        })
      },
    ],
  })
})
afterEach(() => rig.close())

/** A client that has its first bytes; `rest` is what follows, or why it broke off. */
async function open(path: string) {
  const response = await fetch(`${rig.url}/api/v1${path}`, { headers: { 'x-api-key': rig.firstKey } })
  const reader = response.body!.getReader()
  await reader.read()
  const rest = async () => {
    let text = ''
    try {
      for (;;) {
        const { done, value } = await reader.read()
        if (done) return text
        text += Buffer.from(value).toString()
      }
    } catch {
      return `${text}(broken off)`
    }
  }
  return { rest: rest() }
}

describe('BR-159 a gateway that closes with answers running', () => {
  test('BR-159 lets them finish and is then closed', async () => {
    const streams = await Promise.all([open('/stream'), open('/stream')])
    const closed = rig.drain(Date.now() + 20_000)
    await sleep(50)
    finish()
    expect(await Promise.all(streams.map(({ rest }) => rest))).toEqual(['data: last\n\n', 'data: last\n\n'])
    expect(await closed).toBe(true)
  })

  test('BR-159 tells those that would not end, before the deadline, and nothing is broken off', async () => {
    const streams = await Promise.all(Array.from({ length: 8 }, () => open('/stream')))
    const deadline = Date.now() + 1_000
    expect(await rig.drain(deadline)).toBe(true)
    expect(Date.now()).toBeLessThan(deadline)
    const told = 'data: error the gateway is shutting down\n\n'
    expect(await Promise.all(streams.map(({ rest }) => rest))).toEqual(Array.from({ length: 8 }, () => told))
    expect(settled).toHaveLength(8)
  })

  test('BR-159 breaks off what does not listen, at the deadline, and says that it had to', async () => {
    const stream = await open('/stubborn')
    const deadline = Date.now() + 400
    expect(await rig.drain(deadline)).toBe(false)
    expect(Date.now()).toBeGreaterThanOrEqual(deadline - 5)
    expect(Date.now()).toBeLessThan(deadline + 1_000)
    expect(await stream.rest).toBe('(broken off)')
  })

  test('BR-159 BR-163 answers new requests on an open connection with 503 and closes it; a new connection is refused', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    const ask = (path: string) =>
      new Promise<{ status: number | undefined; connection: unknown; body: string }>((resolve, reject) => {
        const asking = request(`${rig.url}${path}`, { agent, headers: { 'x-api-key': rig.firstKey } }, (response) => {
          let body = ''
          response.on('data', (chunk) => {
            body += chunk
          })
          response.on('end', () =>
            resolve({ status: response.statusCode, connection: response.headers.connection, body }),
          )
        })
        asking.on('error', reject).end()
      })
    const { hostname, port } = new URL(rig.url)
    const socket = connect(Number(port), hostname)
    await once(socket, 'connect')
    const got: string[] = []
    socket.on('data', (chunk) => got.push(String(chunk)))
    // half a request keeps the connection from being idle
    socket.write('GET /api/v1/quick HTTP/1.1\r\nHost: x\r\n')
    const stream = await open('/stream')
    expect(await ask('/api/v1/quick')).toMatchObject({ status: 200, connection: 'keep-alive' })
    const closed = rig.drain(Date.now() + 20_000)
    socket.write(`x-api-key: ${rig.firstKey}\r\n\r\n`)
    await once(socket, 'close')
    expect(got.join('')).toMatch(/^HTTP\/1.1 503 /)
    expect(got.join('')).toMatch(/connection: close/i)
    expect(got.join('')).toContain('{"detail":"the gateway is shutting down"}')
    await expect(ask('/api/v1/quick')).rejects.toThrow()
    finish()
    expect(await stream.rest).toBe('data: last\n\n')
    expect(await closed).toBe(true)
    agent.destroy()
  })

  test('BR-163 is closed at once with an idle connection only', async () => {
    const agent = new Agent({ keepAlive: true })
    await new Promise((resolve) =>
      request(`${rig.url}/health`, { agent }, (response) => response.resume().on('end', resolve)).end(),
    )
    const began = performance.now()
    expect(await rig.drain(Date.now() + 20_000)).toBe(true)
    expect(performance.now() - began).toBeLessThan(1_500)
    agent.destroy()
  })

  test('BR-159 survives clients that leave at any moment', async () => {
    await Promise.all(
      Array.from({ length: 60 }, async (_, n) => {
        const leave = new AbortController()
        const path = n % 3 === 0 ? '/stream' : n % 3 === 1 ? '/quick' : '/tools'
        setTimeout(() => leave.abort(), n % 10)
        await fetch(`${rig.url}/api/v1${path}`, { headers: { 'x-api-key': rig.firstKey }, signal: leave.signal })
          .then((response) => response.text())
          .catch(() => 'left')
      }),
    )
    expect((await rig.send('GET', '/api/v1/quick', { key: rig.firstKey })).status).toBe(200)
    expect(rig.lines().filter(({ level }) => level === 'error')).toEqual([])
    expect(await rig.drain(Date.now() + 20_000)).toBe(true)
  })

  test('BR-163 is closed at once with connections on which nothing was ever sent', async () => {
    const { hostname, port } = new URL(rig.url)
    const sockets = Array.from({ length: 20 }, () => connect(Number(port), hostname))
    await Promise.all(sockets.map((socket) => once(socket, 'connect')))
    // a connection that waits to be taken is reset with the listening socket
    await expect.poll(() => promisify(rig.server.getConnections.bind(rig.server))()).toBe(sockets.length)
    const closed = Promise.all(sockets.map((socket) => once(socket, 'close')))
    const began = performance.now()
    expect(await rig.drain(Date.now() + 20_000)).toBe(true)
    expect(performance.now() - began).toBeLessThan(5_000)
    await closed
  })
})

describe('GET /health', () => {
  test('is 200 to anybody while requests are served', async () => {
    expect(await rig.send('GET', '/health')).toMatchObject({ status: 200, body: { status: 'ok' } })
  })
})

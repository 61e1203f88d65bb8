import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { type Rig, startRig } from '../rig.ts'

let rig: Rig
beforeAll(async () => {
  rig = await startRig({
    postgresUrl: inject('postgresUrl'),
    routes: () => [
      async (app) => {
        app.post('/slow', async () => {
          await sleep(8_000)
          return { ok: true }
        })
        app.post('/silent-stream', async (_request, reply) => {
          reply.hijack()
          reply.raw.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: first\n\n')
          await sleep(8_000)
          reply.raw.end('data: last\n\n')
        })
      },
    ],
  })
})
afterAll(() => rig.close())

function dial(text: string): { socket: Socket; got: () => string } {
  const { hostname, port } = new URL(rig.url)
  let got = ''
  const socket = connect(Number(port), hostname, () => socket.write(text))
  socket.on('data', (chunk) => {
    got += chunk
  })
  return { socket, got: () => got }
}

describe('BR-161 the server’s own timeouts', () => {
  test('BR-161 are on the client’s side only, and an idle connection outlives a load balancer’s', () => {
    const { timeout, requestTimeout, headersTimeout, keepAliveTimeout } = rig.server
    expect(timeout).toBe(0)
    expect(headersTimeout).toBeGreaterThan(0)
    expect(requestTimeout).toBeGreaterThanOrEqual(headersTimeout)
    expect(keepAliveTimeout).toBeGreaterThan(60_000)
  })

  test('BR-161 cut a client that never ends its headers or its body, and no answer that takes long', {
    timeout: 30_000,
  }, async () => {
    // as short as they get, so that an answer of eight seconds is many times longer than any of them
    Object.assign(rig.server, { headersTimeout: 200, requestTimeout: 400, keepAliveTimeout: 300 })
    const answers = ['/slow', '/silent-stream'].map((path) =>
      rig.send('POST', `/api/v1${path}`, { key: rig.firstKey, body: {} }),
    )
    const headers = dial('GET /health HTTP/1.1\r\nHost: x\r\n')
    const body = dial(
      `POST /api/v1/slow HTTP/1.1\r\nHost: x\r\nx-api-key: ${rig.firstKey}\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{`,
    )
    await Promise.all([once(headers.socket, 'close'), once(body.socket, 'close')])
    expect(headers.got()).toMatch(/^HTTP\/1.1 408 /)
    expect(body.got()).toMatch(/^HTTP\/1.1 408 /)
    expect(body.got()).toContain('{"detail":"Request Timeout"}')
    expect(await Promise.all(answers)).toMatchObject([
      { status: 200, body: { ok: true } },
      { status: 200, text: 'data: first\n\ndata: last\n\n' },
    ])
  })
})

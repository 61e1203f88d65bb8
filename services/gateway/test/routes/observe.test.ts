import { once } from 'node:events'
import { connect } from 'node:net'
import { trace } from '@opentelemetry/api'
import { openLog, startTelemetry, type Telemetry } from '@tollgate/telemetry'
import { type OtlpReceiver, startOtlp } from '@tollgate/testing'
import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { type Rig, startRig } from '../rig.ts'

const tracer = trace.getTracer('test')
let otlp: OtlpReceiver
let telemetry: Telemetry
let rig: Rig
beforeAll(async () => {
  otlp = await startOtlp()
  const log = openLog({ service: 'gateway', level: 'silent' })
  telemetry = startTelemetry({ service: 'gateway', version: '0', log, otlpEndpoint: otlp.url })
  rig = await startRig({
    postgresUrl: inject('postgresUrl'),
    routes: () => [
      async (app) => {
        app.post('/work', async (request) => {
          await Promise.resolve()
          tracer.startSpan('work').end()
          if (request.body === 'fail') throw new Error('canary-of-a-bug')
          return { done: true }
        })
        app.get('/stream', (_request, reply) => {
          reply.hijack()
          reply.raw.writeHead(200, { 'content-type': 'text/event-stream' })
          reply.raw.write('data: first\n\n')
        })
      },
    ],
  })
})
afterAll(async () => {
  await rig.close()
  await telemetry.shutdown()
  await otlp.stop()
})

const traceId = '0af7651916cd43dd8448eb211c80319c'
const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01` }
const found = (path: string) => otlp.spans.filter((span) => span.attributes['http.route'] === path)

test('a request is a server span below the caller’s, and what it does lies below that', async () => {
  await rig.send('POST', '/v1/work?question=canary-of-a-query', { key: rig.firstKey, body: { a: 1 }, headers })
  await expect.poll(() => found('/v1/work'), { timeout: 10_000 }).toHaveLength(1)
  const [server] = found('/v1/work')
  expect(server).toMatchObject({
    name: 'POST /v1/work',
    kind: 2,
    traceId,
    parentSpanId: 'b7ad6b7169203331',
    attributes: { 'http.request.method': 'POST', 'http.response.status_code': 200, 'url.scheme': 'http' },
  })
  expect(otlp.spans.find((span) => span.name === 'work')).toMatchObject({ traceId, parentSpanId: server?.spanId })
  expect(otlp.spans.map((span) => span.text).join()).not.toMatch(/canary|gw-/)
})

test('an access line has route, status and time, and the trace; never the URL', async () => {
  const { headers: given } = await rig.send('POST', '/v1/work?question=canary-of-a-query', {
    key: rig.firstKey,
    body: {},
    headers,
  })
  const id = given.get('x-request-id')
  await expect
    .poll(() => rig.lines().find((line) => line.request === id))
    .toMatchObject({
      msg: 'answered',
      method: 'POST',
      route: '/v1/work',
      status: 200,
      ms: expect.any(Number),
      trace_id: traceId,
    })
  expect(rig.logged()).not.toMatch(/canary-of-a-query|user-agent|authorization/)
})

test('a failure of ours marks the span, a mistake of the client’s does not', async () => {
  await rig.send('POST', '/api/v1/work', { key: rig.firstKey, body: '"fail"', headers })
  await rig.send('POST', '/api/v1/work', { key: 'gw-wrong', body: {}, headers })
  await expect.poll(() => found('/api/v1/work').length, { timeout: 10_000 }).toBe(2)
  const status = (code: number) =>
    found('/api/v1/work').find((span) => span.attributes['http.response.status_code'] === code)
  expect(status(500)?.text).toContain('"code":2')
  expect(status(401)?.text).not.toContain('"code":2')
})

test('a client that leaves before its answer is whole counts as 499, and nothing stays in flight', async () => {
  const { hostname, port } = new URL(rig.url)
  const socket = connect(Number(port), hostname)
  socket.write(`GET /api/v1/stream HTTP/1.1\r\nHost: x\r\nx-api-key: ${rig.firstKey}\r\n\r\n`)
  await once(socket, 'data')
  expect(await telemetry.metricsText()).toContain('http_requests_in_flight 1')
  socket.destroy()
  await expect.poll(() => rig.lines().find((line) => line.route === '/api/v1/stream')).toMatchObject({ status: 499 })
  const text = await telemetry.metricsText()
  expect(text).toContain('http_requests_in_flight 0')
  expect(text).toMatch(/http_request_seconds_count\{method="GET",route="\/api\/v1\/stream",status="499"\} 1/)
})

test('what a client makes up does not become a label', async () => {
  for (const path of ['/made/up/1', '/made/up/2', '/api/v1/made-up-3'])
    await rig.send('GET', path, { key: rig.firstKey })
  await rig.send('PROPFIND', '/api/v1/tools', { key: rig.firstKey })
  const text = await telemetry.metricsText()
  expect(text).not.toContain('made')
  expect(text).toContain('route="unknown",status="404"')
  expect(text).not.toContain('PROPFIND')
})

import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { context, propagation, SpanKind, trace } from '@opentelemetry/api'
import { openLog, startTelemetry, tracesUrl } from '@tollgate/telemetry'
import { startOtlp } from '@tollgate/testing'
import { expect, test } from 'vitest'

const silent = openLog({ service: 'test', level: 'silent' })
const tracer = () => trace.getTracer('test')

test('spans reach the collector with their service, parent and kind', async () => {
  const otlp = await startOtlp()
  const telemetry = startTelemetry({ service: 'gateway', version: '1', log: silent, otlpEndpoint: otlp.url })
  const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'
  const from = propagation.extract(context.active(), { traceparent })
  await tracer().startActiveSpan('outer', { kind: SpanKind.SERVER }, from, async (outer) => {
    await Promise.resolve()
    tracer().startSpan('inner').end()
    outer.end()
  })
  await telemetry.shutdown()
  const outer = otlp.spans.find((span) => span.name === 'outer')
  const inner = otlp.spans.find((span) => span.name === 'inner')
  expect(outer).toMatchObject({ service: 'gateway', kind: 2, parentSpanId: 'b7ad6b7169203331' })
  expect(inner).toMatchObject({ traceId: '0af7651916cd43dd8448eb211c80319c', parentSpanId: outer?.spanId })
  await otlp.stop()
})

test('a sender that does not sample is followed, and what begins here is sampled by ratio', async () => {
  const otlp = await startOtlp()
  const telemetry = startTelemetry({ service: 's', version: '1', log: silent, otlpEndpoint: otlp.url, sampleRatio: 0 })
  const unsampled = { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00' }
  tracer().startSpan('unsampled', {}, propagation.extract(context.active(), unsampled)).end()
  const sampled = { traceparent: '00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' }
  tracer().startSpan('sampled', {}, propagation.extract(context.active(), sampled)).end()
  tracer().startSpan('root').end()
  await telemetry.shutdown()
  expect(otlp.spans.map((span) => span.name)).toEqual(['sampled'])
  await otlp.stop()
})

test('without an endpoint no span records and nothing is propagated', async () => {
  const telemetry = startTelemetry({ service: 's', version: '1', log: silent })
  const span = tracer().startSpan('nothing')
  expect(span.isRecording()).toBe(false)
  const carrier = {}
  propagation.inject(trace.setSpan(context.active(), span), carrier)
  expect(carrier).toEqual({})
  await telemetry.shutdown()
})

test('a log line carries the trace it was written in', async () => {
  const otlp = await startOtlp()
  const lines: string[] = []
  const log = openLog({ service: 's', level: 'info', write: (line) => lines.push(line) })
  const telemetry = startTelemetry({ service: 's', version: '1', log, otlpEndpoint: otlp.url })
  tracer().startActiveSpan('work', (span) => {
    log.info({ n: 1 }, 'inside')
    span.end()
  })
  log.info({ n: 2 }, 'outside')
  await telemetry.shutdown()
  const [inside, outside] = lines.map((line) => JSON.parse(line))
  expect(inside.trace_id).toBe(otlp.spans[0]?.traceId)
  expect(outside.trace_id).toBeUndefined()
  await otlp.stop()
})

test('a collector that refuses ends no process, is told once, and its headers are not quoted', async () => {
  const server = createServer((_request, response) => response.writeHead(401).end('canary-body')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const lines: string[] = []
  const log = openLog({ service: 's', level: 'info', write: (line) => lines.push(line) })
  const telemetry = startTelemetry({
    service: 's',
    version: '1',
    log,
    otlpEndpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    otlpHeaders: { authorization: 'canary-header' },
  })
  for (let i = 0; i < 600; i++) tracer().startSpan('lost').end()
  await telemetry.shutdown()
  expect(lines).toHaveLength(1)
  expect(lines.join()).not.toMatch(/canary/)
  server.close()
})

test('telemetry can be started again after it was shut down', async () => {
  for (const service of ['first', 'second']) {
    const otlp = await startOtlp()
    const telemetry = startTelemetry({ service, version: '1', log: silent, otlpEndpoint: otlp.url })
    tracer().startSpan('once').end()
    await telemetry.shutdown()
    expect(otlp.spans.map((span) => span.service)).toEqual([service])
    await otlp.stop()
  }
})

test.each([
  ['http://collector:4318', 'http://collector:4318/v1/traces'],
  ['http://collector:4318/', 'http://collector:4318/v1/traces'],
  ['http://collector:4318/base', 'http://collector:4318/base/v1/traces'],
  ['http://collector:4318/v1/traces', 'http://collector:4318/v1/traces'],
])('the endpoint %s sends traces to %s', (endpoint, url) => {
  expect(tracesUrl(endpoint)).toBe(url)
})

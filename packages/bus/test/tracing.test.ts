import { context, propagation, SpanKind, TraceFlags, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { InMemorySpanExporter, type ReadableSpan, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace'
import { Fault, topic } from '@tollgate/contracts'
import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { echo, echoBy, gate, kinds, openPair, openSystem, within } from './open-buses.ts'

const exporter = new InMemorySpanExporter()

beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  propagation.setGlobalPropagator(new W3CTraceContextPropagator())
  trace.setGlobalTracerProvider(new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] }))
})

/** The spans that a piece of work leaves. */
async function spansOf(work: () => Promise<unknown>): Promise<ReadableSpan[]> {
  exporter.reset()
  await trace.getTracer('test').startActiveSpan('a request', async (span) => {
    await work()
    span.end()
  })
  return exporter.getFinishedSpans()
}

const idOf = (span: ReadableSpan) => span.spanContext().spanId
const parentOf = (span: ReadableSpan) => span.parentSpanContext?.spanId
const named = (spans: ReadableSpan[], name: string) => spans.filter((span) => span.name === name)
const only = (spans: ReadableSpan[], name: string): ReadableSpan => {
  const found = named(spans, name)
  expect(found, name).toHaveLength(1)
  return found[0] as ReadableSpan
}

const used = topic({ subject: 'tg.v1.test.used', event: z.object({ n: z.int() }) })

describe.each(kinds)('the trace over a %s bus', (kind) => {
  test.each(['direct', 'queue'] as const)(
    'runs from the caller through a %s call to what its worker calls',
    async (by) => {
      const outer = echoBy(by)
      const inner = echoBy(by === 'direct' ? 'queue' : 'direct')
      const spans = await spansOf(async () => {
        const { worker, client } = await openPair(kind)
        await worker.serve(inner, echo)
        await worker.serve(outer, ({ text }, { deadline }) => worker.call(inner, { text }, { deadline }))
        await client.call(outer, { text: 'x' }, within(5_000))
      })
      const path = [
        'a request',
        `call ${outer.subject}`,
        `serve ${outer.subject}`,
        `call ${inner.subject}`,
        `serve ${inner.subject}`,
      ]
      const chain = path.map((name) => only(spans, name))
      expect(chain.slice(1).map(parentOf)).toEqual(chain.slice(0, -1).map(idOf))
      expect(chain.slice(1).map(({ kind }) => kind)).toEqual([
        SpanKind.CLIENT,
        SpanKind.SERVER,
        SpanKind.CLIENT,
        SpanKind.SERVER,
      ])
      expect(new Set(chain.map((span) => span.instrumentationScope.name))).toEqual(new Set(['test', '@tollgate/bus']))
    },
  )

  test('says on both ends what a call failed with, and on the far one why', async () => {
    const contract = echoBy('direct')
    const spans = await spansOf(async () => {
      const { worker, client } = await openPair(kind)
      await worker.serve(contract, async () => {
        throw new Fault('upstream', 'the engine failed', { cause: new Error('the real reason') })
      })
      await client.call(contract, { text: 'x' }, within(5_000)).catch(() => undefined)
    })
    const [call, serve] = [only(spans, `call ${contract.subject}`), only(spans, `serve ${contract.subject}`)]
    expect(call.attributes['error.type']).toBe('upstream')
    expect(serve.attributes['error.type']).toBe('upstream')
    expect(JSON.stringify(serve.events)).toContain('the real reason')
    expect(JSON.stringify([call.events, call.attributes, call.status])).not.toContain('the real reason')
  })

  test('goes on from an event to whoever takes it', async () => {
    const spans = await spansOf(async () => {
      const join = openSystem(kind)
      const consumer = await join('billing')
      const sender = await join('gateway')
      const seen: number[] = []
      await consumer.consume(
        used,
        { durable: 'billing' },
        async (events) => void seen.push(...events.map(({ n }) => n)),
      )
      await sender.record(used, 'one', { n: 1 }, within(5_000))
      await expect.poll(() => seen).toEqual([1])
    })
    const [record, consume] = [only(spans, `record ${used.subject}`), only(spans, `consume ${used.subject}`)]
    expect(parentOf(consume)).toBe(idOf(record))
    expect([record.kind, consume.kind]).toEqual([SpanKind.PRODUCER, SpanKind.CONSUMER])
    expect(parentOf(record)).toBe(idOf(only(spans, 'a request')))
  })

  test('of a batch points to each of the traces that its events came from', async () => {
    const spans = await spansOf(async () => {
      const join = openSystem(kind)
      const consumer = await join('billing')
      const sender = await join('gateway')
      const open = gate()
      const sizes: number[] = []
      await consumer.consume(used, { durable: 'billing' }, async (events) => {
        sizes.push(events.length)
        await open.promise
      })
      const first = sender.record(used, 'first', { n: 0 }, within(5_000))
      await expect.poll(() => sizes).toEqual([1])
      const rest = [1, 2, 3].map((n) => sender.record(used, `${n}`, { n }, within(5_000)))
      if (kind === 'nats') await Promise.all(rest)
      open.resolve()
      await Promise.all([first, ...rest])
      await expect.poll(() => sizes.reduce((sum, size) => sum + size, 0)).toBe(4)
    })
    const records = named(spans, `record ${used.subject}`).map(idOf)
    const batches = named(spans, `consume ${used.subject}`)
    expect(records).toHaveLength(4)
    for (const id of records) {
      const pointing = batches.filter(
        (batch) => parentOf(batch) === id || batch.links.some((link) => link.context.spanId === id),
      )
      expect(pointing).toHaveLength(1)
    }
  })

  test.each(['direct', 'queue'] as const)('that nobody keeps stays one trace through a %s call', async (by) => {
    const contract = echoBy(by)
    exporter.reset()
    const { worker, client } = await openPair(kind)
    const inside: unknown[] = []
    await worker.serve(contract, async (input) => {
      inside.push(trace.getActiveSpan()?.spanContext())
      return echo(input)
    })
    const unkept = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: TraceFlags.NONE }
    await context.with(trace.setSpanContext(context.active(), unkept), () =>
      client.call(contract, { text: 'x' }, within(5_000)),
    )
    expect(inside).toMatchObject([{ traceId: unkept.traceId, traceFlags: TraceFlags.NONE }])
    expect(exporter.getFinishedSpans()).toEqual([])
  })
})

import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { z } from 'zod'

export interface ReceivedSpan {
  service: string
  scope: string
  name: string
  /** As OTLP numbers it: 1 internal, 2 server, 3 client, 4 producer, 5 consumer. */
  kind: number
  traceId: string
  spanId: string
  parentSpanId: string | undefined
  attributes: Record<string, unknown>
  events: { name: string; attributes: Record<string, unknown> }[]
  /** The traces its links point to. */
  linkedTraceIds: string[]
  /** Everything the span says but ids and times, as text: for tests that nothing secret is in it. */
  text: string
}

export interface OtlpReceiver {
  /** Where an exporter of traces is pointed at. */
  url: string
  spans: ReceivedSpan[]
  stop(): Promise<void>
}

const value = z.looseObject({ stringValue: z.string().optional(), intValue: z.coerce.number().optional() })
const attributes = z.array(z.object({ key: z.string(), value })).default([])
const body = z.object({
  resourceSpans: z.array(
    z.object({
      resource: z.object({ attributes }),
      scopeSpans: z.array(
        z.object({
          scope: z.object({ name: z.string().default('') }).prefault({}),
          spans: z.array(
            z.looseObject({
              name: z.string(),
              kind: z.int().default(0),
              traceId: z.string().regex(/^[0-9a-f]{32}$/),
              spanId: z.string().regex(/^[0-9a-f]{16}$/),
              parentSpanId: z.string().optional(),
              attributes,
              events: z.array(z.looseObject({ name: z.string(), attributes })).default([]),
              links: z.array(z.looseObject({ traceId: z.string() })).default([]),
            }),
          ),
        }),
      ),
    }),
  ),
})
type ExportedBody = z.output<typeof body>

/** A real OTLP/HTTP receiver for the JSON encoding: what arrives here is what a tracing backend would have been sent. */
export async function startOtlp(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = []
  const server = createServer((request, response) => {
    receive(request).then(
      (received) => {
        spans.push(...received)
        response.setHeader('content-type', 'application/json').end('{}')
      },
      (error: Error) => response.writeHead(400).end(error.message),
    )
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/v1/traces`,
    spans,
    async stop() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function receive(request: IncomingMessage): Promise<ReceivedSpan[]> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return flatten(body.parse(JSON.parse(Buffer.concat(chunks).toString())))
}

const flatten = ({ resourceSpans }: ExportedBody): ReceivedSpan[] =>
  resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ scope, spans }) =>
      spans.map((span) => ({
        service: String(plain(resource.attributes)['service.name'] ?? ''),
        scope: scope.name,
        name: span.name,
        kind: span.kind,
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId || undefined,
        attributes: plain(span.attributes),
        events: span.events.map((event) => ({ name: event.name, attributes: plain(event.attributes) })),
        linkedTraceIds: span.links.map(({ traceId }) => traceId),
        text: JSON.stringify(span, said),
      })),
    ),
  )

const unsaid = new Set(['traceId', 'spanId', 'parentSpanId', 'startTimeUnixNano', 'endTimeUnixNano', 'timeUnixNano'])
/** Ids and times are left out: their digits could spell anything. */
const said = (name: string, member: unknown): unknown => (unsaid.has(name) ? undefined : member)

const plain = (list: z.output<typeof attributes>): Record<string, unknown> =>
  Object.fromEntries(
    list.map(({ key, value }) => [key, value.stringValue ?? value.intValue ?? Object.values(value)[0]]),
  )

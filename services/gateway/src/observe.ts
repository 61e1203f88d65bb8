import { context, propagation, type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { histogram, type Log, observe, upTo } from '@tollgate/telemetry'
import type { FastifyInstance, FastifyRequest } from 'fastify'

const seconds = histogram('http_request_seconds', 'HTTP requests answered, from first byte to last', {
  method: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'],
  route: upTo(200),
  status: upTo(60),
})

const tracer = trace.getTracer('@tollgate/gateway')

/**
 * A server span, an access line and a measurement for each request, whatever way it ends. A line has the route's pattern,
 * never its URL, since URLs and headers carry secrets; a client that left before its answer was whole counts as 499.
 */
export function observeRequests(app: FastifyInstance, log: Log): () => void {
  let inFlight = 0
  const stop = observe('http_requests_in_flight', 'HTTP requests being answered', {}, () => [
    { value: inFlight, values: {} },
  ])

  app.addHook('onRequest', (request, reply, done) => {
    const began = performance.now()
    const route = request.routeOptions.url ?? 'unknown'
    const span = startSpan(request, route)
    inFlight += 1
    reply.raw.once('close', () => {
      inFlight -= 1
      const ms = performance.now() - began
      const status = reply.raw.writableFinished ? reply.raw.statusCode : 499
      seconds.record(ms / 1000, { method: request.method, route, status: String(status) })
      const line = { request: request.id, method: request.method, route, status, ms: Math.round(ms * 10) / 10 }
      if (!span) return log.info(line, 'answered')
      endSpan(span, status)
      context.with(trace.setSpan(context.active(), span), () => log.info(line, 'answered'))
    })
    reply.header('x-request-id', request.id)
    if (span) context.with(trace.setSpan(context.active(), span), done)
    else done()
  })
  return stop
}

/** Undefined when nothing is traced, so that nothing is made for it either. */
function startSpan(request: FastifyRequest, route: string): Span | undefined {
  const from = propagation.extract(context.active(), request.headers)
  const span = tracer.startSpan(
    `${request.method} ${route}`,
    { kind: SpanKind.SERVER, attributes: attributes(request, route) },
    from,
  )
  return trace.isSpanContextValid(span.spanContext()) ? span : undefined
}

/** OpenTelemetry's HTTP server attributes, without those that would hold a URL, a header or an address. */
const attributes = (request: FastifyRequest, route: string) => ({
  'http.request.method': request.method,
  'http.route': route,
  'url.scheme': request.protocol,
  'network.protocol.version': request.raw.httpVersion,
  'tollgate.request': request.id,
})

function endSpan(span: Span, status: number): void {
  span.setAttribute('http.response.status_code', status)
  // a client's mistake is no error of the server's (HTTP semantic conventions)
  if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR })
  span.end()
}

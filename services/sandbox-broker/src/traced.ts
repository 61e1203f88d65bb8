import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { histogram } from '@tollgate/telemetry'

const tracer = trace.getTracer('@tollgate/sandbox-broker')

const callSeconds = histogram('sandbox_call_seconds', 'Calls to the sandbox provider', {
  operation: ['create', 'exec', 'destroy', 'put', 'get', 'list'],
  outcome: ['ok', 'unreachable', 'lost', 'timeout', 'busy', 'refused', 'cancelled'],
})

/** A span and a measurement of one call to a provider: how it ended, never the code or what came of it. */
export async function traced<R extends { status: 'ok' } | { status: 'failed'; reason: string }>(
  operation: string,
  provider: string,
  call: () => Promise<R>,
): Promise<R> {
  const began = performance.now()
  const attributes = { 'sandbox.provider': provider }
  return tracer.startActiveSpan(`sandbox ${operation}`, { kind: SpanKind.CLIENT, attributes }, async (span) => {
    let outcome = 'cancelled'
    try {
      const result = await call()
      outcome = result.status === 'ok' ? 'ok' : result.reason
      return result
    } finally {
      span.setAttribute('sandbox.outcome', outcome)
      if (outcome !== 'ok') span.setStatus({ code: SpanStatusCode.ERROR })
      span.end()
      callSeconds.record((performance.now() - began) / 1_000, { operation, outcome })
    }
  })
}

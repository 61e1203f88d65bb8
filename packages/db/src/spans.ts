import { type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { codeOf } from './faults.ts'

const tracer = trace.getTracer('@tollgate/db')
const LONGEST_TEXT = 2_000

/**
 * A span around a statement when somebody records what it is part of; a statement of no trace makes none. It shows the
 * text with its placeholders and never a parameter.
 */
export async function inQuerySpan<R>(sql: string, name: string | undefined, run: () => Promise<R>): Promise<R> {
  if (!trace.getActiveSpan()?.isRecording()) return run()
  const operation = (/^\s*(\w+)/.exec(sql)?.[1] ?? 'query').toUpperCase()
  const span = tracer.startSpan(name ?? operation, {
    kind: SpanKind.CLIENT,
    attributes: {
      'db.system.name': 'postgresql',
      'db.operation.name': operation,
      'db.query.text': sql.slice(0, LONGEST_TEXT),
    },
  })
  try {
    return await run()
  } catch (error) {
    fail(span, error)
    throw error
  } finally {
    span.end()
  }
}

/** The error's kind alone: its message may quote the values of a row. */
function fail(span: Span, error: unknown): void {
  const code = codeOf(error)
  span.setAttribute('error.type', code ?? (error instanceof Error ? error.name : 'unknown'))
  if (code !== undefined) span.setAttribute('db.response.status_code', code)
  span.setStatus({ code: SpanStatusCode.ERROR })
}

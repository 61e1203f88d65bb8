import { trace } from '@opentelemetry/api'
import { pino } from 'pino'

/** A JSON log of events; each line carries the trace it belongs to. */
export type Log = Pick<pino.Logger, 'info' | 'warn' | 'error' | 'debug'> & {
  child(bindings: Record<string, unknown>): Log
}

export interface LogOptions {
  service: string
  level: 'debug' | 'info' | 'warn' | 'error' | 'silent'
  /** Where lines go; stdout when absent. */
  write?: (line: string) => void
}

const STDOUT = 1

/**
 * Opens the log on stdout. Nothing secret is ever passed to it, and what might carry one by accident (an error's cause
 * from an HTTP client, say) is reduced to name, message and stack by the `err` serialiser.
 */
export function openLog({ service, level, write }: LogOptions): Log {
  const options: pino.LoggerOptions = {
    level,
    base: { service },
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    serializers: { err: describeError },
    mixin: traceIds,
  }
  // a line is written before the next is made: at an exit none is lost, and none comes after later ones
  return pino(options, write ? { write } : pino.destination({ dest: STDOUT, sync: true }))
}

function traceIds(): object {
  const span = trace.getActiveSpan()?.spanContext()
  return span ? { trace_id: span.traceId, span_id: span.spanId } : {}
}

/** Name, message, stack and causes; never an error's own members, where clients keep headers and bodies. */
export function describeError(thrown: unknown, depth = 0): unknown {
  if (!(thrown instanceof Error)) return { message: 'something was thrown that is not an error' }
  return {
    type: thrown.name,
    message: thrown.message,
    stack: thrown.stack,
    ...(thrown.cause !== undefined && depth < 3 ? { cause: describeError(thrown.cause, depth + 1) } : {}),
  }
}

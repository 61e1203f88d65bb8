import { SpanStatusCode, trace } from '@opentelemetry/api'
import type { ExtractedResult } from './extract/job.ts'
import type { ExtractPool, PoolJob } from './extract/pool.ts'
import { extractSeconds } from './metrics.ts'

const tracer = trace.getTracer('@tollgate/fetch-worker')

/** Reads a body in the pool; the span tells its size, kind and failure, and nothing of what it says. */
export function extractInSpan(pool: ExtractPool, job: PoolJob, signal: AbortSignal): Promise<ExtractedResult> {
  return tracer.startActiveSpan('extract', { attributes: { 'extract.bytes': job.bytes.length } }, async (span) => {
    const started = performance.now()
    try {
      const result = await pool.run(job, signal)
      const kind = result.status === 'ok' ? result.kind : 'failed'
      span.setAttribute('extract.kind', kind)
      if (result.status === 'failed') span.setStatus({ code: SpanStatusCode.ERROR, message: result.failure })
      extractSeconds.record((performance.now() - started) / 1_000, { kind })
      return result
    } finally {
      span.end()
    }
  })
}

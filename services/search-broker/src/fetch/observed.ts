import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import type { TrustedClient } from '@tollgate/http'
import type { Log } from '@tollgate/telemetry'
import type { AskOptions } from '../ask.ts'
import { countFetch, type FetchOutcome } from '../metrics.ts'
import { type FetchReply, type FetchWanted, fetchBy } from './fetch.ts'
import type { FetchInstance } from './instances.ts'

const tracer = trace.getTracer('@tollgate/search-broker')

/** Fetches by an instance, for a model or for a search alike. */
export type FetchPage = (
  instance: FetchInstance,
  wanted: FetchWanted & { request: string },
  limits: AskOptions,
) => Promise<FetchReply>

/** With a span, a count and a line in the log, none of which tells the address of the page or of the provider (BR-122). */
export const openFetching =
  (client: TrustedClient, log: Log): FetchPage =>
  (instance, { request, ...wanted }, limits) =>
    tracer.startActiveSpan(`fetch ${instance.provider.id}`, { kind: SpanKind.CLIENT }, async (span) => {
      const started = performance.now()
      let outcome: FetchOutcome = 'internal'
      span.setAttribute('fetch.label', instance.label)
      try {
        const reply = await fetchBy(instance, wanted, limits, client)
        outcome = reply.status === 'failed' ? reply.tag : reply.status
        if (reply.status === 'failed') {
          const { label, tag, httpStatus } = reply
          log.warn({ request, label, tag, httpStatus }, 'fetch failed')
          span.setStatus({ code: SpanStatusCode.ERROR, message: tag })
          span.setAttribute('error.type', tag)
          if (httpStatus !== undefined) span.setAttribute('http.response.status_code', httpStatus)
        }
        return reply
      } catch (thrown) {
        if (limits.signal.aborted) outcome = 'cancelled'
        span.setStatus({ code: SpanStatusCode.ERROR })
        throw thrown
      } finally {
        countFetch(instance.provider.id, outcome, performance.now() - started)
        span.end()
      }
    })

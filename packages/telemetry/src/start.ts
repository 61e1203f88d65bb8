import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import { context, type DiagLogger, DiagLogLevel, diag, metrics, propagation, trace } from '@opentelemetry/api'
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks'
import { W3CTraceContextPropagator } from '@opentelemetry/core'
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus'
import { type Resource, resourceFromAttributes } from '@opentelemetry/resources'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import { BatchSpanProcessor, ParentBasedSampler, TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace'
import type { Log } from './log.ts'
import { bindMeter } from './metrics.ts'
import { watchProcess } from './process.ts'

export interface TelemetryOptions {
  service: string
  version: string
  log: Log
  /** Where traces go, as OTEL_EXPORTER_OTLP_ENDPOINT has it (`/v1/traces` is added). Absent: no span is ever made. */
  otlpEndpoint?: string
  otlpHeaders?: Record<string, string>
  /** Share of the traces begun here that are kept; one begun elsewhere is kept as its sender says. */
  sampleRatio?: number
  metrics?: boolean
}

export interface Telemetry {
  /** Everything counted so far, in Prometheus' text format. */
  metricsText(): Promise<string>
  /** Sends what is left, within `EXPORT_MS`. */
  shutdown(): Promise<void>
}

/** One export of spans, its retries included. Spans that wait meanwhile are at most 2,048; newer ones are dropped. */
const EXPORT_MS = 5_000

/** Sets the process's tracer, meter and W3C propagation. Called once, before the parts that make spans or count. */
export function startTelemetry(options: TelemetryOptions): Telemetry {
  const resource = resourceFromAttributes({
    'service.name': options.service,
    'service.version': options.version,
    'service.instance.id': randomUUID(),
  })
  diag.setLogger(quietly(options.log), { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true })
  const tracing = options.otlpEndpoint === undefined ? undefined : startTracing(options.otlpEndpoint, resource, options)
  const metering = options.metrics === false ? undefined : startMetrics(resource)
  return {
    metricsText: async () => metering?.text() ?? '',
    async shutdown() {
      await Promise.all([tracing?.shutdown(), metering?.shutdown()])
      diag.disable()
    },
  }
}

function startTracing(endpoint: string, resource: Resource, { otlpHeaders, sampleRatio = 1 }: TelemetryOptions) {
  // they bring exporters of every kind: only a process that traces loads them
  const load = createRequire(import.meta.url)
  const { NodeSDK } = load('@opentelemetry/sdk-node') as typeof import('@opentelemetry/sdk-node')
  const { OTLPTraceExporter } = load(
    '@opentelemetry/exporter-trace-otlp-http',
  ) as typeof import('@opentelemetry/exporter-trace-otlp-http')
  const exporter = new OTLPTraceExporter({
    url: tracesUrl(endpoint),
    timeoutMillis: EXPORT_MS,
    ...(otlpHeaders ? { headers: otlpHeaders } : {}),
  })
  const sdk = new NodeSDK({
    resource,
    autoDetectResources: false,
    instrumentations: [],
    contextManager: new AsyncLocalStorageContextManager(),
    textMapPropagator: new W3CTraceContextPropagator(),
    sampler: new ParentBasedSampler({ root: new TraceIdRatioBasedSampler(sampleRatio) }),
    spanProcessors: [new BatchSpanProcessor({ exporter, exportTimeoutMillis: EXPORT_MS })],
    spanLimits: { attributeCountLimit: 64, attributeValueLengthLimit: 1_024, eventCountLimit: 64 },
    // metrics are read by Prometheus and logs go to stdout: nothing of either is exported from here
    metricReaders: [],
    logRecordProcessors: [],
  })
  sdk.start()
  return {
    async shutdown() {
      // spans that cannot be delivered are no reason to fail a process that is ending
      await sdk.shutdown().catch((error: unknown) => diag.warn(String(error)))
      trace.disable()
      context.disable()
      propagation.disable()
    },
  }
}

function startMetrics(resource: Resource) {
  const reader = new PrometheusExporter({ preventServerStart: true })
  const serializer = new PrometheusSerializer('', false, undefined, true, true)
  const provider = new MeterProvider({ resource, readers: [reader] })
  metrics.setGlobalMeterProvider(provider)
  bindMeter(provider.getMeter('@tollgate/telemetry'))
  const unwatch = watchProcess()
  return {
    async text() {
      const { resourceMetrics, errors } = await reader.collect()
      for (const error of errors) diag.error('a metric could not be read', error)
      return serializer.serialize(resourceMetrics)
    },
    async shutdown() {
      unwatch()
      bindMeter(undefined)
      await provider.shutdown()
      metrics.disable()
    },
  }
}

export function tracesUrl(endpoint: string): string {
  const trimmed = endpoint.replace(/\/+$/, '')
  return trimmed.endsWith('/v1/traces') ? trimmed : `${trimmed}/v1/traces`
}

/** A collector that is down says so once a minute, not at each export; its words may quote headers and stay out. */
function quietly(log: Log): DiagLogger {
  let saidAt = Number.NEGATIVE_INFINITY
  const warn = (message: string) => {
    if (performance.now() - saidAt < 60_000) return
    saidAt = performance.now()
    log.warn({ problem: firstWords(message) }, 'telemetry is not fully delivered')
  }
  return { error: warn, warn, info() {}, debug() {}, verbose() {} }
}

/** The SDK reports most errors as one JSON text: its message is kept, its stack and data are not. */
function firstWords(message: string): string {
  const quoted = /"message":"([^"]{1,200})/.exec(message)
  return quoted?.[1] ?? message.slice(0, 200)
}

import { type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { Fault, type TokenCounts } from '@tollgate/contracts'
import { counter, histogram, upTo } from '@tollgate/telemetry'
import type { ModelEvent } from '../conversation/events.ts'
import type { ModelRequest } from '../conversation/turn.ts'
import type { ModelProvider } from './provider.ts'
import { asUncarried } from './uncarried.ts'

const labels = { provider: upTo(50), outcome: upTo(20) }
const calls = counter('model_calls_total', 'Calls of model providers by outcome', labels)
const seconds = histogram('model_seconds', 'Calls of model providers, from request to last byte', labels)

const tracer = trace.getTracer('@tollgate/gateway')

/** A provider whose every call is a span, a count and a measurement; nothing of what was said is recorded. */
export function observed(provider: ModelProvider): ModelProvider {
  const { forward, countTokens, relay, listModels, files } = provider
  return {
    name: provider.name,
    wire: provider.wire,
    async ask(request, limits, tell) {
      const call = begin(provider, request)
      const leave = (thrown: unknown): never => {
        call.end('abandoned')
        throw thrown
      }
      const heard = (event: ModelEvent) => {
        call.hear(event)
        try {
          return tell(event)?.catch(leave)
        } catch (thrown) {
          return leave(thrown)
        }
      }
      try {
        await provider.ask(request, limits, heard)
        call.end('ok')
      } catch (error) {
        call.end(Fault.from(error).failure)
        throw asUncarried(error)
      }
    },
    ...(forward && {
      async forward(request, sink, limits) {
        const call = begin(provider, request)
        try {
          const forwarded = await forward(request, sink, limits)
          call.count(forwarded.tokens)
          call.end(forwarded.fault?.failure ?? 'ok')
          return forwarded
        } catch (error) {
          call.end(Fault.from(error).failure)
          throw asUncarried(error)
        }
      },
    }),
    ...(countTokens && {
      async countTokens(request, limits) {
        const call = begin(provider, request, 'count_tokens')
        try {
          const counted = await countTokens(request, limits)
          call.end('ok')
          return counted
        } catch (error) {
          call.end(Fault.from(error).failure)
          throw error
        }
      },
    }),
    ...(relay && {
      async relay(path, json, limits) {
        const call = start(provider.name, undefined, path.slice(1))
        try {
          const bytes = await relay(path, json, limits)
          call.end('ok')
          return bytes
        } catch (error) {
          call.end(Fault.from(error).failure)
          throw error
        }
      },
    }),
    ...(listModels && { listModels }),
    ...(files && { files }),
    close: () => provider.close(),
  }
}

const begin = (provider: ModelProvider, { model }: ModelRequest, operation = 'chat') =>
  start(provider.name, model, operation)

function start(provider: string, model: string | undefined, operation: string) {
  const began = performance.now()
  const span = tracer.startSpan(`${operation} ${provider}`, {
    kind: SpanKind.CLIENT,
    attributes: {
      'gen_ai.operation.name': operation,
      'gen_ai.provider.name': provider,
      ...(model !== undefined && { 'gen_ai.request.model': model }),
    },
  })
  let ended = false
  const count = (tokens: TokenCounts | undefined) => tokens && span.setAttributes(usageAttributes(tokens))
  return {
    count,
    hear(event: ModelEvent): void {
      if (event.type === 'start' && event.model !== undefined) span.setAttribute('gen_ai.response.model', event.model)
      if (event.type === 'usage') count(event.tokens)
      if (event.type === 'finish') span.setAttribute('gen_ai.response.finish_reasons', [event.reason])
    },
    /** The first word on how it ended holds. */
    end(outcome: string): void {
      if (ended) return
      ended = true
      const values = { provider, outcome }
      calls.add(1, values)
      seconds.record((performance.now() - began) / 1000, values)
      finish(span, outcome)
    },
  }
}

/** The semantic conventions count cached tokens inside the input. */
const usageAttributes = ({ input, output, cacheRead, cacheWrite }: TokenCounts) => ({
  'gen_ai.usage.input_tokens': input + cacheRead + cacheWrite,
  'gen_ai.usage.output_tokens': output,
  'gen_ai.usage.cache_read.input_tokens': cacheRead,
})

function finish(span: Span, outcome: string): void {
  if (outcome !== 'ok' && outcome !== 'abandoned') {
    span.setAttribute('error.type', outcome)
    span.setStatus({ code: SpanStatusCode.ERROR })
  }
  span.end()
}

import {
  type Attributes,
  type Context,
  context,
  isSpanContextValid,
  type Link,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  type TextMapGetter,
  type TextMapSetter,
  trace,
} from '@opentelemetry/api'
import { Fault } from '@tollgate/contracts'

const tracer = trace.getTracer('@tollgate/bus')

/** Headers as the bus keeps them before they are written: a name and its values. */
export type Carrier = Record<string, string[]>

const setter: TextMapSetter<Carrier> = {
  set(carrier, name, value) {
    carrier[name] = [value]
  },
}
const getter: TextMapGetter<Carrier> = {
  get: (carrier, name) => carrier[name]?.[0],
  keys: (carrier) => Object.keys(carrier),
}

/** A step of work with its span, which is ended with what the work threw. */
export interface Step {
  context: Context
  end(thrown?: unknown): void
}

type StepKind = 'call' | 'serve' | 'record' | 'consume'
const spanKinds: Record<StepKind, SpanKind> = {
  call: SpanKind.CLIENT,
  serve: SpanKind.SERVER,
  record: SpanKind.PRODUCER,
  consume: SpanKind.CONSUMER,
}

export function startStep(
  kind: StepKind,
  subject: string,
  parent: Context = context.active(),
  links: Link[] = [],
): Step {
  const span = tracer.startSpan(`${kind} ${subject}`, { kind: spanKinds[kind], links }, parent)
  // a span that is not recorded still has its place in the trace, and whoever is called must learn of it
  if (!isSpanContextValid(span.spanContext())) return untraced(parent)
  if (span.isRecording()) span.setAttributes(attributesOf(subject))
  return { context: trace.setSpan(parent, span), end: (thrown) => endSpan(span, thrown) }
}

const untraced = (parent: Context): Step => ({ context: parent, end: () => undefined })

const attributesOf = (subject: string): Attributes => ({ 'messaging.destination.name': subject })

function endSpan(span: Span, thrown: unknown): void {
  if (thrown !== undefined) {
    const { failure, message } = Fault.from(thrown)
    span.setAttribute('error.type', failure)
    span.setStatus({ code: SpanStatusCode.ERROR, message })
    // what a Fault says is in the status already; what is behind it is what helps
    const behind = thrown instanceof Fault && thrown.cause !== undefined ? thrown.cause : thrown
    if (behind instanceof Error) span.recordException(behind)
  }
  span.end()
}

/** Writes where in which trace we are, if we are in any. */
export function writeTrace(from: Context, carrier: Carrier): void {
  const here = trace.getSpanContext(from)
  if (here && isSpanContextValid(here)) propagation.inject(from, carrier, setter)
}

/** The sender's place in its trace; ours when the message says nothing. */
export const readTrace = (carrier: Carrier): Context => propagation.extract(context.active(), carrier, getter)

/** For a batch that came from several traces: it belongs to none of them, but points to all. */
export const linksTo = (contexts: Context[]): Link[] =>
  contexts.flatMap((from) => {
    const there = trace.getSpanContext(from)
    return there ? [{ context: there }] : []
  })

export const inContext = <T>(step: Step, work: () => T): T => context.with(step.context, work)

import type { Attributes, Meter, Counter as OtelCounter, Histogram as OtelHistogram } from '@opentelemetry/api'

/**
 * A label is either a closed list, or `upTo(n)`: the first n values seen keep their name. Anything beyond is `other`, so
 * that no caller can make a metric grow (names of models, tools and hosts come from outside).
 */
export type Label = readonly string[] | Capped
interface Capped {
  seen: Set<string>
  most: number
}
export const upTo = (most: number): Capped => ({ seen: new Set(), most })

export type Labels = Record<string, Label>
type Values<L extends Labels> = {
  [name in keyof L]: L[name] extends readonly (infer V extends string)[] ? V | (string & {}) : string
}

export interface Counter<L extends Labels> {
  add(count: number, values: Values<L>): void
}
export interface Histogram<L extends Labels> {
  record(value: number, values: Values<L>): void
}

/** Counts up. May be made at import: it starts counting when telemetry starts. */
export function counter<L extends Labels>(name: string, description: string, labels: L): Counter<L> {
  let bound: OtelCounter | undefined
  whenMetering((meter) => {
    bound = meter?.createCounter(name, { description })
  })
  return {
    add: (count, values) => bound?.add(count, closed(labels, values)),
  }
}

/** Seconds, from a request answered out of memory to one with a long tool loop. */
export const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300]

export function histogram<L extends Labels>(
  name: string,
  description: string,
  labels: L,
  boundaries: number[] = SECONDS,
): Histogram<L> {
  let bound: OtelHistogram | undefined
  whenMetering((meter) => {
    bound = meter?.createHistogram(name, { description, advice: { explicitBucketBoundaries: boundaries } })
  })
  return {
    record: (value, values) => bound?.record(value, closed(labels, values)),
  }
}

export interface Reading<L extends Labels> {
  value: number
  values: Values<L>
}

/**
 * Reads what stands at the moment a scrape asks. `kind: 'total'` for what only grows. The returned function ends it: a
 * service that is closed is no longer read.
 */
export function observe<L extends Labels>(
  name: string,
  description: string,
  labels: L,
  read: () => Reading<L>[],
  kind: 'gauge' | 'total' = 'gauge',
): () => void {
  let stop: (() => void) | undefined
  const forget = whenMetering((meter) => {
    const instrument =
      kind === 'gauge'
        ? meter?.createObservableGauge(name, { description })
        : meter?.createObservableCounter(name, { description })
    const callback = (result: { observe(value: number, attributes?: Attributes): void }) => {
      for (const { value, values } of read()) result.observe(value, closed(labels, values))
    }
    instrument?.addCallback(callback)
    stop = () => instrument?.removeCallback(callback)
  })
  return () => {
    stop?.()
    forget()
  }
}

let current: Meter | undefined
const binders = new Set<(meter: Meter | undefined) => void>()

/** Every instrument, those of the future too, counts into this meter from now on; undefined stops them all. */
export function bindMeter(meter: Meter | undefined): void {
  current = meter
  for (const bind of binders) bind(meter)
}

function whenMetering(bind: (meter: Meter | undefined) => void): () => void {
  binders.add(bind)
  bind(current)
  return () => binders.delete(bind)
}

function closed<L extends Labels>(labels: L, values: Values<L>): Attributes {
  const attributes: Attributes = {}
  for (const name in labels) attributes[name] = allowed(labels[name] as Label, values[name])
  return attributes
}

function allowed(label: Label, value: string): string {
  if (!('most' in label)) return label.includes(value) ? value : 'other'
  if (label.seen.has(value)) return value
  if (label.seen.size >= label.most) return 'other'
  label.seen.add(value)
  return value
}

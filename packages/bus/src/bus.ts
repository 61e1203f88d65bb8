import type { Broadcast, Rpc, Topic } from '@tollgate/contracts'
import type { z } from 'zod'
import type { Objects, ObjectsOptions } from './objects.ts'

export interface CallOptions<E = unknown> {
  /** Epoch milliseconds; the call ends by then with `timeout`, and the worker's signal fires. */
  deadline: number
  /** Aborting it ends the call with `cancelled` and stops the worker. */
  signal?: AbortSignal
  /** Called for each activity event of the worker, in order; an event of an attempt that was taken over may be seen again. */
  onEvent?: (event: E) => void
}

export interface CallContext<E = unknown> {
  /** Fires when the caller left, when the deadline passed, and when the drain limit is reached. */
  signal: AbortSignal
  /** Epoch milliseconds by which the caller stops listening: pass it on, never start a new clock. */
  deadline: number
  /** 1 for the first delivery, more after a takeover. */
  attempt: number
  emit(event: E): void
}

export type Handler<R extends Rpc> = (
  input: z.output<R['input']>,
  context: CallContext<R extends Rpc<z.ZodType, z.ZodType, infer E> ? z.input<E> : never>,
) => Promise<z.input<R['output']>>

export interface ServeOptions {
  /** Calls worked on at once; more wait (queue) or are refused with `unavailable` once twice as many are waiting (direct). */
  slots?: number
}

export interface ConsumeOptions {
  /** Name under which the consumer's place is kept; replicas share it. */
  durable: string
  /** Most events handed over at once. */
  batch?: number
  /** How long the first event of a batch may wait for others, when a batch costs more than its events. Default 0. */
  lingerMs?: number
}

/** Numbers for metrics and readiness. */
export interface BusStatus {
  connected: boolean
  /** True when `record` can be expected to succeed: the stream's server answered lately. */
  canRecord: boolean
  /** Calls in work here, and their slots, by subject. */
  serving: Record<string, { busy: number; slots: number }>
}

/**
 * How services talk. Both implementations behave alike in everything a caller can see: validation on both ends (a bad
 * input is `invalid_request`, a bad output `internal`), abort, deadline, error mapping, size limits.
 *
 * Limits: a request is at most 256 KiB and a reply 8 MiB of JSON (`too_large`).
 */
export interface Bus {
  call<R extends Rpc>(
    rpc: R,
    input: z.input<R['input']>,
    options: CallOptions<R extends Rpc<z.ZodType, z.ZodType, infer E> ? z.output<E> : never>,
  ): Promise<z.output<R['output']>>

  serve<R extends Rpc>(rpc: R, handler: Handler<R>, options?: ServeOptions): Promise<void>

  /** Durable: resolves once the event is stored, publishing again under the same id until then or until the deadline. */
  record<T extends Topic>(
    topic: T,
    id: string,
    event: z.input<T['event']>,
    options: { deadline: number },
  ): Promise<void>

  /**
   * Takes recorded events in batches, each at least once. A batch that throws is offered again one event at a time; an
   * event that fails then is offered again later (after 1 s, doubling up to 30 s), and never holds up the others.
   * An event that does not parse is logged, counted and dropped: no later try could help it.
   */
  consume<T extends Topic>(
    topic: T,
    options: ConsumeOptions,
    handler: (events: z.output<T['event']>[]) => Promise<void>,
  ): Promise<void>

  /** Tells every listener in every process, at most once; failures are not reported. */
  announce<B extends Broadcast>(broadcast: B, event: z.input<B['event']>): void
  listen<B extends Broadcast>(broadcast: B, listener: (event: z.output<B['event']>) => void): void

  /** Where large contents lie that messages only refer to. A bus of one process has no such place, and says so. */
  objects(options: ObjectsOptions): Promise<Objects>

  status(): BusStatus

  /**
   * Stops taking new work, lets running calls end, cancels what is left at the deadline (epoch milliseconds), then
   * disconnects. Resolves false when something had to be cancelled.
   */
  drain(deadline: number): Promise<boolean>
}

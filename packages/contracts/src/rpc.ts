import type { z } from 'zod'

/**
 * One remote call: its subject, the shape sent, the shape answered, how it travels and whether it may run twice.
 *
 * `direct` answers at once or says that nobody is there; `queue` waits for a free worker and survives one that dies.
 * An `idempotent` call may be repeated by the bus: a direct one once when its worker is lost, a queued one by redelivery.
 */
export interface Rpc<
  I extends z.ZodType = z.ZodType,
  O extends z.ZodType = z.ZodType,
  E extends z.ZodType = z.ZodType,
> {
  readonly subject: `tg.v1.${string}`
  readonly delivery: 'direct' | 'queue'
  readonly idempotent: boolean
  readonly input: I
  readonly output: O
  /** Shape of the activity events a worker may emit while it works; none when absent. */
  readonly event?: E
}

export const rpc = <I extends z.ZodType, O extends z.ZodType, E extends z.ZodType = z.ZodNever>(
  definition: Rpc<I, O, E>,
): Rpc<I, O, E> => definition

/** A stream of facts that must not be lost: stored before `record` resolves, redelivered until a consumer took them. */
export interface Topic<S extends z.ZodType = z.ZodType> {
  readonly subject: `tg.v1.${string}`
  readonly event: S
}

export const topic = <S extends z.ZodType>(definition: Topic<S>): Topic<S> => definition

/** News to every replica; a lost message costs seconds, since whoever listens also re-reads by itself. */
export interface Broadcast<S extends z.ZodType = z.ZodType> {
  readonly subject: `tg.v1.${string}`
  readonly event: S
}

export const broadcast = <S extends z.ZodType>(definition: Broadcast<S>): Broadcast<S> => definition

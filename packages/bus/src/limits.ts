import { Fault } from '@tollgate/contracts'

export const REQUEST_BYTES = 256 * 1024
export const REPLY_BYTES = 8 * 1024 * 1024
/** Most calls that wait on one queue, and most events that wait for their consumer in one process. */
export const QUEUE_LENGTH = 10_000
/** Calls worked on at once, unless a service says otherwise. */
export const DEFAULT_SLOTS = { direct: 256, queue: 8 } as const

/** How long to wait for what. Only tests of failures have a reason to change these. */
export interface Timing {
  /** A worker says this often that it still works on a call. */
  beatMs: number
  /** A worker not heard of for so long is taken for lost. */
  silenceMs: number
  /** A queued call whose worker is not heard of for so long is given to another. */
  ackWaitMs: number
  /** A direct call waits at most so long for the connection to come back. */
  patienceMs: number
}
export const TIMING: Timing = { beatMs: 2_000, silenceMs: 6_000, ackWaitMs: 10_000, patienceMs: 6_000 }

/** The value as JSON, if that is at most `most` bytes of UTF-8. */
export function toJson(value: unknown, most: number, what: string): string {
  const text = JSON.stringify(value) ?? 'null'
  // a UTF-16 unit takes at most three bytes, so that most texts need no counting
  if (text.length * 3 > most && Buffer.byteLength(text) > most) {
    throw new Fault('too_large', `${what} is larger than ${most / 1024} KiB`)
  }
  return text
}

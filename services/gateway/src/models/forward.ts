import type { Fault, TokenCounts } from '@tollgate/contracts'
import type { FinishReason } from '../conversation/events.ts'

/** Where forwarded bytes go: a client's response, as little of it as the fast lane needs. */
export interface ByteSink {
  /** Status and headers of the answer; called once, before the first write, and not at all when `forward` throws. */
  begin(head: { status: number; headers: Record<string, string> }): void
  /** Undefined: go on. A promise: the client reads slower than the model writes; resolves when there is room again or nobody to write to. */
  write(bytes: Uint8Array): Promise<void> | undefined
}

/**
 * What went through the fast lane. Until `begin`, a failure is thrown, so that another model may be tried and the client
 * gets a real status; after it, the client is told in its own dialect and the failure stands in `fault`. Ending the
 * response is the caller's. Every write is whole frames, so the caller may put keep-alives between them, and a complete
 * stream's last write is its last frame alone, so the caller may keep it back until the answer is paid for.
 */
export interface Forwarded {
  /** The provider's count; undefined when it sent none. */
  tokens: TokenCounts | undefined
  finish: FinishReason | undefined
  /** Characters the model answered, measured from the outside: for an estimate where `tokens` is missing (P-50). */
  outputCharacters: number
  /** Status the provider answered with. */
  status: number
  /** Epoch milliseconds at which the answer began to go out. */
  firstByteAt: number
  fault: Fault | undefined
}

type Head = Parameters<ByteSink['begin']>[0]

/** A stream's head; proxies in between are told to hold nothing back. */
export const eventStreamHead = (status: number): Head => ({
  status,
  headers: {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-cache',
    'x-accel-buffering': 'no',
  },
})

export const jsonHead = (status: number, body: Uint8Array): Head => ({
  status,
  headers: { 'content-type': 'application/json; charset=utf-8', 'content-length': String(body.length) },
})

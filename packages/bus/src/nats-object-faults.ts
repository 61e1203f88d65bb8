import { Fault } from '@tollgate/contracts'
import { NatsError } from 'nats'

/** JetStream's numbers: the stream has no room, and another writer was faster. */
const NO_ROOM: ReadonlySet<number> = new Set([10_047, 10_077])
const WRONG_LAST_SEQUENCE = 10_071

export const overtaken = (thrown: unknown): boolean => codeOf(thrown) === WRONG_LAST_SEQUENCE

/** A message that is not there is an answer; any other trouble with the server is not. */
export function unlessMissing(thrown: unknown): undefined {
  if (thrown instanceof NatsError && thrown.code === '404') return undefined
  throw thrown
}

/** Trouble with the server, as a caller may hear of it; what is no trouble of the server's stays what it is. */
export function storeFault(thrown: unknown): unknown {
  if (!(thrown instanceof NatsError)) return thrown
  const full = NO_ROOM.has(codeOf(thrown) ?? 0)
  return new Fault('unavailable', full ? 'the store for files is full' : 'files cannot be reached just now', {
    cause: thrown,
  })
}

const codeOf = (thrown: unknown): number | undefined =>
  thrown instanceof NatsError ? thrown.api_error?.err_code : undefined

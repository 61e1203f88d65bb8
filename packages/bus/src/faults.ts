import { type Failure, Fault, failures } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import { z } from 'zod'

// The texts may reach a client: they name no subject and no host, which only the cause does.
const because = (why: string) => ({ cause: new Error(why) })

export const unserved = (subject: string) =>
  new Fault('unavailable', 'a service needed for this is not running', because(`nothing serves ${subject}`))
export const silent = (subject: string) =>
  new Fault('unavailable', 'a service needed for this stopped answering', because(`${subject} went silent`))
export const disconnected = (why: string) =>
  new Fault('unavailable', 'the services cannot be reached just now', because(why))
export const busy = () => new Fault('unavailable', 'a service needed for this is busy', { retryAfterSeconds: 1 })
export const stopping = () =>
  new Fault('unavailable', 'a service needed for this is stopping', { retryAfterSeconds: 1 })
export const cancelled = () => new Fault('cancelled', 'the caller left')
export const timedOut = () => new Fault('timeout', 'this took longer than it may')
export const notStored = (cause: unknown) =>
  new Fault('unavailable', 'what happened could not be recorded just now', { cause })
export const interrupted = () => new Fault('unavailable', 'the service was stopped while it worked on this')

const wire = z.object({
  failure: z.string(),
  message: z.string(),
  retryAfterSeconds: z.number().optional(),
})

/** What of a failure crosses the bus: never its cause. */
export const faultToJson = ({ failure, message, retryAfterSeconds }: Fault): string =>
  JSON.stringify({ failure, message, retryAfterSeconds } satisfies z.input<typeof wire>)

/** A failure of a later release, which this one has no name for, is `internal`. */
export function faultFromJson(text: string): Fault {
  const { failure, message, retryAfterSeconds } = wire.parse(JSON.parse(text))
  const known: Failure = Object.hasOwn(failures, failure) ? (failure as Failure) : 'internal'
  return new Fault(known, message, retryAfterSeconds === undefined ? {} : { retryAfterSeconds })
}

/**
 * What a caller is told of whatever a handler threw. When the call had been given up, that is the reason; the cause of
 * anything else is logged here, since it goes no further.
 */
export function handlerFault(thrown: unknown, givenUp: Fault | undefined, log: Log, call: object): Fault {
  if (givenUp) return givenUp
  const fault = Fault.from(thrown)
  if (fault.failure === 'internal') log.error({ ...call, err: fault }, 'a call failed for a reason that nobody foresaw')
  else if (fault.cause !== undefined) log.warn({ ...call, err: fault }, 'a call failed')
  return fault
}

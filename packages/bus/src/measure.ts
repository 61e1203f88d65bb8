import { Fault, failures } from '@tollgate/contracts'
import { counter, histogram, upTo } from '@tollgate/telemetry'

const subject = upTo(64)

const callSeconds = histogram('bus_call_seconds', 'How long calls over the bus took, as their caller saw it.', {
  subject,
  outcome: ['ok', ...Object.keys(failures)],
})

/** What the caller of a subject saw; `thrown` is undefined when it went well. */
export const countCall = (name: string, startedMs: number, thrown?: unknown): void =>
  callSeconds.record((performance.now() - startedMs) / 1_000, {
    subject: name,
    outcome: thrown === undefined ? 'ok' : Fault.from(thrown).failure,
  })

const dropped = counter('bus_events_dropped_total', 'Recorded events that could not be read, and were given up.', {
  subject,
})
export const countDropped = (name: string): void => dropped.add(1, { subject: name })

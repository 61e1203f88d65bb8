import { Fault, failures } from '@tollgate/contracts'
import { counter, histogram, observe, upTo } from '@tollgate/telemetry'

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

const queueSeconds = histogram('bus_queue_wait_seconds', 'How long queued calls waited for a worker.', { subject })
const behind = new Map<string, number>()
observe('bus_queue_waiting', 'Calls that waited when the last one was taken here.', { subject }, () =>
  [...behind].map(([name, value]) => ({ value, values: { subject: name } })),
)

/** A worker took a call of a queue. One that is handed out again waited for a worker that died, and says nothing of the queue. */
export function countTaken(
  name: string,
  { count, waitedMs, waiting }: { count: number; waitedMs: number; waiting: number },
): void {
  behind.set(name, waiting)
  if (count === 1) queueSeconds.record(waitedMs / 1_000, { subject: name })
}

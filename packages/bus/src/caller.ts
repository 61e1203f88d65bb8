import type { Rpc, Topic } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import type { Bus, CallOptions } from './bus.ts'
import { cancelled, timedOut } from './faults.ts'
import { REQUEST_BYTES, toJson } from './limits.ts'
import { countCall } from './measure.ts'
import { inContext, type Step, startStep } from './tracing.ts'
import { accept, readOutput } from './validate.ts'

/** One call on its way: what a carrier needs to bring it to a server and its answer back. */
export interface Outgoing {
  rpc: Rpc
  /** The input as JSON, of a size that may travel. */
  json: string
  deadline: number
  signal: AbortSignal | undefined
  onEvent: ((json: string) => void) | undefined
  step: Step
}

/** Brings a call to a server and resolves with its answer as JSON; fails with nothing but Faults. */
export type Carry = (call: Outgoing) => Promise<string>

/** What a caller does whatever carries the call: limits, the check of the answer, span and metric. */
export function callWith(carry: Carry, log: Log): Bus['call'] {
  return async (rpc, input, options) => {
    const startedMs = performance.now()
    const step = startStep('call', rpc.subject)
    try {
      if (options.signal?.aborted) throw cancelled()
      if (options.deadline <= Date.now()) throw timedOut()
      const answer = await carry({
        rpc,
        json: toJson(input, REQUEST_BYTES, 'the request'),
        deadline: options.deadline,
        signal: options.signal,
        onEvent: eventReader(rpc, options, log),
        step,
      })
      const output = readOutput(rpc.output, answer) as never
      countCall(rpc.subject, startedMs)
      step.end()
      return output
    } catch (thrown) {
      countCall(rpc.subject, startedMs, thrown)
      step.end(thrown)
      throw thrown
    }
  }
}

/** An event this release has no shape for is passed over: adding one is no new version of a contract. */
function eventReader(rpc: Rpc, { onEvent }: CallOptions<never>, log: Log): Outgoing['onEvent'] {
  const { event } = rpc
  if (!onEvent || !event) return undefined
  return (json) => {
    const read = event.safeParse(JSON.parse(json))
    if (!read.success) return
    try {
      onEvent(read.data as never)
    } catch (err) {
      log.error({ err, subject: rpc.subject }, 'whoever listens to the events of a call threw')
    }
  }
}

/** One event on its way into the store. */
export interface Recording {
  topic: Topic
  id: string
  json: string
  deadline: number
  step: Step
}

/** What recording does whatever stores the event. A malformed one is refused here, where its maker can be found. */
export function recordWith(store: (recording: Recording) => Promise<void>): Bus['record'] {
  return async (topic, id, event, { deadline }) => {
    const step = startStep('record', topic.subject)
    try {
      accept(topic.event, event)
      const json = toJson(event, REQUEST_BYTES, 'the event')
      await inContext(step, () => store({ topic, id, json, deadline, step }))
      step.end()
    } catch (thrown) {
      step.end(thrown)
      throw thrown
    }
  }
}

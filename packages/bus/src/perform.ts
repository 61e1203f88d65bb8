import { type Context, context } from '@opentelemetry/api'
import type { Fault, Rpc } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import type { CallContext, Handler } from './bus.ts'
import { handlerFault } from './faults.ts'
import { REPLY_BYTES, REQUEST_BYTES, toJson } from './limits.ts'
import { inContext, startStep } from './tracing.ts'
import { readInput } from './validate.ts'

/** What a bus keeps of a served contract; which one it is, is known to the compiler only where it was handed over. */
export type AnyHandler = Handler<Rpc>

/** A call in work: the handler's view of it, and how to give it up. */
export interface Job {
  context: CallContext<never>
  /** Why it was given up, if it was. */
  givenUp(): Fault | undefined
  giveUp(why: Fault): void
}

/** A signal is made when a handler first asks for it: most quick calls never do, and making one is what costs. */
export function openJob(deadline: number, attempt: number, emit: (json: string) => void): Job {
  let why: Fault | undefined
  let controller: AbortController | undefined
  return {
    context: {
      deadline,
      attempt,
      get signal() {
        controller ??= new AbortController()
        if (why) controller.abort(why)
        return controller.signal
      },
      emit: (event) => {
        if (!why) emit(toJson(event, REQUEST_BYTES, 'an event'))
      },
    },
    givenUp: () => why,
    giveUp(fault) {
      why ??= fault
      controller?.abort(why)
    },
  }
}

/** Runs a handler on one input and resolves with its answer as JSON; fails with nothing but Faults, and logs what no caller is told. */
export async function perform(
  { subject, input }: Rpc,
  handler: AnyHandler,
  job: Job,
  json: string,
  log: Log,
  parent: Context = context.active(),
): Promise<string> {
  const step = startStep('serve', subject, parent)
  try {
    const answer = await inContext(step, async () => handler(readInput(input, json), job.context))
    const reply = toJson(answer, REPLY_BYTES, 'the result')
    step.end()
    return reply
  } catch (thrown) {
    step.end(thrown)
    throw inContext(step, () => handlerFault(thrown, job.givenUp(), log, { subject }))
  }
}

import { Fault } from '@tollgate/contracts'
import type { Plan } from './plan.ts'
import type { Finish, ModelCall } from './transcript.ts'

export interface Step {
  /** Calls of ours, in the model's order. */
  run: ModelCall[]
  /** Calls of the client, with which the turn ends. */
  handOver: ModelCall[]
  /** Ask the model again. */
  goOn: boolean
}

/** What follows from a round: another one, or the end of the turn, and which calls run before that. */
export function decide(calls: ModelCall[], { reason }: Finish, { owned, turn }: Plan, last: boolean): Step {
  const ours = calls.filter(({ name }) => owned.has(name))
  const theirs = calls.filter(({ name }) => !owned.has(name))
  // the upstream stopped in the middle of its own tools and is asked to go on from there (BR-056)
  if (reason === 'pause' && calls.length === 0) return { run: [], handOver: [], goOn: !last }
  // calls in a turn that did not stop for tools may be cut off, and are not run (L-11)
  if (ours.length === 0 || reason !== 'tool_calls') return { run: [], handOver: theirs, goOn: false }
  // in a turn with the client's calls ours run for what they do, and the client goes on with its own (L-12)
  if (theirs.length > 0) return { run: last ? [] : ours, handOver: theirs, goOn: false }
  if (last) throw new Fault('invalid_value', `Exceeded max_tool_iterations=${turn.maxToolIterations}`)
  return { run: ours, handOver: [], goOn: true }
}

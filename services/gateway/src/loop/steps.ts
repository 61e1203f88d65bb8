import { Fault } from '@tollgate/contracts'
import { isHidden } from './deferral.ts'
import type { Plan } from './plan.ts'
import { builtinNamed, isMarked } from './provider-tools.ts'
import type { Finish, ModelCall } from './transcript.ts'

export interface Step {
  /** Calls of ours, in the model's order. */
  run: ModelCall[]
  /** Calls that the model's backend runs. They are owed for, whether or not it is asked to go on (PE-29). */
  made: ModelCall[]
  /** Calls of the client, with which the turn ends. */
  handOver: ModelCall[]
  /** Ask the model again. */
  goOn: boolean
}

/** What follows from a round: another one, or the end of the turn, and which calls run before that. */
export function decide(calls: ModelCall[], { reason }: Finish, plan: Plan, last: boolean): Step {
  const { owned, turn } = plan
  const made = calls.filter((call) => isOfBackend(call, plan))
  const ours = calls.filter(({ name }) => owned.has(name) || isHidden(plan, name))
  const theirs = calls.filter((call) => !ours.includes(call) && !made.includes(call))
  // the upstream stopped in the middle of its own tools and is asked to go on from there (BR-056)
  if (reason === 'pause' && calls.length === 0) return { run: [], made: [], handOver: [], goOn: !last }
  // calls in a turn that did not stop for tools may be cut off, and are not run (L-11)
  if (reason !== 'tool_calls') return { run: [], made: [], handOver: theirs, goOn: false }
  const unlisted = theirs.find((call) => isUnlisted(call, plan))
  if (unlisted !== undefined)
    throw new Fault('upstream', `the model called '${unlisted.name}', a tool that it was not offered`)
  if (ours.length + made.length === 0) return { run: [], made, handOver: theirs, goOn: false }
  // in a turn with the client's calls ours run for what they do, and the client goes on with its own (L-12, PE-16)
  if (theirs.length > 0) return { run: last ? [] : ours, made, handOver: theirs, goOn: false }
  if (last && ours.length > 0) throw exceeded(turn.maxToolIterations)
  return { run: ours, made, handOver: [], goOn: true }
}

export const exceeded = (rounds: number): Fault => new Fault('invalid_value', `Exceeded max_tool_iterations=${rounds}`)

/** By its name in the seat's list, else by what its upstream calls it (PE-13). */
export const isOfBackend = ({ name, builtin }: Pick<ModelCall, 'name' | 'builtin'>, { seat }: Plan): boolean =>
  seat !== undefined && (seat.executed.includes(name) || (builtin === true && !isMarked(name)))

/** Whether the client is told nothing of a call: it runs here, or at the model's backend. */
export const staysHere = (call: Pick<ModelCall, 'name' | 'builtin'>, plan: Plan): boolean =>
  plan.owned.has(call.name) || isHidden(plan, call.name) || isOfBackend(call, plan)

/** A backend's own tool that neither the seat lists nor the client declares is answered by nobody (PE-14). */
const isUnlisted = ({ name }: ModelCall, { seat, turn }: Plan): boolean =>
  seat !== undefined && isMarked(name) && !turn.tools.some((entry) => builtinNamed(entry) === name)

import { randomBytes } from 'node:crypto'
import type { ToolCallDelta } from './chunk.ts'

/** One call of an answer: its place among them, and what is known of it so far. */
export interface LabelledCall {
  position: number
  /** '' until it is known or, once the name has come without one, made up. */
  id: string
  name: string
}

/**
 * Finds the call that each fragment belongs to: by its index if it has one, else by its id, else the latest call unless
 * the fragment names a function (BR-036). An index that comes again with another id and a name is a new call, since some
 * servers number every call 0. Ids are unique in an answer and never change once set.
 */
export function callLabels(): (delta: ToolCallDelta, whole: boolean) => LabelledCall {
  const calls: LabelledCall[] = []
  const byIndex = new Map<number, LabelledCall>()
  const taken = new Set<string>()

  function find(delta: ToolCallDelta): LabelledCall | undefined {
    const name = delta.function?.name
    if (delta.index != null) {
      const call = byIndex.get(delta.index)
      return call?.name && name && delta.id && call.id !== delta.id ? undefined : call
    }
    if (delta.id) return calls.find((call) => call.id === delta.id)
    return name ? undefined : calls.at(-1)
  }

  function begin(delta: ToolCallDelta): LabelledCall {
    const call: LabelledCall = { position: calls.length, id: '', name: '' }
    calls.push(call)
    if (delta.index != null) byIndex.set(delta.index, call)
    return call
  }

  return (delta, whole) => {
    const call = (whole ? undefined : find(delta)) ?? begin(delta)
    call.name ||= delta.function?.name ?? ''
    if (!call.id && delta.id && !taken.has(delta.id)) call.id = delta.id
    if (call.name) call.id ||= `call_${randomBytes(12).toString('hex')}`
    if (call.id) taken.add(call.id)
    return call
  }
}

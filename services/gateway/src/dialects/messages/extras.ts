import { isObject } from '../../conversation/json.ts'
import type { JsonObject } from '../../conversation/turn.ts'

/**
 * Members of the events of an upstream that speaks this dialect for which the neutral events have no place:
 * a citation, beside the block that rests on it, and the members of `message_delta`, once a round.
 */
export type MessagesExtra = { type: 'citation'; citation: JsonObject } | { type: 'ending'; ending: Ending }

/** `message_delta` without usage and `stop_reason`: what stands in its `delta`, and what beside it. */
export interface Ending {
  delta: JsonObject
  beside: JsonObject
}

export const noEnding: Ending = { delta: {}, beside: {} }

export function readExtra(value: JsonObject): MessagesExtra | undefined {
  if (value.type === 'citation' && isObject(value.citation)) return { type: 'citation', citation: value.citation }
  if (value.type !== 'ending' || !isObject(value.delta) || !isObject(value.beside)) return undefined
  return { type: 'ending', ending: { delta: value.delta, beside: value.beside } }
}

export const endingExtra = ({ delta, beside }: Ending): JsonObject => ({ type: 'ending', delta, beside })

/** Of two rounds the later one's word stands; edits of the context were made in both. */
export function laterEnding(one: Ending, other: Ending): Ending {
  const edits = [...editsIn(one.beside), ...editsIn(other.beside)]
  const beside = { ...one.beside, ...other.beside }
  if (edits.length > 0)
    beside.context_management = { ...(beside.context_management as JsonObject), applied_edits: edits }
  return { delta: { ...one.delta, ...other.delta }, beside }
}

function editsIn({ context_management: management }: JsonObject) {
  return isObject(management) && Array.isArray(management.applied_edits) ? management.applied_edits : []
}

import { Fault } from '@tollgate/contracts'
import { isObject } from '../conversation/json.ts'
import type { Message, Part, Turn } from '../conversation/turn.ts'
import type { SeatTools } from '../models/seats.ts'
import { builtinNamed, isMarked } from './provider-tools.ts'

type Call = Part & { type: 'call' }

/**
 * The history without calls of backends' tools that this seat knows nothing of, and without their echoes: a client that
 * runs such a loop itself may come back to another model (PE-20). Throws where an echo would be left without its call.
 */
export function withoutForeignCalls({ messages, tools }: Turn, seat: SeatTools | undefined): Message[] {
  const known = new Set([...(seat?.executed ?? []), ...tools.flatMap((entry) => builtinNamed(entry) ?? [])])
  const isForeign = ({ builtin, name }: Call) => (builtin === true || isMarked(name)) && !known.has(name)
  if (!messages.some((message) => callsIn(message).some(isForeign))) return refuseOrphans(messages, known)

  /** Ids of the latest turn's calls: servers use them again in the next. */
  let dropped = new Set<string>()
  const kept = messages.flatMap((message): Message[] => {
    const foreign = callsIn(message).filter(isForeign)
    if (message.role === 'assistant') dropped = new Set(foreign.map(({ id }) => id))
    const gone = (part: Part) =>
      part.type === 'call' ? isForeign(part) : part.type === 'result' && dropped.has(part.callId)
    if (!message.parts.some(gone)) return [message]
    const parts = message.parts.filter((part) => !gone(part))
    if (!parts.some(({ type }) => type !== 'thinking')) return []
    const { raw, ...rest } = message
    return [{ ...rest, parts, ...(raw?.dialect === 'chat' && { raw: { ...raw, value: without(raw.value, foreign) } }) }]
  })
  return refuseOrphans(kept, known)
}

const callsIn = ({ parts }: Message): Call[] => parts.filter((part) => part.type === 'call')

const isEcho = (part: Part): boolean => part.type === 'result' && part.name !== undefined && isMarked(part.name)

function refuseOrphans(messages: Message[], known: ReadonlySet<string>): Message[] {
  let made = new Set<string>()
  for (const message of messages) {
    if (message.role === 'assistant') made = new Set(callsIn(message).map(({ id }) => id))
    for (const part of message.parts) {
      if (part.type !== 'result' || !isEcho(part) || made.has(part.callId)) continue
      if (known.has(part.name ?? '')) continue
      throw new Fault('invalid_request', `A result of '${part.name}' in 'messages' answers no call before it`)
    }
  }
  return messages
}

function without(value: NonNullable<Message['raw']>['value'], foreign: readonly Call[]) {
  const ids = new Set(foreign.map(({ id }) => id))
  const { tool_calls: calls, ...rest } = value
  const left = Array.isArray(calls) ? calls.filter((call) => !isObject(call) || !ids.has(String(call.id))) : []
  return left.length > 0 ? { ...value, tool_calls: left } : rest
}

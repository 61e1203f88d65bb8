import type { Message, Part } from '../conversation/turn.ts'

type Call = Part & { type: 'call' }
type Result = Part & { type: 'result' }

/** What the model is told about a call whose result the client never sent. */
export const NO_RESULT = '[tool error] no result available'

/**
 * A history in which every assistant message with calls is followed by one message with their results, in the order of
 * the calls, as strict providers demand (BR-010, BR-050). A call without a result gets one that says so; a result
 * without a call, and every result of a call but its first, is left out. What else was said keeps its order. Results
 * count up to the next assistant message.
 */
export function pairResults(messages: readonly Message[]): Message[] {
  return messages.flatMap((message, at): Message[] => {
    if (message.role !== 'assistant') return withoutResults(message)
    const calls = message.parts.filter((part): part is Call => part.type === 'call')
    if (calls.length === 0) return [message]
    const results = resultsAfter(messages, at)
    return [message, { role: 'tool', parts: calls.map(({ id }) => results.get(id) ?? missing(id)) }]
  })
}

function resultsAfter(messages: readonly Message[], at: number): Map<string, Result> {
  const results = new Map<string, Result>()
  // by its place: a copy of the rest for every call would make a long history cost the square of its length
  for (let next = at + 1; next < messages.length; next++) {
    const { role, parts } = messages[next]!
    if (role === 'assistant') break
    for (const part of parts) if (part.type === 'result' && !results.has(part.callId)) results.set(part.callId, part)
  }
  return results
}

function withoutResults(message: Message): Message[] {
  const parts = message.parts.filter(({ type }) => type !== 'result')
  return parts.length === 0 ? [] : [{ ...message, parts }]
}

const missing = (callId: string): Result => ({ type: 'result', callId, text: NO_RESULT, isError: true })

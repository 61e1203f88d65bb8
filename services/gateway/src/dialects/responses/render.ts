import type { Answer } from '../../conversation/collect.ts'
import type { AnswerEvent } from '../../conversation/events.ts'
import type { JsonObject, Turn } from '../../conversation/turn.ts'
import { ending, envelope, type Identity } from './envelope.ts'
import type { Output } from './output.ts'
import { responsesUsage } from './usage.ts'

/** A whole answer as a `response`, put together as a client of its stream would. */
export function renderResponse(answer: Answer, identity: Identity, turn: Turn, output: Output): JsonObject {
  for (const event of eventsOf(answer)) output.push(event)
  const { status, why } = ending(answer.finish.reason, answer.finish.raw)
  output.end(status)
  return {
    ...envelope(identity, turn, status, output.items()),
    ...(why !== undefined && { incomplete_details: { reason: why } }),
    ...(answer.usage && { usage: responsesUsage(answer.usage) }),
  }
}

/** What was heard of the answer, block by block. */
function* eventsOf({ id, created, provider, container, items, extras }: Answer): Generator<AnswerEvent> {
  if (container) yield { type: 'container', container }
  yield { type: 'start', id, created, model: undefined, ...(provider !== undefined && { provider }) }
  for (const item of items) {
    if (item.type === 'tool') {
      yield item.activity
      continue
    }
    const { index, start, raw, text, signature, whole } = item
    yield { type: 'open', index, block: start, ...(raw && { raw }) }
    if (text !== '') yield { type: 'delta', index, text }
    if (signature !== undefined) yield { type: 'signature', index, signature }
    for (const { dialect, value, block } of extras) if (block === item) yield { type: 'extra', dialect, value }
    yield { type: 'close', index, ...(whole && { raw: whole }) }
  }
}

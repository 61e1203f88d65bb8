import type { ModelEvent } from '../../conversation/events.ts'
import { framesOf, parseJson } from '../reply.ts'
import type { UpstreamReply } from '../upstream.ts'
import { faultOfFrame } from '../upstream-errors.ts'
import type { Origin } from '../upstream-fault.ts'
import type { ChatReader } from './events.ts'

export async function* whole(reply: UpstreamReply, reader: ChatReader, origin: Origin): AsyncGenerator<ModelEvent> {
  yield* reader.chunk(parseJson((await reply.bytes()).toString('utf8'), origin))
  yield* reader.end(true)
}

export async function* streamed(reply: UpstreamReply, reader: ChatReader, origin: Origin): AsyncGenerator<ModelEvent> {
  for await (const { event, data } of framesOf(reply, ({ data }) => data === '[DONE]', origin)) {
    if (data === '[DONE]') return yield* reader.end(true)
    const json = parseJson(data, origin)
    if (event === 'error') throw faultOfFrame(origin, json)
    yield* reader.chunk(json)
  }
  yield* reader.end(false)
}

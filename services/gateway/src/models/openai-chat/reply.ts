import type { ModelEvent } from '../../conversation/events.ts'
import { parseJson } from '../reply.ts'
import { sseParser } from '../sse.ts'
import type { UpstreamReply } from '../upstream.ts'
import { faultOfFrame } from '../upstream-errors.ts'
import type { Origin } from '../upstream-fault.ts'
import type { ChatReader } from './events.ts'

export async function* whole(reply: UpstreamReply, reader: ChatReader, origin: Origin): AsyncGenerator<ModelEvent> {
  yield* reader.chunk(parseJson((await reply.bytes()).toString('utf8'), origin))
  yield* reader.end(true)
}

export async function* streamed(reply: UpstreamReply, reader: ChatReader, origin: Origin): AsyncGenerator<ModelEvent> {
  const parser = sseParser()
  const chunks = reply.chunks()
  let complete = false
  try {
    for (;;) {
      const { value: bytes, done } = await chunks.next()
      for (const { event, data } of done ? parser.end() : parser.push(bytes)) {
        complete = data === '[DONE]'
        if (complete) return yield* reader.end(true)
        const json = parseJson(data, origin)
        if (event === 'error') throw faultOfFrame(origin, json)
        yield* reader.chunk(json)
      }
      if (done) return yield* reader.end(false)
    }
  } finally {
    // nobody waits for what is left of a complete answer's body, and settling never rejects
    if (complete) void reply.settle()
    else await chunks.return()
  }
}

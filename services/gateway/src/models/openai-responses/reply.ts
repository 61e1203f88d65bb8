import type { ModelEvent } from '../../conversation/events.ts'
import { framesOf, parseJson } from '../reply.ts'
import type { SseFrame } from '../sse.ts'
import type { UpstreamReply } from '../upstream.ts'
import { brokenAnswer, type Origin } from '../upstream-fault.ts'
import type { ResponsesReader } from './events.ts'
import { responseObject, streamEvent } from './wire.ts'

export async function* whole(
  reply: UpstreamReply,
  reader: ResponsesReader,
  origin: Origin,
): AsyncGenerator<ModelEvent> {
  const read = responseObject.safeParse(parseJson((await reply.bytes()).toString('utf8'), origin))
  if (!read.success || (!read.data.output && !read.data.error))
    throw brokenAnswer('unreadable', origin, new Error('no response'))
  yield* reader.whole(read.data)
  yield* reader.end()
}

export async function* streamed(
  reply: UpstreamReply,
  reader: ResponsesReader,
  origin: Origin,
): AsyncGenerator<ModelEvent> {
  for await (const { event, data } of framesOf(reply, isLast, origin)) {
    if (data === '[DONE]') continue // compatible servers add it
    const json = parseJson(data, origin)
    const read = streamEvent.safeParse(named(json, event))
    if (!read.success) throw brokenAnswer('unreadable', origin, new Error('an event has an unexpected shape'))
    yield* reader.event(read.data)
    if (LAST.has(read.data.type)) break
  }
  yield* reader.end()
}

const LAST: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete', 'response.failed'])
const isLast = ({ event, data }: SseFrame): boolean =>
  LAST.has(event) || (event === '' && /"type": ?"response\.(completed|incomplete|failed)"/.test(data))

/** An error's type says what went wrong on some servers, and the frame's name that it is one. */
function named(json: unknown, event: string): unknown {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return json
  if (event === 'error' || ('error' in json && json.error && !('response' in json))) return { ...json, type: 'error' }
  return 'type' in json ? json : { ...json, type: event }
}

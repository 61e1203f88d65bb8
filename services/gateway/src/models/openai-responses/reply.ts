import type { ModelEvent } from '../../conversation/events.ts'
import { type Tell, tellAll } from '../../conversation/tell.ts'
import { parseJson, readFrames } from '../reply.ts'
import type { UpstreamReply } from '../upstream.ts'
import { brokenAnswer, type Origin } from '../upstream-fault.ts'
import type { ResponsesReader } from './events.ts'
import { responseObject, streamEvent } from './wire.ts'

export async function whole(
  reply: UpstreamReply,
  reader: ResponsesReader,
  origin: Origin,
  tell: Tell<ModelEvent>,
): Promise<void> {
  const read = responseObject.safeParse(parseJson((await reply.bytes()).toString('utf8'), origin))
  if (!read.success || (!read.data.output && !read.data.error))
    throw brokenAnswer('unreadable', origin, new Error('no response'))
  await tellAll(reader.whole(read.data), tell)
  await tellAll(reader.end(), tell)
}

export const streamed = (
  reply: UpstreamReply,
  reader: ResponsesReader,
  origin: Origin,
  tell: Tell<ModelEvent>,
): Promise<void> =>
  readFrames(
    reply,
    {
      frame({ event, data }, events) {
        if (data === '[DONE]') return false // compatible servers add it
        const read = streamEvent.safeParse(named(parseJson(data, origin), event))
        if (!read.success) throw brokenAnswer('unreadable', origin, new Error('an event has an unexpected shape'))
        events.push(...reader.event(read.data))
        return LAST.has(read.data.type)
      },
      end: () => reader.end(),
    },
    origin,
    tell,
  )

const LAST: ReadonlySet<string> = new Set(['response.completed', 'response.incomplete', 'response.failed'])

/** An error's type says what went wrong on some servers, and the frame's name that it is one. */
function named(json: unknown, event: string): unknown {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) return json
  if (event === 'error' || ('error' in json && json.error && !('response' in json))) return { ...json, type: 'error' }
  return 'type' in json ? json : { ...json, type: event }
}

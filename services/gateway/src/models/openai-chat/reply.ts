import type { ModelEvent } from '../../conversation/events.ts'
import { type Tell, tellAll } from '../../conversation/tell.ts'
import { parseJson, readFrames } from '../reply.ts'
import type { UpstreamReply } from '../upstream.ts'
import { faultOfFrame } from '../upstream-errors.ts'
import type { Origin } from '../upstream-fault.ts'
import type { ChatReader } from './events.ts'

export async function whole(
  reply: UpstreamReply,
  reader: ChatReader,
  origin: Origin,
  tell: Tell<ModelEvent>,
): Promise<void> {
  await tellAll(reader.chunk(parseJson((await reply.bytes()).toString('utf8'), origin)), tell)
  await tellAll(reader.end(true), tell)
}

export const streamed = (
  reply: UpstreamReply,
  reader: ChatReader,
  origin: Origin,
  tell: Tell<ModelEvent>,
): Promise<void> =>
  readFrames(
    reply,
    {
      frame({ event, data }, events) {
        if (data === '[DONE]') return true
        const json = parseJson(data, origin)
        if (event === 'error') throw faultOfFrame(origin, json)
        events.push(...reader.chunk(json))
        return false
      },
      end: (complete) => reader.end(complete),
    },
    origin,
    tell,
  )

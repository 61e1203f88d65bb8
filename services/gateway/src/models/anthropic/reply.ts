import { z } from 'zod'
import type { ModelEvent } from '../../conversation/events.ts'
import { type Tell, tellAll } from '../../conversation/tell.ts'
import { parseJson, readFrames } from '../reply.ts'
import type { UpstreamReply } from '../upstream.ts'
import { faultOfFrame } from '../upstream-errors.ts'
import { brokenAnswer, type Origin } from '../upstream-fault.ts'
import type { MessagesReader } from './events.ts'
import { eventsOf, message, streamEvent } from './wire.ts'

export async function whole(
  reply: UpstreamReply,
  reader: MessagesReader,
  origin: Origin,
  tell: Tell<ModelEvent>,
): Promise<void> {
  const json = parseJson((await reply.bytes()).toString('utf8'), origin)
  if (errorEvent.safeParse(json).success) throw faultOfFrame(origin, json)
  const read = message.safeParse(json)
  if (!read.success || !read.data.content) throw brokenAnswer('unreadable', origin, new Error('no message'))
  for (const event of eventsOf(read.data)) await tellAll(reader.event(event), tell)
  await tellAll(reader.end(), tell)
}

export const streamed = (
  reply: UpstreamReply,
  reader: MessagesReader,
  origin: Origin,
  tell: Tell<ModelEvent>,
): Promise<void> =>
  readFrames(
    reply,
    {
      frame({ data }, events) {
        if (data === '[DONE]') return false // compatible servers add it
        const json = parseJson(data, origin)
        const read = streamEvent.safeParse(json)
        if (read.success) {
          events.push(...reader.event(read.data))
          return read.data.type === 'message_stop'
        }
        const { type } = typed.safeParse(json).data ?? {}
        if (type === 'error') throw faultOfFrame(origin, json)
        if (type === undefined || !KNOWN.has(type)) return false
        throw brokenAnswer('unreadable', origin, new Error(`a ${type} of unexpected shape`))
      },
      end: () => reader.end(),
    },
    origin,
    tell,
  )

export const errorEvent = z.object({ type: z.literal('error'), error: z.unknown().optional() })
const typed = z.object({ type: z.string() })
const KNOWN: ReadonlySet<string> = new Set(streamEvent.options.map((option) => option.shape.type.value))

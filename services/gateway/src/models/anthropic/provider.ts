import type { Log } from '@tollgate/telemetry'
import { z } from 'zod'
import type { ModelEvent } from '../../conversation/events.ts'
import type { ModelProvider } from '../provider.ts'
import { framesOf, isStream, parseJson } from '../reply.ts'
import type { UpstreamConnection, UpstreamReply } from '../upstream.ts'
import { faultOfFrame } from '../upstream-errors.ts'
import { brokenAnswer, type Origin } from '../upstream-fault.ts'
import { type MessagesReader, messagesReader } from './events.ts'
import { type MessagesSettings, messagesBody } from './request.ts'
import { eventsOf, message, streamEvent } from './wire.ts'

/** Anthropic's Messages API and every server that speaks it. */
export function anthropicProvider(
  origin: Origin,
  upstream: UpstreamConnection,
  settings: MessagesSettings,
  log: Log,
): ModelProvider {
  return {
    name: origin.name,
    wire: origin.wire,
    async *ask(request, limits) {
      const body = JSON.stringify(messagesBody(request, settings))
      const reply = await upstream.post('/v1/messages', body, limits)
      const reader = messagesReader(origin, log)
      yield* isStream(reply, request.stream) ? streamed(reply, reader, origin) : whole(reply, reader, origin)
    },
    close: () => upstream.close(),
  }
}

async function* whole(reply: UpstreamReply, reader: MessagesReader, origin: Origin): AsyncGenerator<ModelEvent> {
  const json = parseJson((await reply.bytes()).toString('utf8'), origin)
  if (errorEvent.safeParse(json).success) throw faultOfFrame(origin, json)
  const read = message.safeParse(json)
  if (!read.success || !read.data.content) throw brokenAnswer('unreadable', origin, new Error('no message'))
  for (const event of eventsOf(read.data)) yield* reader.event(event)
  yield* reader.end()
}

async function* streamed(reply: UpstreamReply, reader: MessagesReader, origin: Origin): AsyncGenerator<ModelEvent> {
  for await (const { data } of framesOf(reply, ({ data }) => data.includes('"message_stop"'))) {
    if (data === '[DONE]') continue // compatible servers add it
    const json = parseJson(data, origin)
    if (errorEvent.safeParse(json).success) throw faultOfFrame(origin, json)
    const { type } = typed.safeParse(json).data ?? {}
    if (type === undefined || !KNOWN.has(type)) continue
    const read = streamEvent.safeParse(json)
    if (!read.success) throw brokenAnswer('unreadable', origin, new Error(`a ${type} of unexpected shape`))
    yield* reader.event(read.data)
    if (type === 'message_stop') break
  }
  yield* reader.end()
}

const errorEvent = z.object({ type: z.literal('error'), error: z.unknown().optional() })
const typed = z.object({ type: z.string() })
const KNOWN: ReadonlySet<string> = new Set(streamEvent.options.map((option) => option.shape.type.value))

import { z } from 'zod'
import type { Turn } from '../../conversation/turn.ts'
import { renderMessages } from '../../dialects/messages/render.ts'
import { messagesStream, STREAM_DONE, STREAM_FAILED, STREAM_STOP } from '../../dialects/messages/stream.ts'
import type { Speech } from '../convert.ts'
import { type ByteSink, type Forwarded, jsonHead } from '../forward.ts'
import { forwardReply } from '../forward-reply.ts'
import type { LastWords } from '../forward-stream.ts'
import { parseJson } from '../reply.ts'
import type { UpstreamReply } from '../upstream.ts'
import { faultOfFrame } from '../upstream-errors.ts'
import { brokenAnswer, type Origin } from '../upstream-fault.ts'
import { finishReason, messagesReader } from './events.ts'
import { errorEvent, streamed, whole } from './reply.ts'
import { messagesUsageReader } from './usage.ts'
import { messagesWatch, UNCOUNTED } from './watch.ts'

const words: LastWords = {
  done: Buffer.from(STREAM_DONE),
  failed: Buffer.from(STREAM_FAILED),
  lastFrame: () => undefined,
  owed: Buffer.from(STREAM_STOP),
}
const speech: Speech = { writer: messagesStream, render: renderMessages }

export const forwardMessages = forwardReply({
  watch: (origin, { model }) => messagesWatch(origin, model),
  words,
  forwardWhole,
  reader: messagesReader,
  streamed,
  whole,
  speech,
})

const wholeMessage = z.looseObject({
  content: z.array(z.looseObject({ type: z.string() })),
  stop_reason: z.string().nullish(),
  usage: z.unknown().optional(),
})

async function forwardWhole(reply: UpstreamReply, sink: ByteSink, origin: Origin, { model }: Turn): Promise<Forwarded> {
  const json = parseJson((await reply.bytes()).toString('utf8'), origin)
  if (errorEvent.safeParse(json).success) throw faultOfFrame(origin, json)
  const read = wholeMessage.safeParse(json)
  if (!read.success) throw brokenAnswer('unreadable', origin, new Error('no message'))
  const { content, stop_reason: reason, usage } = read.data
  const called = content.some(({ type }) => type === 'tool_use')
  const mended = {
    ...(called && reason === 'end_turn' && { stop_reason: 'tool_use' }),
    ...(!usage && { usage: UNCOUNTED }),
  }
  // over what came, so that every member stays where it was
  const body = Buffer.from(JSON.stringify({ ...(json as object), model, ...mended }))
  const counted = messagesUsageReader()
  counted.read(usage)
  const firstByteAt = Date.now()
  sink.begin(jsonHead(reply.status, body))
  await sink.write(body)
  return {
    tokens: counted.total()?.tokens,
    finish: reason == null ? undefined : finishReason(reason, called),
    outputCharacters: JSON.stringify(content).length,
    status: reply.status,
    firstByteAt,
    fault: undefined,
  }
}

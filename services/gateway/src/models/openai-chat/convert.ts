import type { Log } from '@tollgate/telemetry'
import { answerCollector, blocksOf } from '../../conversation/collect.ts'
import type { ModelEvent } from '../../conversation/events.ts'
import type { ModelRequest } from '../../conversation/turn.ts'
import { renderChat } from '../../dialects/chat/render.ts'
import { chatStream } from '../../dialects/chat/stream.ts'
import { type ByteSink, eventStreamHead, type Forwarded, jsonHead } from '../forward.ts'
import { isStream } from '../reply.ts'
import type { UpstreamReply } from '../upstream.ts'
import type { Origin } from '../upstream-fault.ts'
import { chatReader } from './events.ts'
import { streamed, whole } from './reply.ts'

/** A server that streams, or does not, whatever it was asked: its answer is read to the end and written as it was wanted. */
export async function forwardConverted(
  reply: UpstreamReply,
  { turn, stream }: ModelRequest,
  sink: ByteSink,
  origin: Origin,
  log: Log,
): Promise<Forwarded> {
  const reader = chatReader(origin, log)
  const events: ModelEvent[] = []
  const collector = answerCollector()
  for await (const event of isStream(reply, stream) ? streamed(reply, reader, origin) : whole(reply, reader, origin)) {
    events.push(event)
    collector.push(event)
  }
  const answer = collector.answer()
  const firstByteAt = Date.now()
  const { status } = reply
  if (turn.stream) {
    const writer = chatStream(turn)
    sink.begin(eventStreamHead(status))
    await sink.write(Buffer.from(events.map((event) => writer.push(event)).join('')))
    await sink.write(Buffer.from(writer.end()))
  } else {
    const body = Buffer.from(JSON.stringify(renderChat(answer, turn.model)))
    sink.begin(jsonHead(status, body))
    await sink.write(body)
  }
  return {
    tokens: answer.usage?.tokens,
    finish: answer.finish.reason,
    outputCharacters: blocksOf(answer).reduce((sum, { text }) => sum + text.length, 0),
    status,
    firstByteAt,
    fault: undefined,
  }
}

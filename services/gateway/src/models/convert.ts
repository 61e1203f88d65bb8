import { type Answer, answerCollector, blocksOf } from '../conversation/collect.ts'
import type { ModelEvent } from '../conversation/events.ts'
import type { Tell } from '../conversation/tell.ts'
import type { JsonObject, Turn } from '../conversation/turn.ts'
import type { AnswerWriter } from '../dialects/answer-writer.ts'
import { type ByteSink, eventStreamHead, type Forwarded, jsonHead } from './forward.ts'

/** How a client dialect says an answer. */
export interface Speech {
  writer(turn: Turn): AnswerWriter
  render(answer: Answer, turn: Turn): JsonObject
}

/** A server that streams, or does not, whatever it was asked: its answer is read to the end and written as it was wanted. */
export async function forwardConverted(
  read: (tell: Tell<ModelEvent>) => Promise<void>,
  turn: Turn,
  status: number,
  sink: ByteSink,
  { writer: openWriter, render }: Speech,
): Promise<Forwarded> {
  const events: ModelEvent[] = []
  const collector = answerCollector()
  await read((event) => {
    events.push(event)
    collector.push(event)
    return undefined
  })
  const answer = collector.answer()
  const firstByteAt = Date.now()
  if (turn.stream) {
    const writer = openWriter(turn)
    sink.begin(eventStreamHead(status))
    await sink.write(Buffer.from(events.map((event) => writer.push(event)).join('')))
    await sink.write(Buffer.from(writer.end()))
  } else {
    const body = Buffer.from(JSON.stringify(render(answer, turn)))
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

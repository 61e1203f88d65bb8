import type { AnswerEvent, ModelEvent } from '../../conversation/events.ts'
import type { JsonObject, Turn } from '../../conversation/turn.ts'
import type { AnswerWriter } from '../answer-writer.ts'
import { ending, envelope, type Identity } from './envelope.ts'
import type { Output } from './output.ts'
import { responsesUsage } from './usage.ts'

/** the two ways a stream ends. */
export const STREAM_DONE = 'data: [DONE]\n\n'
export const STREAM_FAILED =
  'event: error\ndata: {"error":{"message":"An error occurred during streaming","type":"server_error"}}\n\n'

/** Writes an answer as typed events, numbered without gaps over all rounds. */
export function responsesStream(identity: Identity, turn: Turn, output: Output): AnswerWriter {
  let sequence = 0
  let usage: JsonObject | undefined

  /** Numbers an event, which nobody else has. */
  const frame = (event: JsonObject): string => {
    event.sequence_number = sequence++
    return `event: ${String(event.type)}\ndata: ${JSON.stringify(event)}\n\n`
  }
  const frames = (events: JsonObject[]): string => events.map(frame).join('')

  function start(): string {
    const response = envelope(identity, turn, 'in_progress', [])
    return frames([
      { type: 'response.created', response },
      { type: 'response.in_progress', response },
    ])
  }

  function finish({ reason, raw }: ModelEvent & { type: 'finish' }): string {
    const { status, why } = ending(reason, raw)
    const last = frames(output.end(status))
    const response = {
      ...envelope(identity, turn, status, output.items()),
      ...(why !== undefined && { incomplete_details: { reason: why } }),
      ...(usage && { usage }),
    }
    return last + frame({ type: `response.${status}`, response })
  }

  return {
    keepalive: ': keepalive\n\n',
    push(event: AnswerEvent) {
      const inner = frames(output.push(event))
      switch (event.type) {
        case 'start':
          return start()
        case 'usage':
          usage = responsesUsage(event)
          return ''
        case 'finish':
          return finish(event)
        default:
          return inner
      }
    },
    end: () => STREAM_DONE,
    fail: () => STREAM_FAILED,
  }
}

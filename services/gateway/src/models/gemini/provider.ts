import type { Log } from '@tollgate/telemetry'
import type { ModelEvent } from '../../conversation/events.ts'
import { type Tell, tellAll } from '../../conversation/tell.ts'
import type { ModelProvider } from '../provider.ts'
import { isStream, parseJson, readFrames } from '../reply.ts'
import type { UpstreamConnection, UpstreamReply } from '../upstream.ts'
import type { Origin } from '../upstream-fault.ts'
import { type GeminiReader, geminiReader } from './events.ts'
import { geminiBody, geminiPath } from './request.ts'

/** Google's Gemini API. */
export function geminiProvider(origin: Origin, upstream: UpstreamConnection, log: Log): ModelProvider {
  return {
    name: origin.name,
    wire: origin.wire,
    async ask(request, limits, tell) {
      const body = JSON.stringify(geminiBody(request, origin.name))
      const reply = await upstream.post(geminiPath(request.model, request.stream), body, limits)
      const reader = geminiReader(origin, log)
      await (isStream(reply, request.stream) ? streamed : whole)(reply, reader, origin, tell)
    },
    close: () => upstream.close(),
  }
}

export async function whole(
  reply: UpstreamReply,
  reader: GeminiReader,
  origin: Origin,
  tell: Tell<ModelEvent>,
): Promise<void> {
  await tellAll(reader.piece(parseJson((await reply.bytes()).toString('utf8'), origin)), tell)
  await tellAll(reader.end(), tell)
}

/** A stream has no last frame of its own: it ends where its body does, after the piece that says why. */
export const streamed = (
  reply: UpstreamReply,
  reader: GeminiReader,
  origin: Origin,
  tell: Tell<ModelEvent>,
): Promise<void> =>
  readFrames(
    reply,
    {
      frame({ data }, events) {
        if (data !== '[DONE]') events.push(...reader.piece(parseJson(data, origin)))
        return false
      },
      end: () => reader.end(),
    },
    origin,
    tell,
  )

import type { Log } from '@tollgate/telemetry'
import type { ModelEvent } from '../../conversation/events.ts'
import type { ModelProvider } from '../provider.ts'
import { framesOf, isStream, parseJson } from '../reply.ts'
import type { UpstreamConnection, UpstreamReply } from '../upstream.ts'
import type { Origin } from '../upstream-fault.ts'
import { type GeminiReader, geminiReader } from './events.ts'
import { geminiBody, geminiPath } from './request.ts'

/** Google's Gemini API. */
export function geminiProvider(origin: Origin, upstream: UpstreamConnection, log: Log): ModelProvider {
  return {
    name: origin.name,
    wire: origin.wire,
    async *ask(request, limits) {
      const body = JSON.stringify(geminiBody(request, origin.name))
      const reply = await upstream.post(geminiPath(request.model, request.stream), body, limits)
      const reader = geminiReader(origin, log)
      yield* isStream(reply, request.stream) ? streamed(reply, reader, origin) : whole(reply, reader, origin)
    },
    close: () => upstream.close(),
  }
}

export async function* whole(reply: UpstreamReply, reader: GeminiReader, origin: Origin): AsyncGenerator<ModelEvent> {
  yield* reader.piece(parseJson((await reply.bytes()).toString('utf8'), origin))
  yield* reader.end()
}

/** A stream has no last frame of its own: it ends where its body does, after the piece that says why. */
export async function* streamed(
  reply: UpstreamReply,
  reader: GeminiReader,
  origin: Origin,
): AsyncGenerator<ModelEvent> {
  for await (const { data } of framesOf(reply, () => false, origin)) {
    if (data !== '[DONE]') yield* reader.piece(parseJson(data, origin))
  }
  yield* reader.end()
}

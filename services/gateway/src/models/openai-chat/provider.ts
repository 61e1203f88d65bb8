import type { Log } from '@tollgate/telemetry'
import type { ModelRequest } from '../../conversation/turn.ts'
import type { CallLimits, ModelProvider } from '../provider.ts'
import { isStream } from '../reply.ts'
import type { UpstreamConnection } from '../upstream.ts'
import type { Origin } from '../upstream-fault.ts'
import { chatReader } from './events.ts'
import { forwardChat } from './forward.ts'
import { listModels } from './list-models.ts'
import type { ChatQuirks } from './quirks.ts'
import { streamed, whole } from './reply.ts'
import { chatBody, refuseSeveralAnswers } from './request.ts'

/** OpenAI's Chat Completions and every server that speaks it. */
export function openAiChatProvider(
  origin: Origin,
  upstream: UpstreamConnection,
  quirks: ChatQuirks,
  log: Log,
): ModelProvider {
  const post = (request: ModelRequest, limits: CallLimits) =>
    upstream.post('/chat/completions', JSON.stringify(chatBody(request, quirks)), limits)

  return {
    name: origin.name,
    wire: origin.wire,

    async ask(request, limits, tell) {
      refuseSeveralAnswers(request)
      const reply = await post(request, limits)
      const reader = chatReader(origin, log)
      await (isStream(reply, request.stream) ? streamed : whole)(reply, reader, origin, tell)
    },

    forward: async (request, sink, limits) => forwardChat(await post(request, limits), request, sink, origin, log),
    relay: async (path, json, limits) => (await upstream.post(path, json, limits)).bytes(),
    listModels: (limits) => listModels(upstream, limits, origin),
    close: () => upstream.close(),
  }
}

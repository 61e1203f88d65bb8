import type { Log } from '@tollgate/telemetry'
import type { ModelRequest } from '../../conversation/turn.ts'
import { listModels } from '../openai-chat/list-models.ts'
import type { CallLimits, ModelProvider } from '../provider.ts'
import { isStream } from '../reply.ts'
import type { UpstreamConnection } from '../upstream.ts'
import type { Origin } from '../upstream-fault.ts'
import { responsesReader } from './events.ts'
import { openAiFiles } from './files.ts'
import { forwardResponses } from './forward.ts'
import { streamed, whole } from './reply.ts'
import { responsesBody } from './request.ts'
import { searchBlocks } from './searches.ts'

/** OpenAI's Responses API and every server that speaks it. */
export function openAiResponsesProvider(
  origin: Origin,
  upstream: UpstreamConnection,
  { hasFiles }: { hasFiles: boolean },
  log: Log,
): ModelProvider {
  const post = (request: ModelRequest, limits: CallLimits) =>
    upstream.post('/responses', JSON.stringify(responsesBody(request, origin.name)), limits)

  return {
    name: origin.name,
    wire: origin.wire,
    async ask(request, limits, tell) {
      const reply = await post(request, limits)
      const reader = responsesReader(origin, log)
      const told = request.turn.dialect === 'messages' ? searchBlocks(tell) : tell
      await (isStream(reply, request.stream) ? streamed : whole)(reply, reader, origin, told)
    },
    forward: async (request, sink, limits) => forwardResponses(await post(request, limits), request, sink, origin, log),
    ...(hasFiles && { files: openAiFiles(origin, upstream) }),
    listModels: (limits) => listModels(upstream, limits, origin),
    close: () => upstream.close(),
  }
}

import type { Log } from '@tollgate/telemetry'
import { z } from 'zod'
import type { ModelRequest } from '../../conversation/turn.ts'
import type { CallLimits, ModelProvider } from '../provider.ts'
import { isStream, parseJson } from '../reply.ts'
import type { UpstreamConnection } from '../upstream.ts'
import { brokenAnswer, type Origin } from '../upstream-fault.ts'
import { messagesReader } from './events.ts'
import { anthropicFiles } from './files.ts'
import { forwardMessages } from './forward.ts'
import { listModels } from './list-models.ts'
import { streamed, whole } from './reply.ts'
import { type MessagesSettings, messagesBody } from './request.ts'

/** Anthropic's Messages API and every server that speaks it. */
export function anthropicProvider(
  origin: Origin,
  upstream: UpstreamConnection,
  settings: MessagesSettings,
  log: Log,
): ModelProvider {
  const post = (request: ModelRequest, limits: CallLimits, path = '/v1/messages') => {
    const { dialect, headers } = request.turn
    const body = JSON.stringify(messagesBody(request, settings))
    return upstream.post(path, body, limits, dialect === 'messages' ? headers : undefined)
  }

  return {
    name: origin.name,
    wire: origin.wire,
    async ask(request, limits, tell) {
      const reply = await post(request, limits)
      const reader = messagesReader(origin, log)
      await (isStream(reply, request.stream) ? streamed : whole)(reply, reader, origin, tell)
    },
    forward: async (request, sink, limits) => forwardMessages(await post(request, limits), request, sink, origin, log),
    async countTokens(request, limits) {
      const reply = await post(request, limits, '/v1/messages/count_tokens')
      const read = tokenCount.safeParse(parseJson((await reply.bytes()).toString('utf8'), origin))
      if (!read.success) throw brokenAnswer('unreadable', origin, new Error('no count'))
      return read.data.input_tokens
    },
    ...(settings.hasFiles && { files: anthropicFiles(origin, upstream) }),
    listModels: (limits) => listModels(upstream, limits, origin),
    close: () => upstream.close(),
  }
}

const tokenCount = z.object({ input_tokens: z.int().nonnegative() })

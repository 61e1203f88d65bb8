import type { Log } from '@tollgate/telemetry'
import type { ModelRequest } from '../../conversation/turn.ts'
import type { CallLimits, ModelProvider } from '../provider.ts'
import { isStream } from '../reply.ts'
import type { UpstreamConnection } from '../upstream.ts'
import type { Origin } from '../upstream-fault.ts'
import { messagesReader } from './events.ts'
import { forwardMessages } from './forward.ts'
import { streamed, whole } from './reply.ts'
import { type MessagesSettings, messagesBody } from './request.ts'

/** Anthropic's Messages API and every server that speaks it. */
export function anthropicProvider(
  origin: Origin,
  upstream: UpstreamConnection,
  settings: MessagesSettings,
  log: Log,
): ModelProvider {
  const post = (request: ModelRequest, limits: CallLimits) => {
    const { dialect, headers } = request.turn
    const body = JSON.stringify(messagesBody(request, settings))
    return upstream.post('/v1/messages', body, limits, dialect === 'messages' ? headers : undefined)
  }

  return {
    name: origin.name,
    wire: origin.wire,
    async *ask(request, limits) {
      const reply = await post(request, limits)
      const reader = messagesReader(origin, log)
      yield* isStream(reply, request.stream) ? streamed(reply, reader, origin) : whole(reply, reader, origin)
    },
    forward: async (request, sink, limits) => forwardMessages(await post(request, limits), request, sink, origin, log),
    close: () => upstream.close(),
  }
}

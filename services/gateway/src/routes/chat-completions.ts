import type { FastifyPluginCallback } from 'fastify'
import { allowHalfClose } from '../client-gone.ts'
import { type AnswerNeeds, answer, type ClientDialect } from '../conversation/answer.ts'
import { requestEnds } from '../conversation/request-end.ts'
import { chatError } from '../dialects/chat/errors.ts'
import { parseChat } from '../dialects/chat/parse.ts'
import { renderChat } from '../dialects/chat/render.ts'
import { chatStream } from '../dialects/chat/stream.ts'

const chat: ClientDialect = {
  name: 'chat',
  endpoint: '/api/v1/chat/completions',
  parse: parseChat,
  writer: ({ model, includeUsage }) => chatStream({ model, includeUsage }),
  render: (whole, { model }) => renderChat(whole, model),
  error: chatError,
}

/** `POST /chat/completions`: OpenAI's Chat Completions, with the gateway's tools. `cut` ends answers that still run. */
export const chatCompletionsRoute =
  (needs: AnswerNeeds, cut: AbortSignal): FastifyPluginCallback =>
  (app, _options, done) => {
    allowHalfClose(app.server)
    const endOf = requestEnds(cut)
    app.post(
      '/chat/completions',
      { schema: { tags: ['completions'], summary: 'Complete a chat' } },
      (request, reply) => {
        const end = endOf(reply, needs.settings.requestTimeoutMs)
        return answer(needs, chat, request, reply, end).finally(end.done)
      },
    )
    done()
  }

import type { FastifyPluginCallback } from 'fastify'
import { allowHalfClose } from '../client-gone.ts'
import { type AnswerNeeds, answer, type ClientDialect } from '../conversation/answer.ts'
import { requestEnds } from '../conversation/request-end.ts'
import { chatError } from '../dialects/chat/errors.ts'
import { parseChat } from '../dialects/chat/parse.ts'
import { renderChat } from '../dialects/chat/render.ts'
import { chatRequest } from '../dialects/chat/request.ts'
import { chatStream } from '../dialects/chat/stream.ts'

const chat: ClientDialect = {
  name: 'chat',
  endpoint: '/api/v1/chat/completions',
  parse: parseChat,
  writer: ({ model, includeUsage }) => chatStream({ model, includeUsage }),
  render: (whole, { model }) => renderChat(whole, model),
  error: chatError,
}

const schema = {
  tags: ['completions'],
  summary: 'Complete a chat',
  description:
    'OpenAI’s Chat Completions, streamed or not. Entries of `tools` may be functions of the client’s own and tools that this gateway runs (`GET /api/v1/tools`). Members that are not named here are passed on to the model’s provider.',
  body: chatRequest,
}
/** The schema is for the documentation: a body is parsed once, by its dialect, which knows what to say about it. */
const takesAll = () => () => true

/** `POST /chat/completions`: OpenAI's Chat Completions, with the gateway's tools. `cut` ends answers that still run. */
export const chatCompletionsRoute =
  (needs: AnswerNeeds, cut: AbortSignal): FastifyPluginCallback =>
  (app, _options, done) => {
    allowHalfClose(app.server)
    const endOf = requestEnds(cut)
    app.post('/chat/completions', { schema, validatorCompiler: takesAll }, (request, reply) => {
      const end = endOf(reply, needs.settings.requestTimeoutMs)
      return answer(needs, chat, request, reply, end).finally(end.done)
    })
    done()
  }

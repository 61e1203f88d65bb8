import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify'
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

/** The same, whose stream shows every call of the gateway's tools as it starts and as it ends. */
const playground: ClientDialect = {
  ...chat,
  endpoint: '/api/v1/playground/chat/completions',
  writer: ({ model, includeUsage }) => chatStream({ model, includeUsage, showActivity: true }),
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

const playgroundSchema = {
  ...schema,
  summary: 'Complete a chat, and show the tools at work',
  description:
    'For pages that show what a model does: as `/chat/completions`, and in a stream each call of a tool that this gateway runs has two chunks of its own, with `otari_tool_activity`. Before it: `id`, `phase` (`start`), `tool`, `input`; after it: `id`, `phase` (`end`), `tool`, `status` (`completed` or `failed`), `result`.',
}

/**
 * `POST /chat/completions`: OpenAI's Chat Completions, with the gateway's tools; and the playground's own door to the same.
 * `cut` ends answers that still run.
 */
export const chatCompletionsRoute =
  (needs: AnswerNeeds, cut: AbortSignal): FastifyPluginCallback =>
  (app, _options, done) => {
    allowHalfClose(app.server)
    const endOf = requestEnds(cut)
    const serve = (dialect: ClientDialect) => (request: FastifyRequest, reply: FastifyReply) => {
      const end = endOf(reply, needs.settings.requestTimeoutMs)
      return answer(needs, dialect, request, reply, end).finally(end.done)
    }
    app.post('/chat/completions', { schema, validatorCompiler: takesAll }, serve(chat))
    app.post(
      '/playground/chat/completions',
      { schema: playgroundSchema, validatorCompiler: takesAll },
      serve(playground),
    )
    done()
  }

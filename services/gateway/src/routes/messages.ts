import type { FastifyPluginCallback } from 'fastify'
import { z } from 'zod'
import { allowHalfClose } from '../client-gone.ts'
import { type AnswerNeeds, answer, type ClientDialect } from '../conversation/answer.ts'
import { countTokens } from '../conversation/count-tokens.ts'
import { requestEnds } from '../conversation/request-end.ts'
import { messagesError } from '../dialects/messages/errors.ts'
import { parseMessages } from '../dialects/messages/parse.ts'
import { renderMessages } from '../dialects/messages/render.ts'
import { countTokensRequest, messagesRequest } from '../dialects/messages/request.ts'
import { messagesStream } from '../dialects/messages/stream.ts'

const messages: ClientDialect = {
  name: 'messages',
  endpoint: '/api/v1/messages',
  parse: parseMessages,
  writer: messagesStream,
  render: renderMessages,
  error: messagesError,
}

const schema = {
  tags: ['completions'],
  summary: 'Create a message',
  description:
    'Anthropic’s Messages, streamed or not. Entries of `tools` may be tools of the client’s own and tools that this gateway runs (`GET /api/v1/tools`). Members that are not named here are passed on to a provider that speaks this API.',
  body: messagesRequest,
}

const countSchema = {
  tags: ['completions'],
  summary: 'Count the tokens of a message',
  description:
    'The input tokens that the same request to `/messages` would have, with this gateway’s own tools as the model would be shown them. Providers that speak Anthropic’s API count for themselves; for any other the number is an estimate of four characters to a token. Nothing is charged.',
  body: countTokensRequest,
  response: { 200: z.strictObject({ input_tokens: z.int() }) },
}
/** The schema is for the documentation: a body is parsed once, by its dialect, which knows what to say about it. */
const takesAll = () => () => true

/** `POST /messages` and `/messages/count_tokens`: Anthropic's Messages, with the gateway's tools. `cut` ends answers that still run. */
export const messagesRoute =
  (needs: AnswerNeeds, cut: AbortSignal): FastifyPluginCallback =>
  (app, _options, done) => {
    allowHalfClose(app.server)
    const endOf = requestEnds(cut)
    app.post('/messages', { schema, validatorCompiler: takesAll }, (request, reply) => {
      const end = endOf(reply, needs.settings.requestTimeoutMs)
      return answer(needs, messages, request, reply, end).finally(end.done)
    })
    app.post('/messages/count_tokens', { schema: countSchema, validatorCompiler: takesAll }, async (request, reply) => {
      const end = endOf(reply, needs.settings.requestTimeoutMs)
      return { input_tokens: await countTokens(needs, request, end).finally(end.done) }
    })
    done()
  }

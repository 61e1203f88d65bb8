import type { FastifyPluginCallback, FastifyRequest } from 'fastify'
import { allowHalfClose } from '../client-gone.ts'
import { type AnswerNeeds, answer } from '../conversation/answer.ts'
import { requestEnds } from '../conversation/request-end.ts'
import { responsesDialect } from '../dialects/responses/dialect.ts'
import { responsesRequest } from '../dialects/responses/request.ts'
import type { ResponseStore } from '../stored-responses/store.ts'

const schema = {
  tags: ['completions'],
  summary: 'Create a response',
  description:
    'OpenAI’s Responses, streamed or not, over any model. Entries of `tools` may be functions of the client’s own and tools that this gateway runs (`GET /api/v1/tools`). Members that are not named here are passed on to the model’s provider.',
  body: responsesRequest,
}
/** The schema is for the documentation: a body is parsed once, by its dialect, which knows what to say about it. */
const takesAll = () => () => true

/** `POST /responses`: OpenAI's Responses, with the gateway's tools. `cut` ends answers that still run. */
export const responsesRoute =
  (needs: AnswerNeeds & { responses: ResponseStore }, cut: AbortSignal): FastifyPluginCallback =>
  (app, _options, done) => {
    allowHalfClose(app.server)
    const endOf = requestEnds(cut)
    const { log, settings, responses: store } = needs
    app.post('/responses', { schema, validatorCompiler: takesAll }, (request, reply) => {
      const end = endOf(reply, needs.settings.requestTimeoutMs)
      const dialect = responsesDialect({ baseUrl: baseUrlOf(request, needs), settings, store, log })
      return answer(needs, dialect, request, reply, end).finally(end.done)
    })
    done()
  }

/** Where the client can reach this gateway: what the operator says, else where the request arrived. */
const baseUrlOf = ({ protocol, host }: FastifyRequest, { settings }: AnswerNeeds): string =>
  settings.publicBaseUrl ?? `${protocol}://${host}`

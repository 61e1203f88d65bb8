import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { allowHalfClose } from '../client-gone.ts'
import type { AnswerNeeds } from '../conversation/answer.ts'
import { requestEnds } from '../conversation/request-end.ts'
import type { JsonObject } from '../conversation/turn.ts'
import { chatError } from '../dialects/chat/errors.ts'
import { levelOf } from '../errors.ts'
import { type Relay, relay } from '../relay/relay.ts'

const model = z.string().min(1).max(256).describe('provider:model, a routing policy or an alias')
const user = z.string().max(255).optional()

const embeddings = z.looseObject({
  model,
  input: z.union([z.string(), z.array(z.unknown()).min(1)]),
  encoding_format: z.enum(['float', 'base64']).optional(),
  user,
})
const moderations = z.looseObject({ model, input: z.union([z.string(), z.array(z.unknown()).min(1)]), user })

const described = {
  tags: ['completions'],
  description:
    'Passes through to a provider that speaks OpenAI’s API, with `model` as that provider names it, and back as it came. The tokens that the provider counts are priced like a completion’s.',
}

/** `POST /embeddings` and `POST /moderations`: OpenAI's, priced and otherwise untouched. `cut` ends those that still run. */
export const relayRoutes =
  (needs: AnswerNeeds, cut: AbortSignal): FastifyPluginCallbackZod =>
  (app, _options, done) => {
    allowHalfClose(app.server)
    const endOf = requestEnds(cut)
    const doors: { door: Relay; summary: string; body: typeof embeddings | typeof moderations }[] = [
      { door: { path: '/embeddings', holds: 'data' }, summary: 'Create embeddings', body: embeddings },
      { door: { path: '/moderations', holds: 'results' }, summary: 'Classify content', body: moderations },
    ]
    for (const { door, summary, body } of doors) {
      app.post(door.path, { schema: { ...described, summary, body } }, async (request, reply) => {
        const end = endOf(reply, needs.settings.requestTimeoutMs)
        try {
          const asked = request.body as JsonObject & { model: string }
          const answer = await relay(needs, door, asked, request, end)
          return reply.type('application/json; charset=utf-8').send(answer)
        } catch (thrown) {
          const { status, headers, body: told } = chatError(thrown)
          if (status >= 500) needs.log[levelOf(status)]({ request: request.id, status, err: thrown }, 'request failed')
          return reply.code(status).headers(headers).type('application/json; charset=utf-8').send(JSON.stringify(told))
        } finally {
          end.done()
        }
      })
    }
    done()
  }

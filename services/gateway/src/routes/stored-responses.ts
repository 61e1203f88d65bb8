import { Fault } from '@tollgate/contracts'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import type { Identity } from '../auth/identity.ts'
import { shown } from '../dialects/responses/recall.ts'
import { listed } from '../dialects/responses/stored-items.ts'
import type { Owner, ResponseStore } from '../stored-responses/store.ts'

const byId = z.object({ id: z.string().max(128) })
const tags = ['completions']
const asWhole = z.object({
  stream: z.literal('false', 'a stored response is not streamed: leave it out').optional(),
})
const page = z.object({
  limit: z.coerce.number().int().min(1).max(100).default(20),
  order: z.enum(['asc', 'desc']).default('desc'),
  /** The id of the item that the page begins behind. */
  after: z.string().max(256).optional(),
})
const items = z.array(z.looseObject({ id: z.string() }))
const itemPage = z.object({
  object: z.literal('list'),
  data: items,
  first_id: z.string().nullable(),
  last_id: z.string().nullable(),
  has_more: z.boolean(),
})

/** `/responses/{id}`: a stored response again, what it was asked with, and its removal; only ever one's own. */
export const storedResponseRoutes =
  ({ responses }: { responses: ResponseStore }): FastifyPluginCallbackZod =>
  (app, _options, done) => {
    app.get(
      '/responses/:id',
      { schema: { tags, summary: 'Read a stored response', params: byId, querystring: asWhole } },
      async ({ identity, params: { id } }, reply) => {
        const { body } = await found(identity, id)
        // as the text that it was stored in
        return reply.type('application/json; charset=utf-8').send(body)
      },
    )

    app.get(
      '/responses/:id/input_items',
      {
        schema: {
          tags,
          summary: 'List the items a response was asked with',
          params: byId,
          querystring: page,
          response: { 200: itemPage },
        },
      },
      async ({ identity, params: { id }, query }) => {
        const { input } = await found(identity, id)
        return pageOf(items.parse(JSON.parse(input).map(listed)), query)
      },
    )

    app.delete(
      '/responses/:id',
      {
        schema: {
          tags,
          summary: 'Delete a stored response',
          params: byId,
          response: { 200: z.object({ id: z.string(), object: z.literal('response'), deleted: z.literal(true) }) },
        },
      },
      async ({ identity, params: { id } }) => {
        if (!(await responses.remove(ownerOf(identity), id))) throw unknown(id)
        return { id, object: 'response' as const, deleted: true as const }
      },
    )
    done()

    async function found(identity: Identity, id: string) {
      const response = await responses.find(ownerOf(identity), id)
      if (response === undefined) throw unknown(id)
      return response
    }
  }

const ownerOf = ({ kind, organization, workspace, user }: Identity): Owner => ({
  organization,
  workspace,
  user: kind === 'master' ? null : user,
})

const unknown = (id: string): Fault => new Fault('not_found', `Response with id '${shown(id)}' not found.`)

function pageOf(all: z.output<typeof items>, { limit, order, after }: z.output<typeof page>) {
  const ordered = order === 'asc' ? all : all.toReversed()
  const from = after === undefined ? 0 : ordered.findIndex(({ id }) => id === after) + 1
  if (after !== undefined && from === 0) throw new Fault('invalid_request', "'after' names no item of this response")
  const data = ordered.slice(from, from + limit)
  return {
    object: 'list' as const,
    data,
    first_id: data.at(0)?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: from + limit < ordered.length,
  }
}

import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { operatorOnly } from '../auth/authenticate.ts'
import type { Identities } from '../auth/identities.ts'
import type { KeyStore, NewKey } from '../auth/key-store.ts'
import { changes, created, membersOf, show, shown, shownOnce } from './key-shape.ts'
import { listOf, paging } from './wire.ts'

const byId = z.object({ id: z.string().max(64) })
const filter = z.strictObject({ user_id: z.string().optional(), workspace_id: z.string().optional(), ...paging })
const tags = ['keys']

/** `/keys`: made, listed, changed, rotated and removed by the operator; the key itself is shown when it is made. */
export const keyRoutes =
  ({ keys, identities }: { keys: KeyStore; identities: Identities }): FastifyPluginCallbackZod =>
  (app, _options, done) => {
    app.addHook('onRequest', operatorOnly)

    app.post(
      '/keys',
      { schema: { tags, summary: 'Make a key', body: created, response: { 200: shownOnce } } },
      async ({ body: { user_id, workspace_id, ...wanted } }) => {
        const made = await keys.create(user_id, workspace_id, membersOf(wanted))
        identities.changed(made.row.id)
        return showOnce(made)
      },
    )

    app.get(
      '/keys',
      { schema: { tags, summary: 'List keys, newest first', querystring: filter, response: { 200: listOf(shown) } } },
      async ({ query: { user_id, workspace_id, skip, limit } }) => {
        const { rows, count } = await keys.list({ user: user_id, workspace: workspace_id, skip, limit })
        return { data: rows.map(show), count }
      },
    )

    app.get(
      '/keys/:id',
      { schema: { tags, summary: 'Show a key', params: byId, response: { 200: shown } } },
      async ({ params: { id } }) => show(await keys.find(id)),
    )

    app.patch(
      '/keys/:id',
      { schema: { tags, summary: 'Change a key', params: byId, body: changes, response: { 200: shown } } },
      async ({ params: { id }, body }) => {
        const row = await keys.change(id, membersOf(body))
        identities.changed(id)
        return show(row)
      },
    )

    app.post(
      '/keys/:id/rotate',
      {
        schema: {
          tags,
          summary: 'Give a key a new secret; the old one ends',
          params: byId,
          response: { 200: shownOnce },
        },
      },
      async ({ params: { id } }) => {
        const made = await keys.rotate(id)
        identities.changed(id)
        return showOnce(made)
      },
    )

    app.delete(
      '/keys/:id',
      { schema: { tags, summary: 'Remove a key', params: byId } },
      async ({ params: { id } }, reply) => {
        await keys.remove(id)
        identities.changed(id)
        return reply.code(204).send()
      },
    )
    done()
  }

const showOnce = ({ row, plaintext }: NewKey): z.input<typeof shownOnce> => ({ ...show(row), key: plaintext })

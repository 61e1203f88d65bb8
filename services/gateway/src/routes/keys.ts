import { Fault } from '@tollgate/contracts'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { isBroader } from '../auth/allowed-models.ts'
import { operatorOnly } from '../auth/authenticate.ts'
import type { Identities } from '../auth/identities.ts'
import { mintKey } from '../auth/secret-key.ts'
import { newId } from '../ids.ts'
import type { GatewayDb } from '../tables.ts'
import { changes, columns, created, type KeyRow, show, shown, shownOnce } from './key-shape.ts'
import { listOf, paging } from './wire.ts'

const byId = z.object({ id: z.string().max(64) })
const tags = ['keys']

/** `/keys`: made, listed, changed, rotated and removed by the operator; the key itself is shown when it is made. */
export const keyRoutes =
  ({ db: { kysely }, identities }: { db: GatewayDb; identities: Identities }): FastifyPluginCallbackZod =>
  (app, _options, done) => {
    app.addHook('onRequest', operatorOnly)

    app.post(
      '/keys',
      { schema: { tags, summary: 'Make a key', body: created, response: { 200: shownOnce } } },
      async ({ body: { name, user_id, workspace_id, ...wanted } }) => {
        const workspace = await findWorkspace(workspace_id)
        await checkModels(workspace.organization, user_id, wanted.allowed_models)
        const made = mintKey()
        const row = await kysely
          .insertInto('gateway.keys')
          .values({
            ...columns(wanted),
            ...(name === undefined || wanted.key_name !== undefined ? {} : { name }),
            id: newId(),
            organization: workspace.organization,
            workspace: workspace.id,
            user_id,
            hash: made.hash,
            prefix: made.prefix,
          })
          .returningAll()
          .executeTakeFirstOrThrow()
        identities.changed(row.id)
        return { ...show(row), key: made.plaintext }
      },
    )

    app.get(
      '/keys',
      {
        schema: {
          tags,
          summary: 'List keys, newest first',
          querystring: z.strictObject({
            user_id: z.string().optional(),
            workspace_id: z.string().optional(),
            ...paging,
          }),
          response: { 200: listOf(shown) },
        },
      },
      async ({ query: { user_id, workspace_id, skip, limit } }) => {
        let found = kysely.selectFrom('gateway.keys')
        if (user_id !== undefined) found = found.where('user_id', '=', user_id)
        if (workspace_id !== undefined) found = found.where('workspace', '=', workspace_id)
        const { count } = await found.select((e) => e.fn.countAll<bigint>().as('count')).executeTakeFirstOrThrow()
        const rows = await found
          .selectAll()
          .orderBy('created_at', 'desc')
          .orderBy('id', 'desc')
          .offset(skip)
          .limit(limit)
          .execute()
        return { data: rows.map(show), count: Number(count) }
      },
    )

    app.get(
      '/keys/:id',
      { schema: { tags, summary: 'Show a key', params: byId, response: { 200: shown } } },
      async ({ params: { id } }) => show(await findKey(id)),
    )

    app.patch(
      '/keys/:id',
      { schema: { tags, summary: 'Change a key', params: byId, body: changes, response: { 200: shown } } },
      async ({ params: { id }, body: { is_active, ...wanted } }) => {
        const before = await findKey(id)
        await checkModels(before.organization, before.user_id, wanted.allowed_models)
        const set = { ...columns(wanted), ...(is_active === undefined ? {} : { active: is_active }) }
        return show(Object.keys(set).length === 0 ? before : await write(id, set))
      },
    )

    app.post(
      '/keys/:id/rotate',
      {
        schema: {
          tags,
          summary: 'Give a key a new secret; the old one ends now',
          params: byId,
          response: { 200: shownOnce },
        },
      },
      async ({ params: { id } }) => {
        const made = mintKey()
        const row = await write(id, { hash: made.hash, prefix: made.prefix })
        return { ...show(row), key: made.plaintext }
      },
    )

    app.delete(
      '/keys/:id',
      { schema: { tags, summary: 'Remove a key', params: byId, response: { 204: z.undefined() } } },
      async ({ params: { id } }, reply) => {
        const { numDeletedRows } = await kysely.deleteFrom('gateway.keys').where('id', '=', id).executeTakeFirst()
        if (numDeletedRows === 0n) throw unknownKey()
        identities.changed(id)
        return reply.code(204).send()
      },
    )
    done()

    async function write(id: string, set: Partial<KeyRow>): Promise<KeyRow> {
      const row = await kysely
        .updateTable('gateway.keys')
        .set(set)
        .where('id', '=', id)
        .returningAll()
        .executeTakeFirst()
      if (!row) throw unknownKey()
      identities.changed(id)
      return row
    }

    async function findKey(id: string): Promise<KeyRow> {
      const row = await kysely.selectFrom('gateway.keys').selectAll().where('id', '=', id).executeTakeFirst()
      if (!row) throw unknownKey()
      return row
    }

    async function findWorkspace(id: string) {
      const row = await kysely
        .selectFrom('gateway.workspaces')
        .select(['id', 'organization'])
        .where('id', '=', id)
        .executeTakeFirst()
      if (!row) throw new Fault('not_found', `Workspace '${id}' not found`)
      return row
    }

    /** A key may narrow what its user may use, and never widen it. */
    async function checkModels(organization: string, id: string, list: string[] | null | undefined): Promise<void> {
      const user = await kysely
        .selectFrom('gateway.users')
        .select('allowed_models')
        .where('organization', '=', organization)
        .where('id', '=', id)
        .executeTakeFirst()
      if (!user) throw new Fault('not_found', `User '${id}' not found`)
      if (list && isBroader(list, user.allowed_models)) {
        throw new Fault('invalid_request', `allowed_models of a key may not be broader than those of its user '${id}'`)
      }
    }
  }

const unknownKey = () => new Fault('not_found', 'Key not found')

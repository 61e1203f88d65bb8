import { Fault } from '@tollgate/contracts'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import type { Selectable } from 'kysely'
import { z } from 'zod'
import { modelPattern } from '../auth/allowed-models.ts'
import { operatorOnly } from '../auth/authenticate.ts'
import type { Identities } from '../auth/identities.ts'
import { DEFAULT_ORGANIZATION, type GatewayDb, type Tables } from '../tables.ts'
import { listOf, metadata, paging, shortText } from './wire.ts'

const changeable = {
  alias: shortText.nullable(),
  blocked: z.boolean(),
  allowed_models: z.array(modelPattern).max(500).nullable(),
  allowed_tools: z.array(shortText).max(500).nullable(),
  metadata,
}
const created = z.strictObject({ user_id: shortText, ...z.object(changeable).partial().shape })
const changes = z.strictObject(changeable).partial()

const shown = z.strictObject({
  user_id: z.string(),
  alias: z.string().nullable(),
  blocked: z.boolean(),
  allowed_models: z.array(z.string()).nullable(),
  allowed_tools: z.array(z.string()).nullable(),
  metadata: z.record(z.string(), z.unknown()),
  created_at: z.iso.datetime(),
})

const byId = z.object({ id: shortText })
const tags = ['users']
type UserRow = Selectable<Tables['gateway.users']>

/** `/users`: whom keys belong to and whose requests a block stops. */
export const userRoutes =
  ({ db: { kysely }, identities }: { db: GatewayDb; identities: Identities }): FastifyPluginCallbackZod =>
  (app, _options, done) => {
    app.addHook('onRequest', operatorOnly)

    app.post(
      '/users',
      { schema: { tags, summary: 'Make a user', body: created, response: { 200: shown } } },
      async ({ body: { user_id, ...wanted } }) => {
        const row = await kysely
          .insertInto('gateway.users')
          .values({ ...said(wanted), organization: DEFAULT_ORGANIZATION, id: user_id })
          .onConflict((conflict) => conflict.doNothing())
          .returningAll()
          .executeTakeFirst()
        if (!row) throw new Fault('conflict', `User '${user_id}' exists`)
        identities.changed()
        return show(row)
      },
    )

    app.get(
      '/users',
      {
        schema: { tags, summary: 'List users', querystring: z.strictObject(paging), response: { 200: listOf(shown) } },
      },
      async ({ query: { skip, limit } }) => {
        const found = kysely.selectFrom('gateway.users').where('organization', '=', DEFAULT_ORGANIZATION)
        const { count } = await found.select((e) => e.fn.countAll<bigint>().as('count')).executeTakeFirstOrThrow()
        const rows = await found.selectAll().orderBy('id').offset(skip).limit(limit).execute()
        return { data: rows.map(show), count: Number(count) }
      },
    )

    app.get(
      '/users/:id',
      { schema: { tags, summary: 'Show a user', params: byId, response: { 200: shown } } },
      async ({ params: { id } }) => {
        const row = await kysely
          .selectFrom('gateway.users')
          .selectAll()
          .where('organization', '=', DEFAULT_ORGANIZATION)
          .where('id', '=', id)
          .executeTakeFirst()
        if (!row) throw unknownUser(id)
        return show(row)
      },
    )

    app.patch(
      '/users/:id',
      {
        schema: {
          tags,
          summary: 'Change a user; what their keys may use is narrowed with them',
          params: byId,
          body: changes,
          response: { 200: shown },
        },
      },
      async ({ params: { id }, body }) => {
        const row = await kysely
          .updateTable('gateway.users')
          // a write that changes nothing still finds out whether there is such a user
          .set({ id, ...said(body) })
          .where('organization', '=', DEFAULT_ORGANIZATION)
          .where('id', '=', id)
          .returningAll()
          .executeTakeFirst()
        if (!row) throw unknownUser(id)
        identities.changed()
        return show(row)
      },
    )
    done()
  }

const unknownUser = (id: string) => new Fault('not_found', `User '${id}' not found`)

/** What was not said is left out, so that it keeps its value or its default. */
const said = (wanted: z.output<typeof changes>) =>
  Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined)) as Partial<UserRow>

const show = (row: UserRow): z.input<typeof shown> => ({
  user_id: row.id,
  alias: row.alias,
  blocked: row.blocked,
  allowed_models: row.allowed_models,
  allowed_tools: row.allowed_tools,
  metadata: row.metadata,
  created_at: row.created_at.toISOString(),
})

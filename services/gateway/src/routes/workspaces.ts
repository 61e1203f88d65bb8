import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import type { Selectable } from 'kysely'
import { z } from 'zod'
import { operatorOnly } from '../auth/authenticate.ts'
import { newId } from '../ids.ts'
import { DEFAULT_ORGANIZATION, type GatewayDb, type Tables } from '../tables.ts'
import { listOf, paging, shortText } from './wire.ts'

const shown = z.strictObject({
  id: z.string(),
  name: z.string(),
  organization_id: z.string(),
  created_at: z.iso.datetime(),
})
const tags = ['workspaces']

/** `/workspaces`: what keys belong to, and policies hold for; made and listed by the operator. */
export const workspaceRoutes =
  ({ db: { kysely } }: { db: GatewayDb }): FastifyPluginCallbackZod =>
  (app, _options, done) => {
    app.addHook('onRequest', operatorOnly)

    app.post(
      '/workspaces',
      {
        schema: {
          tags,
          summary: 'Make a workspace',
          body: z.strictObject({ name: shortText }),
          response: { 200: shown },
        },
      },
      async ({ body: { name } }) => {
        const row = { id: newId(), organization: DEFAULT_ORGANIZATION, name }
        return show(await kysely.insertInto('gateway.workspaces').values(row).returningAll().executeTakeFirstOrThrow())
      },
    )

    app.get(
      '/workspaces',
      {
        schema: {
          tags,
          summary: 'List workspaces',
          querystring: z.strictObject(paging),
          response: { 200: listOf(shown) },
        },
      },
      async ({ query: { skip, limit } }) => {
        const found = kysely.selectFrom('gateway.workspaces')
        const { count } = await found.select((e) => e.fn.countAll<bigint>().as('count')).executeTakeFirstOrThrow()
        const rows = await found.selectAll().orderBy('created_at').orderBy('id').offset(skip).limit(limit).execute()
        return { data: rows.map(show), count: Number(count) }
      },
    )
    done()
  }

const show = ({ id, name, organization, created_at }: Selectable<Tables['gateway.workspaces']>) => ({
  id,
  name,
  organization_id: organization,
  created_at: created_at.toISOString(),
})

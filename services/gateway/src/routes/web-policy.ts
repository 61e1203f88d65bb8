import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import type { Selectable } from 'kysely'
import { z } from 'zod'
import type { JsonObject } from '../conversation/turn.ts'
import { refuseUnseen } from '../policies/seen-workspace.ts'
import type { Tables } from '../tables.ts'
import { bareHost, MOST_DOMAINS } from '../tools/domains.ts'
import type { PolicyNeeds } from './code-policy.ts'
import { hint, jsonText, shortText } from './wire.ts'

/** W-42. Kept as hosts are compared (W-34): lower case, in ASCII, without a dot at the end. */
const domains = z
  .array(
    z
      .string()
      .max(253)
      .transform((text, context) => {
        const host = bareHost(text)
        if (host !== undefined) return host
        context.addIssue({ code: 'custom', message: 'must be a bare host name, such as example.com' })
        return z.NEVER
      }),
  )
  .max(MOST_DOMAINS)

const MOST_OPTIONS = 30
const MOST_OPTION_BYTES = 4_096
const options = jsonText
  .refine((value) => Object.keys(value).length <= MOST_OPTIONS, `must have at most ${MOST_OPTIONS} members`)
  .refine(
    (value) => Buffer.byteLength(JSON.stringify(value)) <= MOST_OPTION_BYTES,
    `must be at most ${MOST_OPTION_BYTES} bytes of JSON`,
  )

const body = z.strictObject({
  enabled: z.boolean().describe('False closes every door to the web: searches and fetches, with a model or without'),
  max_results: z.int().min(1).max(1_000).nullable().default(null).describe('Most results of a search'),
  allowed_domains: domains.nullable().default(null).describe('Only these, and names under them'),
  blocked_domains: domains.nullable().default(null),
  purpose_hint: hint.nullable().default(null).describe('Where a declaration has no hint of its own'),
  provider_options: options.nullable().default(null).describe('Options of the search provider'),
})

const shown = z.strictObject({
  workspace_id: z.string(),
  configured: z.boolean().describe('Whether the workspace has a policy of its own'),
  enabled: z.boolean(),
  max_results: z.int().nullable(),
  allowed_domains: z.array(z.string()).nullable(),
  blocked_domains: z.array(z.string()).nullable(),
  purpose_hint: z.string().nullable(),
  provider_options: z.record(z.string(), z.unknown()).nullable(),
  web_search_configured: z.boolean(),
  default_enabled: z.boolean().describe('What holds without a policy'),
  created_at: z.iso.datetime().nullable(),
  updated_at: z.iso.datetime().nullable(),
})

const PATH = '/workspaces/:workspace_id/web-search'
const params = z.object({ workspace_id: shortText })
const schema = { tags: ['workspaces'], params, response: { 200: shown } }
type Row = Selectable<Tables['gateway.web_access_policies']>

/** `/workspaces/{id}/web-search`: where a workspace may go on the web, if anywhere (W-30). */
export const webPolicyRoutes =
  ({ db, policies, settings, capabilities }: PolicyNeeds): FastifyPluginCallbackZod =>
  (app, _options, done) => {
    const { kysely } = db

    app.get(
      PATH,
      { schema: { ...schema, summary: 'Show a workspace’s web-access policy' } },
      async ({ identity, params: { workspace_id: id } }) => {
        await refuseUnseen(db, identity, id, 'read')
        const stored = kysely.selectFrom('gateway.web_access_policies').where('workspace', '=', id)
        return show(id, await stored.selectAll().executeTakeFirst())
      },
    )

    app.put(
      PATH,
      { schema: { ...schema, summary: 'Set a workspace’s web-access policy, as a whole', body } },
      async ({ identity, params: { workspace_id: id }, body: wanted }) => {
        await refuseUnseen(db, identity, id, 'write')
        const { provider_options } = wanted
        const members = { ...wanted, provider_options: provider_options && JSON.stringify(provider_options) }
        const row = await kysely
          .insertInto('gateway.web_access_policies')
          .values({ workspace: id, ...members })
          .onConflict((conflict) => conflict.column('workspace').doUpdateSet({ ...members, updated_at: new Date() }))
          .returningAll()
          .executeTakeFirstOrThrow()
        policies.changed(id)
        return show(id, row)
      },
    )

    app.delete(
      PATH,
      { schema: { ...schema, summary: 'Drop a workspace’s web-access policy; the deployment’s default holds then' } },
      async ({ identity, params: { workspace_id: id } }) => {
        await refuseUnseen(db, identity, id, 'write')
        await kysely.deleteFrom('gateway.web_access_policies').where('workspace', '=', id).execute()
        policies.changed(id)
        return show(id, undefined)
      },
    )
    done()

    async function show(id: string, row: Row | undefined): Promise<z.input<typeof shown>> {
      const { search } = await capabilities()
      const fallback = settings.webSearchWorkspaceDefault
      return {
        workspace_id: id,
        configured: row !== undefined,
        enabled: row?.enabled ?? fallback,
        max_results: row?.max_results ?? null,
        allowed_domains: row?.allowed_domains ?? null,
        blocked_domains: row?.blocked_domains ?? null,
        purpose_hint: row?.purpose_hint ?? null,
        provider_options: (row?.provider_options as JsonObject | null | undefined) ?? null,
        web_search_configured: search !== null,
        default_enabled: fallback,
        created_at: row?.created_at.toISOString() ?? null,
        updated_at: row?.updated_at.toISOString() ?? null,
      }
    }
  }

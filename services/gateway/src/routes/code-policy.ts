import { Fault } from '@tollgate/contracts'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import type { Selectable } from 'kysely'
import { z } from 'zod'
import type { KnownPolicies } from '../policies/known-policies.ts'
import { allowedImages, codeTools, servedCodeTools } from '../policies/refusals.ts'
import { refuseUnseen } from '../policies/seen-workspace.ts'
import type { GatewaySettings } from '../settings.ts'
import type { GatewayDb, Tables } from '../tables.ts'
import type { Capabilities } from '../tools/capabilities.ts'
import { hint, shortText } from './wire.ts'

export interface PolicyNeeds {
  db: GatewayDb
  policies: KnownPolicies
  settings: GatewaySettings
  capabilities(): Promise<Capabilities>
}

/** W-02: over the deployment's own limits it would narrow nothing. */
const body = z.strictObject({
  enabled: z.boolean().describe('False refuses code execution to the workspace'),
  max_iterations: z.int().min(1).max(25).nullable().default(null).describe('Most rounds of a request that runs code'),
  exec_timeout_s: z.int().min(1).max(60).nullable().default(null).describe('Most seconds of one run'),
  default_purpose_hint: hint.nullable().default(null).describe('Where a declaration has no hint of its own'),
  tools: z.array(z.enum(codeTools)).max(10).nullable().default(null).describe('Kinds of calls that may be made'),
  image: z.string().min(1).max(512).nullable().default(null).describe('One of allowed_images'),
  executor: z.enum(['auto', 'otari', 'provider']).nullable().default(null).describe('Who runs a provider’s code tool'),
})

const shown = z.strictObject({
  workspace_id: z.string(),
  configured: z.boolean().describe('Whether the workspace has a policy of its own'),
  enabled: z.boolean(),
  max_iterations: z.int().nullable(),
  exec_timeout_s: z.int().nullable(),
  default_purpose_hint: z.string().nullable(),
  tools: z.array(z.string()).nullable(),
  image: z.string().nullable(),
  executor: z.string().nullable(),
  default_enabled: z.boolean().describe('What holds without a policy'),
  sandbox_configured: z.boolean(),
  available_tools: z.array(z.string()),
  allowed_images: z.array(z.string()),
  created_at: z.iso.datetime().nullable(),
  updated_at: z.iso.datetime().nullable(),
})

const PATH = '/workspaces/:workspace_id/code-execution-policy'
const params = z.object({ workspace_id: shortText })
const schema = { tags: ['workspaces'], params, response: { 200: shown } }
type Row = Selectable<Tables['gateway.code_execution_policies']>

/** `/workspaces/{id}/code-execution-policy`: what a workspace may do with code (W-01). */
export const codePolicyRoutes =
  ({ db, policies, settings, capabilities }: PolicyNeeds): FastifyPluginCallbackZod =>
  (app, _options, done) => {
    const { kysely } = db

    app.get(
      PATH,
      { schema: { ...schema, summary: 'Show a workspace’s code-execution policy' } },
      async ({ identity, params: { workspace_id: id } }) => {
        await refuseUnseen(db, identity, id, 'read')
        const stored = kysely.selectFrom('gateway.code_execution_policies').where('workspace', '=', id)
        return show(id, await stored.selectAll().executeTakeFirst())
      },
    )

    app.put(
      PATH,
      { schema: { ...schema, summary: 'Set a workspace’s code-execution policy, as a whole', body } },
      async ({ identity, params: { workspace_id: id }, body: wanted }) => {
        await refuseUnseen(db, identity, id, 'write')
        refuseUnserved(wanted)
        const row = await kysely
          .insertInto('gateway.code_execution_policies')
          .values({ workspace: id, ...wanted })
          .onConflict((conflict) => conflict.column('workspace').doUpdateSet({ ...wanted, updated_at: new Date() }))
          .returningAll()
          .executeTakeFirstOrThrow()
        policies.changed(id)
        return show(id, row)
      },
    )

    app.delete(
      PATH,
      {
        schema: { ...schema, summary: 'Drop a workspace’s code-execution policy; the deployment’s default holds then' },
      },
      async ({ identity, params: { workspace_id: id } }) => {
        await refuseUnseen(db, identity, id, 'write')
        await kysely.deleteFrom('gateway.code_execution_policies').where('workspace', '=', id).execute()
        policies.changed(id)
        return show(id, undefined)
      },
    )
    done()

    /** W-04, W-05: what would refuse every request of the workspace is refused here. */
    function refuseUnserved({ tools, image }: z.output<typeof body>): void {
      if (tools !== null && !tools.some((tool) => servedCodeTools.includes(tool))) {
        throw new Fault(
          'invalid_request',
          `A code-execution tool list must name at least one tool this deployment serves (${servedCodeTools.join(', ')}). Use enabled=false to refuse the workspace instead.`,
        )
      }
      const images = allowedImages(settings)
      if (image === null || images.includes(image)) return
      const which = images.length === 0 ? 'this deployment allows none' : `allowed are: ${images.join(', ')}`
      throw new Fault('invalid_request', `image is not one that a workspace may pin; ${which}`)
    }

    async function show(id: string, row: Row | undefined): Promise<z.input<typeof shown>> {
      const { sandbox } = await capabilities()
      const fallback = settings.codeExecutionWorkspaceDefault
      return {
        workspace_id: id,
        configured: row !== undefined,
        enabled: row?.enabled ?? fallback,
        max_iterations: row?.max_iterations ?? null,
        exec_timeout_s: row?.exec_timeout_s ?? null,
        default_purpose_hint: row?.default_purpose_hint ?? null,
        tools: row?.tools ?? null,
        image: row?.image ?? null,
        executor: row?.executor ?? null,
        default_enabled: fallback,
        sandbox_configured: sandbox,
        available_tools: [...servedCodeTools],
        allowed_images: allowedImages(settings),
        created_at: row?.created_at.toISOString() ?? null,
        updated_at: row?.updated_at.toISOString() ?? null,
      }
    }
  }

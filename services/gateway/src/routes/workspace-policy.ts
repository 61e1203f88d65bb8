import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import type { Generated, Insertable, Selectable } from 'kysely'
import { z } from 'zod'
import type { KnownPolicies } from '../policies/known-policies.ts'
import { refuseUnseen } from '../policies/seen-workspace.ts'
import type { GatewaySettings } from '../settings.ts'
import type { GatewayDb, Tables } from '../tables.ts'
import type { Capabilities } from '../tools/capabilities.ts'
import { shortText } from './wire.ts'

export interface PolicyNeeds {
  db: GatewayDb
  policies: KnownPolicies
  settings: GatewaySettings
  capabilities(): Promise<Capabilities>
}

type PolicyTable = 'gateway.code_execution_policies' | 'gateway.web_access_policies'
type Row<T extends PolicyTable> = Selectable<Tables[T]>
/** What both tables have. */
interface Common {
  workspace: string
  enabled: boolean
  created_at: Generated<Date>
  updated_at: Generated<Date>
}
type Columns<T extends PolicyTable> = Omit<Insertable<Tables[T]>, keyof Common> & { enabled: boolean }

/** One kind of policy, of which a workspace has at most one. */
export interface PolicyKind<T extends PolicyTable, B extends z.ZodType, S extends z.ZodRawShape> {
  table: T
  /** Below `/workspaces/{id}`. */
  path: string
  /** What it is called, as in “a workspace’s web-access policy”. */
  name: string
  body: B
  /** What is shown of it beside what every policy has. */
  shape: S
  /** W-07, W-40: what holds without one. */
  enabledByDefault(): boolean
  /** What is written for a body; throws where that would refuse every request of the workspace. */
  columns(wanted: z.output<B>): Columns<T>
  show(row: Row<T> | undefined): Promise<z.input<z.ZodObject<S>>>
}

/** What is shown of every policy. */
const common = {
  workspace_id: z.string(),
  configured: z.boolean().describe('Whether the workspace has a policy of its own'),
  enabled: z.boolean(),
  default_enabled: z.boolean().describe('What holds without a policy'),
  created_at: z.iso.datetime().nullable(),
  updated_at: z.iso.datetime().nullable(),
}

/** Shows, sets and drops a workspace's policy of one kind, by the rules that hold for all of them. */
export const workspacePolicyRoutes =
  <T extends PolicyTable, B extends z.ZodType, S extends z.ZodRawShape>(
    { db, policies }: Pick<PolicyNeeds, 'db' | 'policies'>,
    kind: PolicyKind<T, B, S>,
  ): FastifyPluginCallbackZod =>
  (app, _options, done) => {
    const { name } = kind
    // which table and which shapes is the kind's to know: here they are all alike
    const table: string = kind.table
    const body: z.ZodType = kind.body
    const shown: z.ZodType = z.strictObject({ ...common, ...kind.shape })
    const { kysely } = db.typed<Record<string, Common>>()
    const path = `/workspaces/:workspace_id/${kind.path}`
    const params = z.object({ workspace_id: shortText })
    const schema = { tags: ['workspaces'], params, response: { 200: shown } }

    app.get(
      path,
      { schema: { ...schema, summary: `Show a workspace’s ${name}` } },
      async ({ identity, params: { workspace_id: id } }) => {
        await refuseUnseen(db, identity, id, 'read')
        return show(id, await kysely.selectFrom(table).where('workspace', '=', id).selectAll().executeTakeFirst())
      },
    )
    app.put(
      path,
      { schema: { ...schema, summary: `Set a workspace’s ${name}, as a whole`, body } },
      async ({ identity, params: { workspace_id: id }, body: wanted }) => {
        await refuseUnseen(db, identity, id, 'write')
        const columns: Pick<Common, 'enabled'> = kind.columns(wanted as z.output<B>)
        const row = await kysely
          .insertInto(table)
          .values({ workspace: id, ...columns })
          .onConflict((conflict) => conflict.column('workspace').doUpdateSet({ ...columns, updated_at: new Date() }))
          .returningAll()
          .executeTakeFirstOrThrow()
        policies.changed(id)
        return show(id, row)
      },
    )
    app.delete(
      path,
      { schema: { ...schema, summary: `Drop a workspace’s ${name}; the deployment’s default holds then` } },
      async ({ identity, params: { workspace_id: id } }) => {
        await refuseUnseen(db, identity, id, 'write')
        await kysely.deleteFrom(table).where('workspace', '=', id).execute()
        policies.changed(id)
        return show(id, undefined)
      },
    )
    done()

    /** The row is the table's own, whole. */
    async function show(id: string, row: Selectable<Common> | undefined) {
      const fallback = kind.enabledByDefault()
      return {
        workspace_id: id,
        configured: row !== undefined,
        enabled: row?.enabled ?? fallback,
        default_enabled: fallback,
        created_at: row?.created_at.toISOString() ?? null,
        updated_at: row?.updated_at.toISOString() ?? null,
        ...(await kind.show(row as Row<T> | undefined)),
      }
    }
  }

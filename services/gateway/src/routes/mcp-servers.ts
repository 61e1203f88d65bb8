import { Fault } from '@tollgate/contracts'
import type { Secrets } from '@tollgate/secrets'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { operatorOnly } from '../auth/authenticate.ts'
import { addressProblem, judgeServers, type Reach } from '../mcp-client/addresses.ts'
import { serverName, serverToken, serverTools, serverUrl } from '../mcp-client/declared.ts'
import type { StoredServer, StoredServers } from '../mcp-client/stored.ts'
import { refuseUnseen } from '../policies/seen-workspace.ts'
import type { GatewaySettings } from '../settings.ts'
import type { GatewayDb } from '../tables.ts'
import { hint, listOf, shortText } from './wire.ts'

export interface McpServerNeeds {
  db: GatewayDb
  stored: StoredServers
  secrets: Secrets
  settings: GatewaySettings
  reach?: Reach
}

/** A database holds no NUL. */
const tools = z.array(serverTools.element.regex(/^[^\0\p{Cs}]*$/u, 'must have no NUL')).max(200)
const members = {
  name: serverName,
  url: serverUrl.describe('Streamable HTTP; https:// where there is a token'),
  purpose_hint: hint.nullable().describe('What a model is told its tools are for'),
  allowed_tools: tools.nullable().describe('Null: all of them; an empty list: none'),
  enabled: z.boolean().describe('False: requests that name it go on without it'),
}
const created = z.strictObject({
  ...members,
  authorization_token: serverToken.nullish().describe('Sent as a bearer token; kept encrypted and never shown'),
  purpose_hint: members.purpose_hint.default(null),
  allowed_tools: members.allowed_tools.default(null),
  enabled: members.enabled.default(true),
})
const changes = z
  .strictObject({
    ...members,
    authorization_token: z.union([z.literal(''), serverToken]).describe('Left out: stays; empty: none from now on'),
  })
  .partial()

const shown = z.strictObject({
  id: z.string(),
  workspace_id: z.string(),
  name: z.string(),
  url: z.string(),
  has_token: z.boolean(),
  purpose_hint: z.string().nullable(),
  allowed_tools: z.array(z.string()).nullable(),
  enabled: z.boolean(),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
})

const counts = z.strictObject({ reencrypted: z.int(), unreadable: z.int(), skipped: z.int() })

const PATH = '/workspaces/:workspace_id/mcp-servers'
const params = z.object({ workspace_id: shortText })
const one = z.object({ workspace_id: shortText, id: shortText })
const tags = ['workspaces']

/** `/workspaces/{id}/mcp-servers`: servers that requests of the workspace may name by their ids (M-12). */
export const mcpServerRoutes =
  ({ db, stored, secrets, settings, reach = {} }: McpServerNeeds): FastifyPluginCallbackZod =>
  (app, _options, done) => {
    app.get(
      PATH,
      { schema: { tags, summary: 'List the MCP servers of a workspace', params, response: { 200: listOf(shown) } } },
      async ({ identity, params: { workspace_id: workspace } }) => {
        await refuseUnseen(db, identity, workspace, 'read')
        const rows = await stored.list(workspace)
        return { data: rows.map(show), count: rows.length }
      },
    )

    app.post(
      PATH,
      {
        schema: { tags, summary: 'Add an MCP server to a workspace', params, body: created, response: { 200: shown } },
      },
      async ({ identity, params: { workspace_id: workspace }, body: { authorization_token: token, ...row } }) => {
        await refuseUnseen(db, identity, workspace, 'write')
        await refuseAddress(row.url, token != null)
        return show(
          await stored.add(workspace, { ...row, sealed_token: token == null ? null : secrets.encrypt(token) }),
        )
      },
    )

    app.patch(
      `${PATH}/:id`,
      {
        schema: {
          tags,
          summary: 'Change an MCP server of a workspace',
          params: one,
          body: changes,
          response: { 200: shown },
        },
      },
      async ({ identity, params: { workspace_id: workspace, id }, body: { authorization_token: token, ...row } }) => {
        await refuseUnseen(db, identity, workspace, 'write')
        const before = await stored.find(workspace, id)
        const hasToken = token === undefined ? before.sealed_token !== null : token !== ''
        if (row.url !== undefined || token) await refuseAddress(row.url ?? before.url, hasToken)
        const sealed = token === undefined ? {} : { sealed_token: token === '' ? null : secrets.encrypt(token) }
        return show(await stored.change(workspace, id, { ...defined(row), ...sealed }))
      },
    )

    app.delete(
      `${PATH}/:id`,
      { schema: { tags, summary: 'Remove an MCP server from a workspace', params: one } },
      async ({ identity, params: { workspace_id: workspace, id } }, reply) => {
        await refuseUnseen(db, identity, workspace, 'write')
        await stored.remove(workspace, id)
        return reply.code(204).send()
      },
    )
    app.post(
      '/mcp-servers/reencrypt',
      {
        onRequest: operatorOnly,
        schema: {
          tags,
          summary: 'Bring the tokens of all MCP servers under the first secret key',
          response: { 200: counts },
        },
      },
      () => stored.reencrypt(secrets),
    )
    done()

    async function refuseAddress(url: string, hasToken: boolean): Promise<void> {
      const judge = judgeServers(settings, reach)
      const problem = await addressProblem({ url, hasToken }, judge, AbortSignal.timeout(RESOLVE_MS))
      if (problem !== undefined) throw new Fault('invalid_request', `The MCP server cannot be stored: ${problem}`)
    }
  }

const RESOLVE_MS = 10_000

type Defined<T> = { [name in keyof T]: Exclude<T[name], undefined> }
const defined = <T extends object>(row: T): Partial<Defined<T>> =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== undefined)) as Partial<Defined<T>>

const show = (row: StoredServer): z.input<typeof shown> => ({
  id: row.id,
  workspace_id: row.workspace,
  name: row.name,
  url: row.url,
  has_token: row.sealed_token !== null,
  purpose_hint: row.purpose_hint,
  allowed_tools: row.allowed_tools,
  enabled: row.enabled,
  created_at: row.created_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
})

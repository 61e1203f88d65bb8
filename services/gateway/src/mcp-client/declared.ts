import { z } from 'zod'
import { isObject } from '../conversation/json.ts'
import type { Json, JsonObject } from '../conversation/turn.ts'

const MOST_SERVERS = 50

/** A text that can stand in a header field and in a log line. */
const line = z.string().regex(/^[\x21-\x7e]+$/, 'must be visible ASCII characters without blanks')

export const serverName = z
  .string()
  .min(1)
  .max(128)
  .regex(/^[^\p{Cc}\p{Cs}]*$/u, 'must have no control characters and no half of a surrogate pair')
export const serverUrl = z.string().min(1).max(2_048)
export const serverToken = line.max(8_192)
export const serverTools = z.array(z.string().min(1).max(256)).max(200)

/** An entry of `mcp_servers` (M-02). `type` is what clients of Anthropic's API must say of theirs, and says nothing here. */
const inlineServer = z.strictObject({
  type: z.literal('url').optional(),
  name: serverName,
  url: serverUrl,
  authorization_token: serverToken.nullish(),
  purpose_hint: z.string().max(2_048).nullish(),
  allowed_tools: serverTools.nullish(),
  defer_loading: z.boolean().nullish(),
})

/** The members of a request that name MCP servers, the same in every dialect (M-01). */
export const serverMembers = {
  mcp_servers: z.array(inlineServer).max(MOST_SERVERS).nullish(),
  mcp_server_ids: z.array(z.string().min(1).max(128)).max(MOST_SERVERS).nullish(),
}

/** An MCP server as whoever asks for it describes it. */
export interface ServerSettings {
  name: string
  url: string
  token: string | undefined
  /** What the model is told its tools are for. */
  hint: string | undefined
  /** Undefined: all of them (M-03). */
  allowedTools: readonly string[] | undefined
  /** They wait until the model looks for them, where the request declares a search for tools (BR-064). */
  deferred?: boolean
}

/** The MCP servers a request names, to be connected to from here. */
export interface DeclaredServers {
  inline: ServerSettings[]
  /** Of the workspace's own servers, each once. */
  ids: string[]
}

type Members = z.output<z.ZodObject<typeof serverMembers>>

/** Undefined: the request names none, and nothing is spent on them (T-33). */
export function declaredServers({ mcp_servers, mcp_server_ids }: Members): DeclaredServers | undefined {
  const ids = [...new Set(mcp_server_ids ?? [])]
  const inline = (mcp_servers ?? []).map((server) => ({
    name: server.name,
    url: server.url,
    token: server.authorization_token ?? undefined,
    hint: server.purpose_hint?.trim() || undefined,
    allowedTools: server.allowed_tools ?? undefined,
    deferred: server.defer_loading ?? false,
  }))
  return inline.length + ids.length === 0 ? undefined : { inline, ids }
}

/**
 * A Messages body without the `mcp_servers` that its provider connects to, and those: an `mcp_toolset` among its `tools`
 * names each, as Anthropic's own MCP connector has it. They go where the toolset goes, and are nothing of ours.
 */
export function splitProviderServers(body: JsonObject): { body: JsonObject; provider: JsonObject[] } {
  const { mcp_servers: servers, tools } = body
  if (!Array.isArray(servers) || !Array.isArray(tools)) return { body, provider: [] }
  const named = new Set(
    tools.map((tool) => (isObject(tool) && tool.type === 'mcp_toolset' ? tool.mcp_server_name : null)),
  )
  const isProviders = (server: Json): server is JsonObject => isObject(server) && named.has(server.name ?? '')
  const provider = servers.filter(isProviders)
  if (provider.length === 0) return { body, provider }
  return { body: { ...body, mcp_servers: servers.filter((server) => !isProviders(server)) }, provider }
}

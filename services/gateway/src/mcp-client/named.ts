import { Fault } from '@tollgate/contracts'
import type { Secrets } from '@tollgate/secrets'
import type { Log } from '@tollgate/telemetry'
import type { DeclaredServers, ServerSettings } from './declared.ts'
import { noSuchServer, type StoredServer, type StoredServers } from './stored.ts'

/** A server that a request may use, and whose mistake it is when it cannot be. */
export interface NamedServer extends ServerSettings {
  stored: boolean
}

interface Needs {
  stored: Pick<StoredServers, 'known'>
  secrets: Secrets
  log: Log
}

/** The servers that a request names, its own before those of the workspace (M-01), each under a name of its own (M-07). */
export async function namedServers(
  { inline, ids }: DeclaredServers,
  workspace: string,
  needs: Needs,
): Promise<NamedServer[]> {
  const twice = repeated(inline)
  if (twice !== undefined)
    throw new Fault(
      'invalid_request',
      `Duplicate MCP server name '${twice}'. mcp_servers entries must have unique names.`,
    )
  const known = ids.length > 0 ? await needs.stored.known(workspace) : []
  const rows = ids.map((id) => {
    const row = known.find((server) => server.id === id)
    if (!row) throw noSuchServer(id)
    return row
  })
  // one that is switched off is passed over without a word (M-08)
  const stored = rows.filter(({ enabled }) => enabled).map((row) => settingsOf(row, needs))
  if (repeated(stored) !== undefined) throw new Fault('internal', 'Configured MCP servers do not have unique names')
  if (repeated([...inline, ...stored]) !== undefined)
    throw new Fault(
      'invalid_request',
      "A request-supplied MCP server name collides with one of this workspace's stored servers",
    )
  return [...inline.map((server) => ({ ...server, stored: false })), ...stored]
}

function settingsOf(row: StoredServer, { secrets, log }: Needs): NamedServer {
  const { id, name, url, sealed_token: sealed, purpose_hint: hint, allowed_tools: allowedTools } = row
  const token = sealed === null ? undefined : secrets.decrypt(sealed)
  if (sealed !== null && token === undefined) {
    log.error({ server: id }, 'the token of an MCP server cannot be read with OTARI_SECRET_KEY')
    throw new Fault('internal', "A configured MCP server's authorization token could not be read")
  }
  return { name, url, token, hint: hint ?? undefined, allowedTools: allowedTools ?? undefined, stored: true }
}

function repeated(servers: ServerSettings[]): string | undefined {
  const names = new Set<string>()
  return servers.find(({ name }) => names.size === names.add(name).size)?.name
}

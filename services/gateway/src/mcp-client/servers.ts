import { type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { Fault, type Tenancy } from '@tollgate/contracts'
import type { PinnedClient } from '@tollgate/http'
import type { Secrets } from '@tollgate/secrets'
import { counter, type Log } from '@tollgate/telemetry'
import type { GatewaySettings } from '../settings.ts'
import type { Tool } from '../tools/tool.ts'
import { addressProblem, clientOf, judgeServers, type Reach } from './addresses.ts'
import type { DeclaredServers } from './declared.ts'
import { ServerFailure, troubles } from './failure.ts'
import { listTools } from './listing.ts'
import { type NamedServer, namedServers } from './named.ts'
import { serverTool, unusable } from './server-tool.ts'
import { type Limits, openSession, type Session } from './session.ts'
import type { StoredServers } from './stored.ts'

/** `connectMs`: to connect to a server and to read what it offers, all pages of it. `callMs`: one call (M-14). */
const times = { connectMs: 15_000, callMs: 30_000 }
/** What the least of the model APIs takes in one request. */
const MOST_TOOLS = 128

const tracer = trace.getTracer('@tollgate/gateway')
const connections = counter('mcp_connections_total', 'MCP servers that requests connected to, by what came of it', {
  outcome: ['ok', ...troubles],
})

export interface ServersNeeds {
  stored: StoredServers
  secrets: Secrets
  settings: GatewaySettings
  log: Log
  version: string
  reach?: Reach
  times?: typeof times
}

/** The tools of one server, and what the model is told they are for. */
export interface ServerTools {
  hint: string | undefined
  /** They wait until the model looks for them. */
  deferred: boolean
  tools: Tool[]
}

/** The MCP servers of one request. Nothing is connected before someone asks for their tools (M-04). */
export interface RequestServers {
  /** Connects at the first time; what they offer stays the same for the whole request. */
  tools(): Promise<readonly ServerTools[]>
  close(): void
}

export type OpenServers = (
  declared: DeclaredServers | undefined,
  whose: Tenancy,
  limits: Limits,
) => Promise<RequestServers | undefined>

/** Undefined: the request has no MCP server to connect to. Refuses names and addresses before anything is sent (M-07..M-10). */
export function openServers(needs: ServersNeeds): OpenServers {
  return async (declared, { workspace }, limits) => {
    if (declared === undefined) return undefined
    const servers = await namedServers(declared, workspace, needs)
    if (servers.length === 0) return undefined
    const client = clientOf(judgeServers(needs.settings, needs.reach ?? {}), needs.reach ?? {})
    try {
      await eachOf(servers.map((server) => refuseUnsafe(server, client, limits.signal, needs.log)))
    } catch (thrown) {
      client.close()
      throw thrown
    }
    return serversOf(servers, client, limits, needs)
  }
}

function serversOf(
  servers: NamedServer[],
  client: PinnedClient,
  { signal, deadline }: Limits,
  { log, version, times: { connectMs, callMs } = times }: ServersNeeds,
): RequestServers {
  const sessions: Session[] = []
  let listed: Promise<readonly ServerTools[]> | undefined
  const connect = (server: NamedServer): Promise<ServerTools> =>
    tracer.startActiveSpan('mcp connect', { kind: SpanKind.CLIENT }, (span) =>
      connected(server, span).finally(() => span.end()),
    )

  async function connected(
    { name, url, token, hint, allowedTools, deferred = false }: NamedServer,
    span: Span,
  ): Promise<ServerTools> {
    const limits = { signal, deadline: Math.min(deadline, Date.now() + connectMs) }
    try {
      const session = await openSession({ url, token, client, version }, limits)
      sessions.push(session)
      const found = await listTools(session, { name, allowedTools }, limits, log)
      connections.add(1, { outcome: 'ok' })
      return { hint, deferred, tools: found.map((tool) => serverTool(name, tool, { session, callMs })) }
    } catch (thrown) {
      signal.throwIfAborted()
      const failure = ServerFailure.from(thrown)
      connections.add(1, { outcome: failure.trouble })
      span.setStatus({ code: SpanStatusCode.ERROR, message: failure.trouble })
      log.warn({ server: name, err: failure }, 'an MCP server cannot be used')
      throw unusable(name, failure)
    }
  }

  return {
    tools() {
      listed ??= eachOf(servers.map(connect)).then(eachOnce)
      return listed
    },
    close() {
      void Promise.all(sessions.map((session) => session.close())).finally(client.close)
    },
  }
}

/** What all of them come to, or the first failure in their order; none is left behind with work that nobody ends. */
async function eachOf<T>(works: Promise<T>[]): Promise<T[]> {
  return (await Promise.allSettled(works)).map((ended) => {
    if (ended.status === 'rejected') throw ended.reason
    return ended.value
  })
}

/** Where two servers have a tool of one name, the first of them has it (L-35). */
function eachOnce(servers: readonly ServerTools[]): readonly ServerTools[] {
  const names = new Set<string>()
  const offered = servers.map(({ hint, deferred, tools }) => ({
    hint,
    deferred,
    tools: tools.filter(({ name }) => names.size !== names.add(name).size),
  }))
  if (names.size > MOST_TOOLS)
    throw new Fault(
      'invalid_request',
      `The MCP servers of this request offer ${names.size} tools, and a model can be offered ${MOST_TOOLS}: name those it needs in allowed_tools.`,
    )
  return offered
}

/** What the request itself says wrong is told to its sender; what the workspace's settings do, to the log alone (M-09). */
async function refuseUnsafe(
  { name, url, token, stored }: NamedServer,
  client: PinnedClient,
  signal: AbortSignal,
  log: Log,
): Promise<void> {
  const problem = await addressProblem({ url, hasToken: token !== undefined }, client.pin, signal)
  if (problem === undefined) return
  if (!stored) throw new Fault('invalid_request', `MCP server '${name}' cannot be used: ${problem}`)
  log.error({ server: name, problem }, 'a stored MCP server failed its safety check')
  throw new Fault('internal', "A configured MCP server's URL failed its safety check")
}

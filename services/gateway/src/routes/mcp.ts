import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { ErrorCode, JSONRPC_VERSION } from '@modelcontextprotocol/sdk/types.js'
import { Fault } from '@tollgate/contracts'
import { browserServer, browserTools, type Serving, webServer, webTools } from '@tollgate/mcp-web'
import type { FastifyPluginCallback, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { actFor } from '../auth/acting-user.ts'
import { tenancyOf } from '../auth/tenancy.ts'
import { requestEnds } from '../conversation/request-end.ts'
import { type DirectNeeds, directCall } from '../direct/direct-call.ts'
import { servedHere } from '../direct/served-here.ts'
import { newId } from '../ids.ts'
import { openCallEnd } from '../mcp/call-end.ts'
import { type Cancellations, openCancellations } from '../mcp/cancellations.ts'
import { exchange, onceClosed } from '../mcp/exchange.ts'
import { readMessages } from '../mcp/message.ts'
import { refuseForeignOrigin } from '../mcp/origin.ts'
import { refuseWebAccess } from '../policies/refusals.ts'
import { Invalid } from '../validation.ts'

const message = z.looseObject({
  jsonrpc: z.literal(JSONRPC_VERSION),
  id: z.union([z.string(), z.number()]).optional(),
  method: z.string().optional(),
  params: z.looseObject({}).optional(),
})

const body = z.union([message, z.array(message)])
const transport =
  'The Model Context Protocol’s Streamable HTTP: JSON-RPC messages, answered by JSON or an event stream.'

/** The schema is for the documentation: the protocol's own code says what is wrong with a message. */
const takesAll = () => () => true

/** Tool calls in one body; more are to be sent in bodies of their own. */
const MOST_CALLS = 20
const SESSION = 'mcp-session-id'

interface Served {
  path: string
  summary: string
  description: string
  open(serving: Serving): Server
}

/**
 * `POST /mcp/web`, and `POST /mcp/browser` where pages can be shown by a browser: MCP servers for whoever has an API key.
 * Each may be registered under any number of paths; it is one server.
 */
export function mcpRoutes(needs: DirectNeeds & { version: string }, cut: AbortSignal): FastifyPluginCallback[] {
  const { bus, settings } = needs
  const { tools: asked } = settings.mcpWeb
  const shared = { cancellations: openCancellations(bus), endOf: requestEnds(cut) }
  const web = webTools(bus, asked)
  const browser = browserTools(bus, asked)
  const servers: Served[] = [
    {
      path: '/mcp/web',
      summary: 'Speak to the web MCP server',
      description: `${transport} Tools: \`web_search\`, \`fetch_webpage\`, \`fetch_image\` and \`format_search_results\`, priced as \`otari:web_search\` and \`otari:web_fetch\`. Also at \`/mcp/web\`.`,
      open: (serving) => webServer(web, serving),
    },
    {
      path: '/mcp/browser',
      summary: 'Speak to the browser MCP server',
      description: `${transport} Its tool \`fetch_webpage_rendered\` is priced as \`otari:web_fetch\`. Also at \`/mcp/browser\`.`,
      open: (serving) => browserServer(browser, serving),
    },
  ]
  return servers
    .filter(({ path }) => path !== '/mcp/browser' || asked.rendererAvailable)
    .map((served) => mcpRoute(served, needs, shared))
}

interface Shared {
  cancellations: Cancellations
  endOf: ReturnType<typeof requestEnds>
}

function mcpRoute(
  { path, open, ...described }: Served,
  needs: DirectNeeds & { version: string },
  { cancellations, endOf }: Shared,
): FastifyPluginCallback {
  const { log, settings, rateLimit, version } = needs
  const { mcpWeb, publicBaseUrl } = settings
  const endpoint = `/api/v1${path}`

  return (app, _options, done) => {
    app.setErrorHandler(tellAsJsonRpc)
    app.addHook('onRequest', async ({ headers }) => {
      if (!mcpWeb.enabled) throw new Fault('not_found', 'Not Found')
      refuseForeignOrigin(headers.origin, { publicBaseUrl, allowed: mcpWeb.allowedOrigins })
    })
    app.post(path, { schema: { tags: ['mcp'], body, ...described }, validatorCompiler: takesAll }, serve)
    // nothing is sent unasked, and no session is kept that could be ended
    app.route({ method: ['GET', 'DELETE'], url: path, schema: { hide: true }, handler: postOnly })
    done()
  }

  async function serve(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const { opensSession, calls, cancelled } = readMessages(request.body)
    if (request.identity.kind === 'master') {
      throw new Fault('forbidden', 'The MCP server takes an API key; the master key stands for no user')
    }
    const acting = await actFor(request.identity, undefined, { dialect: 'chat', ...needs })
    if (calls.length > MOST_CALLS) {
      throw new Fault('invalid_request', `At most ${MOST_CALLS} tool calls may be sent at once`)
    }
    for (const _call of calls) rateLimit.take(acting)

    const session = sessionOf(request)
    for (const call of cancelled) cancellations.cancel({ key: acting.key, session, call })
    if (opensSession) reply.header(SESSION, newId())
    const end = endOf(reply, settings.requestTimeoutMs)
    onceClosed(reply.raw, end.done)
    const server = open({
      version,
      log,
      runFor: (call, closed) => {
        const listen = (leave: (why: Fault) => void) => cancellations.listen({ key: acting.key, session, call }, leave)
        // the usage row of a lone call has the id that its response's header shows
        const id = calls.length === 1 ? request.id : newId()
        return async (kind, run) => {
          const { signal, release } = openCallEnd(end.signal, closed, listen)
          try {
            const { web } = await needs.policies.of(acting.workspace)
            refuseWebAccess(web, kind === 'web_search' ? 'web search' : 'web access')
            const { deadline } = end
            const { budgetExempt } = acting
            const tenancy = tenancyOf(acting, id)
            const call = { ...servedHere[kind], endpoint, tenancy, budgetExempt, signal, deadline }
            return await directCall(needs, call, (at) => run({ ...at, domains: web.domains }))
          } finally {
            release()
          }
        }
      },
    })
    const streams = calls.length > 0 && (request.headers.accept ?? '').includes('text/event-stream')
    return exchange(server, request, reply, { streams, keepaliveMs: settings.streamingKeepaliveIntervalMs })
  }
}

/** Any short text serves: it tells one client's calls from another's, and opens nothing. */
function sessionOf({ headers }: FastifyRequest): string | undefined {
  const given = headers[SESSION]
  return typeof given === 'string' && given !== '' && given.length <= 128 ? given : undefined
}

const postOnly = (_request: FastifyRequest, reply: FastifyReply) =>
  reply
    .code(405)
    .header('allow', 'POST')
    .type('application/json; charset=utf-8')
    .send('{"detail":"Method Not Allowed"}')

/** A body that is no JSON is the protocol's own parse error; everything else is told as on other routes. */
function tellAsJsonRpc(thrown: unknown, _request: FastifyRequest, reply: FastifyReply): FastifyReply {
  if (!(thrown instanceof Invalid)) throw thrown
  const error = { code: ErrorCode.ParseError, message: 'Parse error' }
  return reply.code(400).send({ jsonrpc: JSONRPC_VERSION, error, id: null })
}

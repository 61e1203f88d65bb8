import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type FakeSandboxSession, openSandboxSessions, type SandboxSessions } from './sandbox-sessions.ts'
import { parseSandboxRequest, type SandboxOperation } from './sandbox-wire.ts'

export interface SeenSandboxRequest {
  operation: SandboxOperation
  headers: IncomingHttpHeaders
  /** The path as it stood in the request line. */
  target: string
  /** The id after decoding. */
  session: string | undefined
  /** The JSON body as text, exactly as sent; empty for operations that have none. */
  body: string
}

export interface SandboxReply {
  status: number
  headers?: Record<string, string>
  /** Bytes are sent as they are, anything else as JSON. */
  body?: unknown
}

export interface FakeSandboxOptions {
  /** Bearer credential asked for on every operation; without one none may be shown. */
  token?: string
  /** Sessions before 503. */
  capacity?: number
  /** False: the three optional operations are not there (404). */
  files?: boolean
  /** Reported in handles and kept to; null: not reported, nothing reclaimed. */
  idleTimeoutSeconds?: number | null
  maxFileBytes?: number
  sessionId?: () => string
  /** Members the contract does not name: a client of ours has no reason to send any. */
  unknownMembers?: 'refuse' | 'ignore'
  /** Asked for each request that was well formed; what it returns is sent in place of the fake's own answer. */
  respond?: (request: SeenSandboxRequest) => SandboxReply | undefined | Promise<SandboxReply | undefined>
}

export interface FakeSandbox {
  url: string
  requests: SeenSandboxRequest[]
  /** Those alive. */
  sessions: ReadonlyMap<string, FakeSandboxSession>
  close(): Promise<void>
}

/** What no client may send to a sandbox: it would tell untrusted code about our traces and ourselves. */
const forbidden = ['traceparent', 'tracestate', 'baggage', 'cookie', 'referer', 'origin']

/**
 * A backend of code-execution protocol v1 with sessions in memory, for tests of its clients. It is strict: a request that
 * the contract does not allow gets the status the contract names for it and never reaches a session. The code it can
 * run is the little that `sandbox-program.ts` speaks; tests that need another result script it.
 */
export async function openFakeSandbox(options: FakeSandboxOptions = {}): Promise<FakeSandbox> {
  const sessions = openSandboxSessions(options)
  const requests: SeenSandboxRequest[] = []
  const server = createServer((request, response) => {
    answer(request, sessions, requests, options).then(
      (reply) => send(response, reply),
      (error: Error) => send(response, { status: 500, body: { detail: error.message } }),
    )
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    sessions: sessions.live,
    async close() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}

async function answer(
  request: IncomingMessage,
  sessions: SandboxSessions,
  requests: SeenSandboxRequest[],
  options: FakeSandboxOptions,
): Promise<SandboxReply> {
  const chunks: Uint8Array[] = await request.toArray()
  const parsed = await parseSandboxRequest(request, Buffer.concat(chunks), options)
  if ('status' in parsed) return parsed
  const { operation, session, body } = parsed
  const seen = { operation: operation.name, headers: request.headers, target: request.url ?? '', session, body }
  requests.push(seen)

  const leaked = forbidden.find((name) => name in request.headers)
  if (leaked) return { status: 400, body: { detail: `must not carry ${leaked}` } }
  const shown = request.headers.authorization
  if (shown !== (options.token === undefined ? undefined : `Bearer ${options.token}`))
    return { status: 401, body: { detail: 'credential missing or rejected' } }
  return (await options.respond?.(seen)) ?? sessions.perform(operation, session)
}

function send(response: ServerResponse, { status, headers = {}, body }: SandboxReply): void {
  if (body instanceof Uint8Array) response.writeHead(status, headers).end(body)
  else if (body === undefined) response.writeHead(status, headers).end()
  else response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
}

import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'zod'
import { connectError, json, Refused, serveFiles, serveFilesystem, serveStart } from './e2b-agent.ts'
import { type FakeKernel, startKernel } from './e2b-python.ts'

export interface FakeE2bSandbox {
  id: string
  accessToken: string
  trafficToken: string | undefined
  /** Epoch milliseconds. */
  endsAt: number
  /** Seconds, as they were asked for, oldest first. */
  timeouts: number[]
  root: string
  kernels: Map<string, FakeKernel>
}

export interface SeenE2bRequest {
  /** Method and path, ids in it replaced by `:id`: `POST /sandboxes/:id/timeout`. */
  operation: string
  headers: IncomingHttpHeaders
  body: string
}

export interface E2bFault {
  /** Sent in place of the answer, with these headers and chunks as they are. */
  status?: number
  headers?: Record<string, string>
  chunks?: Uint8Array[]
  /** Before the head is sent. */
  delayMs?: number
  /** The connection breaks off after the chunks. */
  breaksOff?: boolean
}

export interface FakeE2bOptions {
  apiKeys?: string[]
  /** Sandboxes ask for a token of traffic beside the agent's. */
  trafficTokens?: boolean
  /** Of a command's output, in one message. */
  outputBytes?: number
  /** Asked for each well-formed request. */
  fault?: (request: SeenE2bRequest) => E2bFault | undefined
}

export interface FakeE2b {
  url: string
  requests: SeenE2bRequest[]
  sandboxes: ReadonlyMap<string, FakeE2bSandbox>
  close(): Promise<void>
}

/** What no client may send to a vendor: it would tell of our traces and ourselves. */
const forbidden = ['traceparent', 'tracestate', 'baggage', 'cookie']
const INTERPRETER = '49999'
const AGENT = '49983'

const created = z.strictObject({
  templateID: z.literal('code-interpreter-v1'),
  metadata: z.record(z.string(), z.string()).optional(),
  timeout: z.int().min(1).max(86_400),
  allow_internet_access: z.boolean().optional(),
  envVars: z.record(z.string(), z.string()).optional(),
})
const timed = z.strictObject({ timeout: z.int().min(0).max(86_400) })
const contextWish = z.strictObject({ language: z.literal('python').optional(), cwd: z.string().optional() })
const execution = z.strictObject({
  code: z.string(),
  context_id: z.string(),
  language: z.null().optional(),
  env_vars: z.record(z.string(), z.string()).optional(),
})

/**
 * A stand-in for E2B on one loopback address: its API, and the agent and interpreter of each sandbox. Strict: a request
 * that the vendor would refuse is refused. Code and commands really run, on this machine and without any isolation.
 */
export async function openFakeE2b(options: FakeE2bOptions = {}): Promise<FakeE2b> {
  const { apiKeys = ['e2b_test_key'], trafficTokens = true, outputBytes = 65_536, fault } = options
  const sandboxes = new Map<string, FakeE2bSandbox>()
  const requests: SeenE2bRequest[] = []
  const gone: Promise<unknown>[] = []

  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      if (response.headersSent) return response.destroy()
      const { status, body } = error instanceof Refused ? error : { status: 500, body: { message: String(error) } }
      return json(response, status, body)
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')

  function end(sandbox: FakeE2bSandbox): void {
    sandboxes.delete(sandbox.id)
    const kernels = [...sandbox.kernels.values()].map((kernel) => kernel.close())
    gone.push(Promise.all(kernels).then(() => rm(sandbox.root, { recursive: true, force: true })))
  }
  function find(id: string | undefined): FakeE2bSandbox | undefined {
    const sandbox = sandboxes.get(id ?? '')
    if (sandbox && sandbox.endsAt <= Date.now()) end(sandbox)
    return sandboxes.get(id ?? '')
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<unknown> {
    const url = new URL(request.url ?? '/', 'http://e2b')
    const isUpload = request.method === 'POST' && url.pathname === '/files'
    const body = isUpload ? Buffer.alloc(0) : Buffer.concat(await request.toArray())
    const operation = `${request.method} ${url.pathname.replace(/\/(sandboxes|contexts)\/[^/]+/, '/$1/:id')}`
    const seen = { operation, headers: request.headers, body: body.toString('utf8') }
    requests.push(seen)
    const leaked = forbidden.find((name) => name in request.headers)
    if (leaked) throw new Refused(400, { code: 400, message: `must not carry ${leaked}` })
    const scripted = fault?.(seen)
    if (scripted?.delayMs) await sleep(scripted.delayMs)
    if (scripted?.status !== undefined) return play(response, scripted)
    const isApi = /^\/(v2\/)?sandboxes(\/|$)/.test(url.pathname)
    return isApi ? api(operation, request, response, body) : inside(operation, url, request, response, body)
  }

  function api(operation: string, request: IncomingMessage, response: ServerResponse, body: Buffer): unknown {
    if (!apiKeys.includes(String(request.headers['x-api-key'])))
      throw new Refused(401, { code: 401, message: 'invalid API key' })
    const id = /sandboxes\/([^/?]+)/.exec(request.url ?? '')?.[1]
    if (operation === 'POST /v2/sandboxes') {
      const { timeout } = parse(created, body)
      const sandbox = create(timeout)
      return json(response, 201, handle(sandbox))
    }
    const sandbox = find(id)
    if (!sandbox) throw new Refused(404, { code: 404, message: `sandbox "${id}" doesn't exist` })
    switch (operation) {
      case 'DELETE /sandboxes/:id':
        end(sandbox)
        return response.writeHead(204).end()
      case 'POST /sandboxes/:id/timeout':
      case 'POST /v2/sandboxes/:id/connect': {
        const { timeout } = parse(timed, body)
        sandbox.timeouts.push(timeout)
        sandbox.endsAt = Date.now() + timeout * 1_000
        return operation.endsWith('connect') ? json(response, 200, handle(sandbox)) : response.writeHead(204).end()
      }
      default:
        throw new Refused(404, { code: 404, message: 'no such path' })
    }
  }

  function create(timeout: number): FakeE2bSandbox {
    const id = `i${randomBytes(10).toString('hex')}`
    const root = mkdtempSync(join(tmpdir(), 'fake-e2b-'))
    mkdirSync(join(root, 'home/user'), { recursive: true })
    const sandbox: FakeE2bSandbox = {
      id,
      root,
      accessToken: randomBytes(16).toString('hex'),
      trafficToken: trafficTokens ? randomBytes(16).toString('hex') : undefined,
      endsAt: Date.now() + timeout * 1_000,
      timeouts: [timeout],
      kernels: new Map(),
    }
    sandboxes.set(id, sandbox)
    return sandbox
  }

  const handle = ({ id, accessToken, trafficToken }: FakeE2bSandbox) => ({
    sandboxID: id,
    templateID: 'code-interpreter-v1',
    clientID: 'client',
    envdVersion: '0.6.4',
    envdAccessToken: accessToken,
    trafficAccessToken: trafficToken ?? null,
    domain: null,
  })

  async function inside(
    operation: string,
    url: URL,
    request: IncomingMessage,
    response: ServerResponse,
    body: Buffer,
  ): Promise<unknown> {
    const sandbox = find(String(request.headers['e2b-sandbox-id']))
    if (!sandbox) throw new Refused(502, { code: 502, message: 'The sandbox was not found' })
    const isInterpreter = url.pathname === '/execute' || url.pathname.startsWith('/contexts')
    if (request.headers['e2b-sandbox-port'] !== (isInterpreter ? INTERPRETER : AGENT))
      throw new Refused(502, { code: 502, message: 'The sandbox is running but port is not open' })
    if (isInterpreter && sandbox.trafficToken !== undefined)
      if (request.headers['e2b-traffic-access-token'] !== sandbox.trafficToken)
        throw new Refused(403, { code: 403, message: 'traffic token missing' })
    const isContexts = url.pathname.startsWith('/contexts')
    const shown = request.headers['x-access-token']
    if (isContexts && shown !== undefined) throw new Refused(400, { message: 'contexts take no access token' })
    if (!isContexts && shown !== sandbox.accessToken) throw new Refused(401, { code: 401, message: 'unauthorized' })

    if (operation === 'GET /health') return response.writeHead(204).end()
    const agent = { root: sandbox.root, outputBytes }
    if (url.pathname === '/files') return serveFiles(request, response, url, agent)
    if (url.pathname.startsWith('/filesystem.Filesystem/')) {
      isOfType(request, 'application/json')
      return serveFilesystem(url.pathname.split('/')[2] ?? '', body, response, agent)
    }
    if (url.pathname === '/process.Process/Start') {
      isOfType(request, 'application/connect+json')
      return serveStart(body, response, agent)
    }
    if (operation === 'POST /contexts') {
      const { cwd = '/home/user' } = parse(contextWish, body)
      const id = randomBytes(8).toString('hex')
      sandbox.kernels.set(id, startKernel(join(sandbox.root, cwd)))
      return json(response, 200, { id, language: 'python', cwd })
    }
    const named =
      operation === 'POST /execute' ? parse(execution, body) : { context_id: url.pathname.split('/')[2], code: '' }
    const kernel = sandbox.kernels.get(named.context_id ?? '')
    if (!kernel) throw new Refused(404, { message: 'context not found' })
    if (operation === 'POST /contexts/:id/restart') {
      await kernel.restart()
      return response.writeHead(200).end()
    }
    if (operation !== 'POST /execute') throw new Refused(404, { message: 'no such path' })
    response.writeHead(200, { 'content-type': 'application/x-ndjson' }).flushHeaders()
    for await (const line of kernel.run(named.code)) response.write(line)
    return response.end()
  }

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    sandboxes,
    async close() {
      for (const sandbox of [...sandboxes.values()]) end(sandbox)
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
      await Promise.all(gone)
    },
  }
}

async function play(response: ServerResponse, { status = 200, headers = {}, chunks = [], breaksOff }: E2bFault) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).flushHeaders()
  for (const chunk of chunks) await new Promise((done) => response.write(chunk, done))
  return breaksOff ? response.destroy() : response.end()
}

function isOfType(request: IncomingMessage, type: string): void {
  if (request.headers['content-type'] !== type) throw connectError(415, 'unsupported_media_type')
  if (request.headers['connect-protocol-version'] !== '1') throw connectError(400, 'invalid_argument')
}

function parse<S extends z.ZodType>(shape: S, body: Buffer): z.output<S> {
  const parsed = shape.safeParse(JSON.parse(body.toString('utf8')))
  if (!parsed.success) throw new Refused(400, { code: 400, message: z.prettifyError(parsed.error) })
  return parsed.data
}

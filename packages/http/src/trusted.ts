import type { Readable } from 'node:stream'
import type { FailureTag } from '@tollgate/contracts'
import { Agent, type Dispatcher, errors } from 'undici'
import { openConnection } from './connection.ts'
import { openDeadline } from './deadline.ts'
import { ConnectFailure, type Dialer, systemDialer } from './dial.ts'
import type { JudgeHop } from './guard.ts'
import { parseCodings, readLimited, UnsupportedEncoding } from './limit.ts'

export interface TrustedOptions {
  /**
   * For endpoints that a tenant named (O-08): each call is judged and pinned, on a connection of its own. Without it the
   * operator's word is taken and connections are kept.
   */
  judge?: JudgeHop
  dialer?: Dialer
  ca?: string[]
  /** Connections kept to one origin. */
  connections?: number
}

export interface TrustedRequest {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  url: string
  headers?: Record<string, string>
  /** Sent as JSON. */
  json?: unknown
  /** Sent as it is, as it comes; its type and length belong in `headers`. */
  body?: Readable | Uint8Array
  /** Epoch milliseconds. */
  deadline: number
  signal: AbortSignal
  /** Most bytes of the decoded answer; a larger one is `invalid_response` (SP-04). */
  maxBytes?: number
}

export interface TrustedHead {
  httpStatus: number
  header(name: string): string | undefined
}

/** A tag from the closed set, and a status; never the body, URL or headers (SP-03). */
export interface TrustedFailure {
  status: 'failed'
  tag: FailureTag
  httpStatus?: number
}

/** Any HTTP answer, whatever its status. */
export type TrustedAnswer = ({ status: 'answered'; bytes: Uint8Array } & TrustedHead) | TrustedFailure
/** A 2xx answer that was JSON; its shape is for the caller to parse. */
export type TrustedJson = ({ status: 'ok'; body: unknown } & TrustedHead) | TrustedFailure
/** A 2xx answer to be read as it comes, and destroyed when it is not. */
export type TrustedStream = ({ status: 'ok'; body: Readable } & TrustedHead) | TrustedFailure

/**
 * Speaks to endpoints that are configured, not chosen by a page: search providers, sandboxes. Follows no redirect, sends
 * nothing it was not given (no `traceparent`, no cookies), knows no proxy, logs nothing. Only a fired `signal` throws.
 */
export interface TrustedClient {
  send(request: TrustedRequest): Promise<TrustedAnswer>
  json(request: TrustedRequest): Promise<TrustedJson>
  stream(request: TrustedRequest): Promise<TrustedStream>
  close(): Promise<void>
}

const MAX_ANSWER_BYTES = 5 * 1024 * 1024

export function openTrustedClient(options: TrustedOptions = {}): TrustedClient {
  const open = openDispatchers(options)

  const exchange = async <T>(
    request: TrustedRequest,
    read: (reply: Reply) => Promise<T>,
  ): Promise<T | TrustedFailure> => {
    const limit = openDeadline(request.deadline, request.signal)
    try {
      const reply = await ask(await open.route(request.url, limit.signal), request, limit.signal)
      reply.body.once('close', limit.end)
      return await read(reply)
    } catch (thrown) {
      limit.end()
      request.signal.throwIfAborted()
      return { status: 'failed', tag: limit.expired ? 'timeout' : tagOf(thrown) }
    }
  }

  const send = (request: TrustedRequest): Promise<TrustedAnswer> =>
    exchange<TrustedAnswer>(request, async ({ head, body, codings, done }) => {
      const { bytes, truncated } = await readLimited(body, codings, request.maxBytes ?? MAX_ANSWER_BYTES).finally(done)
      if (truncated) return { status: 'failed', tag: 'invalid_response', httpStatus: head.httpStatus }
      return { status: 'answered', ...head, bytes }
    })

  return {
    send,
    async json(request) {
      const answer = await send(request)
      if (answer.status === 'failed') return answer
      const { httpStatus, header } = answer
      const tag = httpFailure(httpStatus)
      if (tag) return { status: 'failed', tag, httpStatus }
      try {
        const body: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(answer.bytes))
        return { status: 'ok', body, httpStatus, header }
      } catch {
        return { status: 'failed', tag: 'invalid_response', httpStatus }
      }
    },
    stream: (request) =>
      exchange<TrustedStream>(request, async ({ head, body, codings, done }) => {
        body.once('close', done)
        const tag = httpFailure(head.httpStatus) ?? (codings.length > 0 ? 'invalid_response' : undefined)
        if (!tag) return { status: 'ok', ...head, body }
        body.destroy()
        return { status: 'failed', tag, httpStatus: head.httpStatus }
      }),
    close: () => open.close(),
  }
}

/** What a status means to whoever searches or runs code with it (SP-03); undefined for 2xx. A redirect is an `http_error`. */
export function httpFailure(httpStatus: number): FailureTag | undefined {
  if (httpStatus >= 200 && httpStatus < 300) return undefined
  if (httpStatus === 401 || httpStatus === 403) return 'authentication'
  if (httpStatus === 402) return 'quota'
  return httpStatus === 429 ? 'rate_limited' : 'http_error'
}

interface Route {
  dispatcher: Dispatcher
  path: string
  origin: string
  done: () => void
}

interface Reply {
  head: TrustedHead
  body: Readable
  codings: string[]
  /** Gives back a connection that was opened for this call alone. */
  done: () => void
}

function openDispatchers({ judge, dialer = systemDialer, ca, connections = 32 }: TrustedOptions) {
  const shared = new Agent({ connections, headersTimeout: 0, bodyTimeout: 0, ...(ca ? { connect: { ca } } : {}) })
  return {
    async route(text: string, limit: AbortSignal): Promise<Route> {
      if (!judge) {
        const url = new URL(text)
        return { dispatcher: shared, origin: url.origin, path: url.pathname + url.search, done: () => {} }
      }
      const verdict = await judge(text, limit)
      if (!verdict.ok) throw new ConnectFailure('connect')
      const { client, path } = await openConnection(verdict.hop, { dialer, ...(ca ? { ca } : {}) }, limit)
      const done = () => void client.destroy().catch(() => {}) // nobody waits for a connection that is of no further use
      return { dispatcher: client, origin: verdict.hop.url.origin, path, done }
    },
    close: () => shared.destroy(),
  }
}

async function ask(
  { dispatcher, origin, path, done }: Route,
  request: TrustedRequest,
  limit: AbortSignal,
): Promise<Reply> {
  const { method, json, body = null } = request
  try {
    const response = await dispatcher.request({
      origin,
      path,
      method,
      signal: limit,
      headers: {
        accept: 'application/json',
        'accept-encoding': 'gzip, deflate',
        ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        ...request.headers,
      },
      body: json === undefined ? body : JSON.stringify(json),
    })
    response.body.on('error', () => {}) // whoever reads the body sees it; an unread body has nobody to tell
    const header = (name: string) => [response.headers[name.toLowerCase()] ?? []].flat().at(-1)
    const codings = parseCodings([response.headers['content-encoding'] ?? []].flat().join(','))
    return { head: { httpStatus: response.statusCode, header }, body: response.body, codings, done }
  } catch (thrown) {
    done()
    throw thrown
  }
}

/** A mistake of ours is thrown on; everything else is the network's or the other side's. */
function tagOf(thrown: unknown): FailureTag {
  if (thrown instanceof UnsupportedEncoding) return 'invalid_response'
  if (thrown instanceof ConnectFailure || thrown instanceof errors.HTTPParserError) return 'network'
  const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined
  if (typeof code !== 'string' || code === 'UND_ERR_INVALID_ARG' || code === 'ERR_INVALID_URL') throw thrown
  return code.startsWith('Z_') ? 'invalid_response' : 'network'
}

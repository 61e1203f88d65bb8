import { Readable } from 'node:stream'
import { Fault } from '@tollgate/contracts'
import { errors, Pool } from 'undici'
import { type Chunks, exchange } from './exchange.ts'
import type { Form } from './multipart.ts'
import type { CallLimits } from './provider.ts'
import { faultOfStatus } from './upstream-errors.ts'
import { brokenAnswer, type Origin, UpstreamFault } from './upstream-fault.ts'

export interface UpstreamSettings {
  /** Where the provider's API begins; paths are put behind it. */
  base: URL
  headers: Record<string, string>
  /** Connections to it; as many calls again may wait for one, and more are refused as `unavailable`. */
  connections: number
  connectTimeoutMs: number
  /** A model may think for minutes before its first byte, and between two. */
  headersTimeoutMs: number
  bodyTimeoutMs: number
}

export const upstreamDefaults = {
  connections: 256,
  connectTimeoutMs: 10_000,
  headersTimeoutMs: 600_000,
  bodyTimeoutMs: 300_000,
}

/** A 2xx answer whose body has not been read yet. It must be read by one of the two, which also frees the connection. */
export interface UpstreamReply {
  status: number
  /** Media type in lower case without parameters; '' when there is none. */
  mediaType: string
  /** The body as the network brings it; leaving the iteration early closes the connection. */
  chunks(): Chunks
  /** The whole body. */
  bytes(): Promise<Buffer>
  /** The answer is complete: reads what is left of the body for at most a second, so that the connection can serve again. */
  settle(): Promise<void>
}

export interface UpstreamConnection {
  /** Sends JSON, with headers of the call's own, and resolves with a 2xx; anything else is thrown as a fault. Redirects are not followed. */
  post(path: string, json: string, limits: CallLimits, own?: Headers): Promise<UpstreamReply>
  /** Sends a form with a file in it, as the file comes. */
  upload(path: string, form: Form, limits: CallLimits, own?: Headers): Promise<UpstreamReply>
  get(path: string, limits: CallLimits, own?: Headers): Promise<UpstreamReply>
  delete(path: string, limits: CallLimits, own?: Headers): Promise<UpstreamReply>
  close(): Promise<void>
}

type Headers = Readonly<Record<string, string>>

/** What a call sends. */
interface Sent {
  method: 'GET' | 'POST' | 'DELETE'
  path: string
  body?: string | Readable
}

const MOST_BODY_BYTES = 32 * 1024 * 1024
const MOST_ERROR_BYTES = 64 * 1024
const LINGER_MS = 1_000

/** The only door to a provider: one pool, kept alive between calls. */
export function openUpstream(origin: Origin, settings: UpstreamSettings): UpstreamConnection {
  const pool = new Pool(settings.base.origin, {
    connections: settings.connections,
    connect: { timeout: settings.connectTimeoutMs },
    headersTimeout: settings.headersTimeoutMs,
    bodyTimeout: settings.bodyTimeoutMs,
  })
  const prefix = settings.base.pathname.replace(/\/+$/, '')
  const headers = { ...settings.headers, 'content-type': 'application/json', 'accept-encoding': 'identity' }
  let inFlight = 0

  return {
    post: (path, json, limits, own) => send({ method: 'POST', path, body: json }, limits, own),
    upload: (path, { content, contentType, contentLength }, limits, own) =>
      send({ method: 'POST', path, body: Readable.from(content) }, limits, {
        ...own,
        'content-type': contentType,
        'content-length': String(contentLength),
      }),
    get: (path, limits, own) => send({ method: 'GET', path }, limits, own),
    delete: (path, limits, own) => send({ method: 'DELETE', path }, limits, own),
    close: () => pool.close(),
  }

  async function send({ path, ...what }: Sent, limits: CallLimits, own?: Headers): Promise<UpstreamReply> {
    if (inFlight >= 2 * settings.connections)
      throw new UpstreamFault('unavailable', 'too many calls to the model provider are under way', origin, {
        retryable: true,
        retryAfterSeconds: 1,
        kind: 'busy',
      })
    inFlight++
    const ending = endOf(limits)
    let open = true
    const finish = () => {
      if (!open) return
      open = false
      inFlight--
      ending.release()
    }
    try {
      const sent = { ...what, path: prefix + path, headers: own ? { ...headers, ...own } : headers }
      const reply = await exchange(pool, sent, {
        signal: ending.signal,
        over: finish,
        broken: (error) => faultOfThrown(error, limits, origin, 'cut'),
      })
      const { status, chunks } = reply
      if (status < 200 || status > 299) {
        const body = await gather(chunks, MOST_ERROR_BYTES, 'clip', origin)
        throw faultOfStatus(origin, status, parsed(body), reply.headers)
      }
      const encoding = reply.headers['content-encoding'] ?? 'identity'
      if (encoding !== 'identity') {
        await gather(chunks, 0, 'clip', origin)
        throw brokenAnswer('unreadable', origin, new Error('the body is encoded although identity was asked for'))
      }
      return {
        status,
        mediaType:
          String(reply.headers['content-type'] ?? '')
            .split(';', 1)[0]
            ?.trim()
            .toLowerCase() ?? '',
        chunks: () => chunks,
        bytes: () => gather(chunks, MOST_BODY_BYTES, 'refuse', origin),
        settle: () => drain(chunks, ending.abort),
      }
    } catch (error) {
      finish()
      throw error instanceof Fault ? error : faultOfThrown(error, limits, origin, 'unreachable')
    }
  }
}

/** One signal for "the caller left" and "time is up", which must be released when the call is over. */
function endOf({ signal, deadline }: CallLimits): { signal: AbortSignal; abort(): void; release(): void } {
  const ending = new AbortController()
  const abort = () => ending.abort()
  const timer = setTimeout(abort, Math.min(Math.max(0, deadline - Date.now()), 2 ** 31 - 1))
  if (signal.aborted) abort()
  else signal.addEventListener('abort', abort, { once: true })
  return {
    signal: ending.signal,
    abort,
    release() {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
    },
  }
}

async function gather(chunks: Chunks, mostBytes: number, beyond: 'clip' | 'refuse', origin: Origin): Promise<Buffer> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const chunk of chunks) {
    parts.push(chunk)
    bytes += chunk.length
    if (bytes <= mostBytes) continue
    if (beyond === 'refuse') throw brokenAnswer('too_large', origin)
    break
  }
  return Buffer.concat(parts)
}

async function drain(chunks: Chunks, abort: () => void): Promise<void> {
  const timer = setTimeout(abort, LINGER_MS)
  try {
    for await (const _ of chunks);
  } catch {
    // the answer was complete before: all that is lost is a connection to reuse
  } finally {
    clearTimeout(timer)
  }
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'))
  } catch {
    return undefined // an error page; its status says enough
  }
}

function faultOfThrown(
  error: unknown,
  { signal, deadline }: CallLimits,
  origin: Origin,
  otherwise: 'unreachable' | 'cut',
): Fault {
  const cause = new Error(`provider ${origin.name}: ${codeOf(error)}`)
  if (signal.aborted) return new Fault('cancelled', 'the request was cancelled', { cause })
  const late =
    Date.now() >= deadline ||
    error instanceof errors.HeadersTimeoutError ||
    error instanceof errors.BodyTimeoutError ||
    error instanceof errors.ConnectTimeoutError
  if (late)
    return new UpstreamFault('timeout', 'the model provider did not answer in time', origin, { retryable: true, cause })
  return brokenAnswer(otherwise, origin, cause)
}

/** What a network error may say in a log: its code or name. Its message holds addresses. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name
}

import { pipeline, Readable, Transform } from 'node:stream'
import { type Dispatcher, Pool } from 'undici'
import { openDeadline } from './deadline.ts'
import { ConnectFailure, type Dialer, openPinned, secure, systemDialer } from './dial.ts'
import { type Hop, type HopVerdict, type JudgeHop, judgeUrl } from './guard.ts'

export interface PinnedOptions {
  judge: JudgeHop
  /** Most bytes of one answer's body, however long it streams; one that brings more fails with `AnswerTooLarge`. */
  maxBytes: number
  dialer?: Dialer
  /** Certificates of authorities trusted beside the built-in ones. */
  ca?: string[]
}

/**
 * Speaks to servers that a tenant named, for protocols whose own client wants a `fetch`. Each origin is judged and
 * resolved once, and every connection goes to the address that was judged. Redirects are answers like any other, codings
 * are neither asked for nor undone, and nothing is sent that was not given.
 */
export interface PinnedClient {
  /** Judges an origin before anything is sent to it; the verdict holds until the client is closed. */
  pin(url: string, signal: AbortSignal): Promise<HopVerdict>
  /** Bounded by `init.signal`: there is no time limit of its own but that of connecting. */
  fetch(url: string | URL, init?: RequestInit): Promise<Response>
  /** Ends whatever is under way. */
  close(): void
}

export class AnswerTooLarge extends Error {
  override readonly name = 'AnswerTooLarge'
}

const CONNECT_MS = 10_000
/** To one origin: for an answer that streams, and for what is said meanwhile. */
const CONNECTIONS = 2
const MAX_HEADER_BYTES = 64 * 1024
/** Statuses whose answers have no body (Fetch standard, 2.2.3). */
const bodiless: ReadonlySet<number> = new Set([204, 205, 304])

export function openPinnedClient({ judge, maxBytes, dialer = systemDialer, ca }: PinnedOptions): PinnedClient {
  const closed = new AbortController()
  const origins = new Map<string, Promise<HopVerdict>>()
  const pools = new Map<string, Pool>()

  async function pin(url: string, signal: AbortSignal): Promise<HopVerdict> {
    const judged = judgeUrl(url)
    if (!judged.ok) return { ok: false, why: 'disallowed' }
    const { origin } = judged.url
    const known = origins.get(origin) ?? judge(url, signal)
    origins.set(origin, known)
    // a look-up that ended with its request says nothing about the origin
    known.catch(() => origins.delete(origin))
    return known
  }

  function poolOf(hop: Hop): Pool {
    const { origin } = hop.url
    const known = pools.get(origin)
    if (known) return known
    const pool = new Pool(origin, {
      connections: CONNECTIONS,
      pipelining: 1,
      maxHeaderSize: MAX_HEADER_BYTES,
      headersTimeout: 0, // the caller's signal bounds every wait
      bodyTimeout: 0,
      connect: (_options, done) => {
        connect(hop).then(
          (socket) => done(null, socket),
          (thrown: unknown) => done(thrown instanceof Error ? thrown : new ConnectFailure('connect'), null),
        )
      },
    })
    pools.set(origin, pool)
    return pool
  }

  async function connect(hop: Hop) {
    const limit = openDeadline(Date.now() + CONNECT_MS, closed.signal)
    try {
      const socket = await openPinned(hop, dialer, limit.signal)
      return hop.url.protocol === 'https:' ? await secure(socket, hop.host, ca, limit.signal) : socket
    } finally {
      limit.end()
    }
  }

  return {
    pin,
    async fetch(target, { method = 'GET', headers, body, signal } = {}) {
      const url = new URL(target)
      const ends = signal ?? closed.signal
      const verdict = await pin(url.href, ends)
      if (!verdict.ok) throw new ConnectFailure('connect', { cause: new Error(verdict.why) })
      const {
        statusCode,
        headers: said,
        body: read,
      } = await poolOf(verdict.hop).request({
        path: url.pathname + url.search,
        method: method as Dispatcher.HttpMethod,
        headers: Object.fromEntries(new Headers(headers)),
        body: typeof body === 'string' ? body : null,
        signal: ends,
      })
      read.on('error', () => {}) // whoever reads the body sees it; an unread body has nobody to tell
      return answerOf(statusCode, said, read, maxBytes)
    },
    close() {
      closed.abort(new DOMException('the client is closed', 'AbortError'))
      for (const pool of pools.values()) void pool.destroy().catch(() => {}) // nobody waits for what is of no further use
    },
  }
}

function answerOf(
  status: number,
  said: Record<string, string | string[] | undefined>,
  body: Readable,
  maxBytes: number,
): Response {
  const headers = new Headers()
  for (const [name, value] of Object.entries(said)) {
    for (const line of [value ?? []].flat()) headers.append(name, line)
  }
  const coding = headers.get('content-encoding') ?? 'identity'
  if (bodiless.has(status) || coding.toLowerCase() !== 'identity') {
    body.destroy()
    if (bodiless.has(status)) return new Response(null, { status, headers })
    throw new TypeError('the answer has a content coding that was not asked for')
  }
  const limited = pipeline(body, atMost(maxBytes), () => {}) // whoever reads the answer sees how it ended
  return new Response(Readable.toWeb(limited) as ReadableStream, { status, headers })
}

function atMost(maxBytes: number): Transform {
  let left = maxBytes
  return new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      left -= chunk.length
      if (left < 0) done(new AnswerTooLarge(`the answer is larger than ${maxBytes} bytes`))
      else done(null, chunk)
    },
  })
}

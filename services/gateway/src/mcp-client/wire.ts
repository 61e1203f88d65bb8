import { AnswerTooLarge, openDeadline, type PinnedClient } from '@tollgate/http'
import { ServerFailure } from './failure.ts'

/** Messages of a session that answer nothing we asked: replies to a server's own requests, most of all. */
const MOST_REPLIES = 50
/** For messages that outlive the exchange they belong to: a cancellation, the end of a session. */
const PARTING_MS = 2_000
/** How long a message may take from the end of its stream to whoever waits for it. */
const DELIVERY_MS = 500

/**
 * The way of one session's messages. An exchange at a time: everything sent meanwhile ends with it, and it ends when the
 * answer to its request turns out never to come.
 */
export interface Wire {
  fetch(url: string | URL, init?: RequestInit): Promise<Response>
  exchange<T>(signal: AbortSignal, run: (signal: AbortSignal) => Promise<T>): Promise<T>
}

interface Exchange {
  /** Fires when it is given up, and never for one that was answered: the library would tell the server of that. */
  given: AbortController
  /** Ends what is under way of it; fires with its end in any case. */
  over: AbortController
  /** So that a stream that ends only now is no reason to give it up. */
  settled: boolean
}

export function openWire(client: PinnedClient): Wire {
  let current: Exchange | undefined
  let delivery: NodeJS.Timeout | undefined
  let replies = 0

  async function send(url: string | URL, init: RequestInit): Promise<Response> {
    const during = current
    if (during === undefined || during.given.signal.aborted) return part(url, init)
    const isRequest = asks(init.body)
    if (!isRequest && ++replies > MOST_REPLIES) throw new ServerFailure('not_understood')
    const { signal } = during.over
    const ends = init.signal ? AbortSignal.any([init.signal, signal]) : signal
    const answer = await client.fetch(url, { ...init, signal: ends })
    return isRequest && answer.ok && answer.body ? watched(answer, answer.body, during) : answer
  }

  async function part(url: string | URL, init: RequestInit): Promise<Response> {
    const limit = openDeadline(Date.now() + PARTING_MS, init.signal ?? new AbortController().signal)
    try {
      const answer = await client.fetch(url, { ...init, signal: limit.signal })
      await answer.body?.cancel()
      return new Response(null, { status: answer.status, headers: answer.headers })
    } finally {
      limit.end()
    }
  }

  /** The answer as it is; its end is told to the exchange, which otherwise would wait out its time for nothing. */
  function watched(answer: Response, body: ReadableStream<Uint8Array>, during: Exchange): Response {
    const { given } = during
    const end = () => {
      if (during.settled) return
      delivery = setTimeout(() => given.abort(new ServerFailure('unanswered')), DELIVERY_MS)
    }
    const reader = body.getReader()
    const passed = new ReadableStream<Uint8Array>({
      async pull(out) {
        try {
          const { done, value } = await reader.read()
          if (!done) return out.enqueue(value)
          out.close()
          end()
        } catch (thrown) {
          out.error(thrown)
          if (!(thrown instanceof AnswerTooLarge)) end()
          else if (!during.settled) given.abort(new ServerFailure('too_large'))
        }
      },
      cancel: (reason) => reader.cancel(reason),
    })
    return new Response(passed, { status: answer.status, headers: answer.headers })
  }

  return {
    // a server may speak without being asked only on a stream of its own, and nothing it could say there is listened to
    fetch: async (url, init = {}) => (init.method === 'GET' ? new Response(null, { status: 405 }) : send(url, init)),
    async exchange(signal, run) {
      const given = new AbortController()
      const over = new AbortController()
      const leave = () => given.abort(signal.reason)
      signal.addEventListener('abort', leave, { once: true })
      given.signal.addEventListener('abort', () => over.abort(given.signal.reason), { once: true })
      if (signal.aborted) leave()
      const exchange: Exchange = { given, over, settled: false }
      current = exchange
      try {
        return await run(given.signal)
      } catch (thrown) {
        throw given.signal.aborted ? given.signal.reason : thrown
      } finally {
        exchange.settled = true
        clearTimeout(delivery)
        signal.removeEventListener('abort', leave)
        current = undefined
        over.abort(new DOMException('the exchange is over', 'AbortError'))
      }
    },
  }
}

/** Whether a message wants an answer: it has a method and an id (JSON-RPC 2.0, 4). */
function asks(body: unknown): boolean {
  if (typeof body !== 'string') return false
  const message: unknown = JSON.parse(body)
  return typeof message === 'object' && message !== null && 'method' in message && 'id' in message
}

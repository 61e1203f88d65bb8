import type { IncomingHttpHeaders } from 'node:http'
import { type Dispatcher, errors } from 'undici'

/** A body as the network brings it: no piece is put together with another. Left early, its connection is closed. */
export type Chunks = AsyncIterable<Buffer, void> & Pick<AsyncGenerator<Buffer, void>, 'next' | 'return'>

export interface HttpReply {
  status: number
  headers: IncomingHttpHeaders
  chunks: Chunks
}

export interface ExchangeOptions {
  signal: AbortSignal
  /** The connection has no more to do with it, however it ended. */
  over(): void
  /** What a body that breaks off throws. */
  broken(error: unknown): Error
}

/** What lies here unread before no more is taken from the connection. */
const MOST_WAITING_BYTES = 64 * 1024
const OVER = { value: undefined, done: true } as const

/**
 * Sends a request and resolves with the head of its answer. The body waits in a bare queue: one is read per model call,
 * a piece per token, and a `Readable` would cost more than all else that is done with it.
 */
export function exchange(
  pool: Dispatcher,
  what: Omit<Dispatcher.DispatchOptions, 'origin'>,
  { signal, over, broken }: ExchangeOptions,
): Promise<HttpReply> {
  return new Promise((resolve, reject) => {
    const waiting: Buffer[] = []
    let bytes = 0
    let controller: Dispatcher.DispatchController | undefined
    /** Whoever waits for the next piece. */
    let reader: { resolve(step: IteratorResult<Buffer, void>): void; reject(why: unknown): void } | undefined
    let end: { error?: unknown } | undefined

    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) return abort()
    try {
      pool.dispatch(what as Dispatcher.DispatchOptions, {
        onRequestStart(started) {
          controller = started
          if (end) started.abort(new errors.RequestAbortedError())
        },
        onResponseStart(_controller, status, headers) {
          if (status >= 200) resolve({ status, headers, chunks })
        },
        onResponseData(_controller, chunk) {
          if (end) return
          if (reader) return take().resolve({ value: chunk, done: false })
          waiting.push(chunk)
          bytes += chunk.length
          if (bytes > MOST_WAITING_BYTES) controller?.pause()
        },
        onResponseEnd: () => finish({}),
        onResponseError: (_controller, error) => finish({ error }),
      })
    } catch (error) {
      finish({ error })
    }

    function take() {
      const taken = reader as NonNullable<typeof reader>
      reader = undefined
      return taken
    }

    function finish(how: { error?: unknown }): void {
      if (end) return
      end = how
      signal.removeEventListener('abort', abort)
      over()
      if ('error' in how) reject(how.error)
      if (!reader) return
      if ('error' in how) take().reject(broken(how.error))
      else take().resolve(OVER)
    }

    /** What has come already is nobody's any more. */
    function abort(): void {
      waiting.length = 0
      const error = new errors.RequestAbortedError()
      finish({ error })
      controller?.abort(error)
    }

    const chunks: Chunks = {
      next() {
        const value = waiting.shift()
        if (value) {
          bytes -= value.length
          if (bytes === 0 && controller?.paused) controller.resume()
          return Promise.resolve({ value, done: false })
        }
        if (end === undefined) {
          return new Promise((resolve, reject) => {
            reader = { resolve, reject }
          })
        }
        const how = end
        end = {}
        return 'error' in how ? Promise.reject(broken(how.error)) : Promise.resolve(OVER)
      },
      async return() {
        if (end === undefined) abort()
        end = {}
        waiting.length = 0
        return OVER
      },
      [Symbol.asyncIterator]: () => chunks,
    }
  })
}

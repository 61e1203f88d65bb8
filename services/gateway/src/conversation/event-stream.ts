import type { FastifyReply } from 'fastify'
import { holdForTurn } from './held-writes.ts'

export interface EventStream {
  /** Undefined: go on. A promise: the client reads slower than it is written to; resolves when it caught up or is gone. */
  write(frames: string | Uint8Array): Promise<void> | undefined
  end(frames: string | Uint8Array): void
}

export interface EventStreamOptions {
  keepalive: string
  /** Sent whenever nothing else was for so long (R-64, BR-025); 0 sends none. */
  everyMs: number
  /** Ends waiting for a client that does not read. */
  signal: AbortSignal
}

const headers = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  'x-accel-buffering': 'no',
}

/** Begins a stream of server-sent events on a reply, which Fastify has no more part in. */
export function openEventStream(reply: FastifyReply, { keepalive, everyMs, signal }: EventStreamOptions): EventStream {
  reply.hijack()
  const { raw } = reply
  for (const [name, value] of Object.entries({ ...reply.getHeaders(), ...headers })) {
    if (value !== undefined) raw.setHeader(name, value)
  }
  raw.writeHead(200)
  const gone = () => raw.destroyed || raw.writableEnded
  const silence = everyMs > 0 ? setTimeout(fill, everyMs) : undefined
  raw.once('close', () => clearTimeout(silence))

  /** A client that has not read what was sent needs no sign of life. */
  function fill(): void {
    if (gone()) return
    if (!raw.writableNeedDrain) raw.write(keepalive)
    silence?.refresh()
  }

  return {
    write(frames) {
      if (frames.length === 0 || gone()) return undefined
      silence?.refresh()
      holdForTurn(raw)
      return raw.write(frames) ? undefined : roomIn(reply, signal)
    },
    end(frames) {
      clearTimeout(silence)
      if (gone()) return
      raw.end(frames)
    },
  }
}

function roomIn({ raw }: FastifyReply, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      raw.off('drain', go)
      raw.off('close', go)
      signal.removeEventListener('abort', go)
      resolve()
    }
    raw.once('drain', go)
    raw.once('close', go)
    signal.addEventListener('abort', go)
    if (signal.aborted) go()
  })
}

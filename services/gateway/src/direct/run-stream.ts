import type { FastifyReply } from 'fastify'
import { type EventStream, openEventStream } from '../conversation/event-stream.ts'
import { errorBody, tell } from '../errors.ts'
import type { RunListener } from './run-code.ts'

/** Most characters of output that wait for a client to read what came before; of what comes then it hears in the result. */
const MOST_UNREAD = 1024 * 1024

export interface RunStream extends RunListener {
  /** True once the client has a status. */
  begun(): boolean
  result(body: object): void
  fail(thrown: unknown): void
}

/** A run as server-sent events: `output` as it is written, then `result`, or `error`. Nothing goes out before `begin`. */
export function openRunStream(
  reply: FastifyReply,
  { everyMs, signal, onBegin }: { everyMs: number; signal: AbortSignal; onBegin: RunListener['begin'] },
): RunStream {
  let stream: EventStream | undefined
  let behind = false
  let held = ''

  function put(frames: string): void {
    const full = stream?.write(frames)
    if (full === undefined) return
    behind = true
    void full.then(() => {
      const next = held
      behind = false
      held = ''
      if (next !== '') put(next)
    })
  }

  function end(last: string): void {
    stream?.end(held + last)
    held = ''
  }

  return {
    begin(container) {
      onBegin(container)
      stream = openEventStream(reply, { keepalive: ': keepalive\n\n', everyMs, signal })
      // the head goes out now, and not with the first output
      put(': running\n\n')
    },
    output({ stream: which, text }) {
      const piece = frame('output', { stream: which, text })
      if (!behind) put(piece)
      else if (held.length + piece.length <= MOST_UNREAD) held += piece
    },
    begun: () => stream !== undefined,
    result: (body) => end(frame('result', body)),
    fail(thrown) {
      const told = tell(thrown)
      end(frame('error', { status: told.status, ...errorBody(told, false) }))
    },
  }
}

const frame = (event: string, data: object): string => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`

import { Fault } from '@tollgate/contracts'
import type { FastifyReply } from 'fastify'
import { whenClientLeaves } from '../client-gone.ts'

export interface RequestEnd {
  /** Fires, with a Fault as its reason, when the client leaves, when time is up and when the process must end. */
  signal: AbortSignal
  /** Epoch milliseconds. */
  deadline: number
  /** The answer is written: nothing can end it any more. */
  done(): void
}

/** The one root of every signal and deadline below a request. `cut` outlives it, and keeps no hold of it afterwards. */
export function requestEnds(cut: AbortSignal): (reply: FastifyReply, timeoutMs: number) => RequestEnd {
  const running = new Set<AbortController>()
  cut.addEventListener('abort', () => {
    for (const request of running) request.abort(cut.reason)
  })

  return (reply, timeoutMs) => {
    const end = new AbortController()
    running.add(end)
    if (cut.aborted) end.abort(cut.reason)
    whenClientLeaves(reply, (why) => end.abort(why))
    const timer = setTimeout(() => end.abort(new Fault('timeout', 'the request took too long')), timeoutMs)
    return {
      signal: end.signal,
      deadline: Date.now() + timeoutMs,
      done() {
        clearTimeout(timer)
        running.delete(end)
      },
    }
  }
}

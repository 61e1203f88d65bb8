import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@tollgate/contracts'
import type { FastifyInstance } from 'fastify'
import { closeSilentConnections } from './silent-connections.ts'

export interface Drain {
  /** Fires when answers that still run must end: a stream then says so in its dialect, and settles (BR-159). */
  readonly cut: AbortSignal
  readonly draining: boolean
  /** Resolves false when connections had to be closed under an answer. */
  close(deadline: number): Promise<boolean>
}

/** What a stream that is cut has left to say so and to settle. */
const LAST_WORDS_MS = 2_000
const SWEEP_MS = 100

/**
 * The way out: from `close` on new requests get 503 and their connection is closed, running ones go on, and at the
 * deadline less two seconds they are cut. Idle connections end at once, others when their answer is complete.
 */
export function openDrain(app: FastifyInstance): Drain {
  const cut = new AbortController()
  // each route listens once under each of its paths, and no request does: more than ten are no leak
  setMaxListeners(0, cut.signal)
  const closeSilent = closeSilentConnections(app.server)
  let draining = false

  app.addHook('onRequest', (_request, reply, done) => {
    if (!draining) return done()
    reply.header('connection', 'close')
    done(new Fault('unavailable', 'the gateway is shutting down'))
  })
  // an answer that began before has promised to keep its connection; one whose head is not out yet can still say otherwise
  app.addHook('onSend', (_request, reply, _payload, done) => {
    if (draining) reply.header('connection', 'close')
    done()
  })

  return {
    cut: cut.signal,
    get draining() {
      return draining
    },
    async close(deadline) {
      draining = true
      const left = deadline - Date.now()
      const cutting = setTimeout(
        () => cut.abort(new Fault('unavailable', 'the gateway is shutting down')),
        Math.max(0, left - Math.min(LAST_WORDS_MS, left / 2)),
      )
      const closed = app.close().then(() => 'closed' as const)
      const sweeping = setInterval(() => {
        app.server.closeIdleConnections()
        closeSilent()
      }, SWEEP_MS)
      const over = new AbortController()
      try {
        const end = await Promise.race([closed, sleep(Math.max(0, left), 'late' as const, { signal: over.signal })])
        if (end === 'late') app.server.closeAllConnections()
        await closed
        return end === 'closed'
      } finally {
        over.abort()
        clearTimeout(cutting)
        clearInterval(sweeping)
      }
    },
  }
}

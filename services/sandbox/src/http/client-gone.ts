import type { FastifyReply } from 'fastify'
import { HttpRefusal } from './refusal.ts'

/** Fires when the client leaves before its answer is written: nobody would read what is still done for it. */
export function clientGone(reply: FastifyReply): AbortSignal {
  const gone = new AbortController()
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) gone.abort(new HttpRefusal(422, 'the client left'))
  })
  return gone.signal
}

import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import type { Session } from '../sessions.ts'
import type { AppNeeds } from './app.ts'
import { callerOf } from './caller.ts'
import { HttpRefusal } from './refusal.ts'

const seconds = z.int().min(1).nullish()
/** CP-03: all hints; what is not known is passed over, and an `image` is not ours to choose. */
const createSession = z.looseObject({ idle_timeout_seconds: seconds, max_lifetime_seconds: seconds }).nullish()

const inSeconds = (date: Date): number => date.getTime() / 1_000

/** What is in force, whatever was asked for (CP-06). */
const handle = (session: Session, isolation: string) => ({
  session_id: session.id,
  created_at: inSeconds(session.createdAt),
  last_activity_at: inSeconds(session.lastActivityAt),
  idle_timeout_seconds: session.idleSeconds,
  max_lifetime_seconds: session.lifetimeSeconds,
  isolation,
})

export function sessionRoutes(app: FastifyInstance, { sessions, health }: AppNeeds): void {
  app.post('/sessions', async (request, reply) => {
    const wanted = createSession.parse(request.body)
    const caller = callerOf(reply)
    const lease = await sessions.lease({
      idleSeconds: wanted?.idle_timeout_seconds ?? undefined,
      lifetimeSeconds: wanted?.max_lifetime_seconds ?? undefined,
    })
    if (!lease.ok) throw new HttpRefusal(503, lease.why)
    const giveBack = () => sessions.release(lease.session.id)
    // nobody would learn its id: not of one who has left already, nor of one who leaves before it is told
    if (caller.hasLeft) giveBack()
    else caller.onLeave(giveBack)
    return reply.status(201).send(handle(lease.session, health().isolation.level))
  })

  /** One that is gone already is as it should be (CP-15). */
  app.delete<{ Params: { session: string } }>('/sessions/:session', (request, reply) => {
    sessions.release(request.params.session)
    return reply.status(204).send()
  })
}

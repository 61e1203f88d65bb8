import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Session, Sessions } from '../sessions.ts'
import { HttpRefusal } from './refusal.ts'

const parameters = z.object({ session: z.string() })

export function findSession(sessions: Sessions, request: FastifyRequest): Session {
  const session = sessions.find(parameters.parse(request.params).session)
  if (!session) throw new HttpRefusal(404, 'unknown session')
  return session
}

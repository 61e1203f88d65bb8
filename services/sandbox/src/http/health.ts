import type { FastifyInstance } from 'fastify'
import type { RefusedLevel } from '../drivers/choose.ts'
import type { IsolationLevel } from '../settings.ts'

export interface Health {
  /** Why no session can be leased just now. */
  down: string | undefined
  isolation: { level: IsolationLevel; description: string; refused: RefusedLevel[] }
  python: string
  sessions: { leased: number; ready: number; most: number }
}

/** GET /health: whether sessions can be leased, what keeps them apart, and why nothing stronger does. No credential. */
export function healthRoute(app: FastifyInstance, { health }: { health: () => Health }): void {
  app.get('/health', (_request, reply) => {
    const { down, ...rest } = health()
    return reply
      .status(down ? 503 : 200)
      .send({ status: down ? 'down' : 'ok', ...(down ? { reason: down } : {}), ...rest })
  })
}

import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'

const health = z.strictObject({ status: z.enum(['ok', 'unavailable']), reason: z.string().optional() })

const schema = {
  tags: ['health'],
  summary: 'Whether requests can be taken',
  security: [],
  response: { 200: health, 503: health },
}

/** `GET /health`: 200 when a request would be served, 503 and why when not. For load balancers; it asks no credential. */
export const healthRoute =
  ({ notReady }: { notReady(): Promise<string | undefined> }): FastifyPluginCallbackZod =>
  (app, _options, done) => {
    app.get('/health', { schema }, async (_request, reply) => {
      const reason = await notReady()
      reply.header('cache-control', 'no-store')
      if (reason === undefined) return { status: 'ok' as const }
      return reply.code(503).send({ status: 'unavailable', reason })
    })
    done()
  }

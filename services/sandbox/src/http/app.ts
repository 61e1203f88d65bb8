import { timingSafeEqual } from 'node:crypto'
import { endUnread } from '@tollgate/service'
import type { Log } from '@tollgate/telemetry'
import fastify, { type FastifyError, type FastifyInstance, type FastifyRequest } from 'fastify'
import type { Sessions } from '../sessions.ts'
import type { SandboxSettings } from '../settings.ts'
import { execRoute } from './exec.ts'
import { failureOf } from './failure.ts'
import { fileRoutes } from './files.ts'
import { type Health, healthRoute } from './health.ts'
import { HttpRefusal } from './refusal.ts'
import { sessionRoutes } from './sessions.ts'

export interface AppNeeds {
  sessions: Sessions
  settings: SandboxSettings
  log: Log
  health: () => Health
}

const MAX_BODY_BYTES = 1024 * 1024

/** Code-execution protocol v1. Every answer but a file is JSON; what a client did wrong is never a 5xx. */
export function buildApp(needs: AppNeeds): FastifyInstance {
  const { settings, log } = needs
  const app = fastify({
    bodyLimit: MAX_BODY_BYTES,
    exposeHeadRoutes: false,
    forceCloseConnections: 'idle',
    // a call may take as long as it is granted, and its answer as long as its client takes something of it
    requestTimeout: 0,
    routerOptions: { maxParamLength: 512 },
  })
  endUnread(app.server, settings.unreadAnswerSeconds * 1_000)
  app.addHook('onRequest', async (request) => {
    if (fromBrowser(request)) throw new HttpRefusal(403, 'not for pages')
    if (settings.token !== undefined && request.url !== '/health' && !shows(request, settings.token))
      throw new HttpRefusal(401, 'credential missing or rejected')
  })
  app.setErrorHandler((error: FastifyError, _request, reply) => {
    const { status, detail } = failureOf(error)
    if (status === 503) void reply.header('retry-after', '5')
    if (status === 500) log.error({ err: error }, 'a request failed')
    return reply.status(status).send({ detail })
  })
  app.setNotFoundHandler((_request, reply) => reply.status(404).send({ detail: 'no such path' }))
  healthRoute(app, needs)
  sessionRoutes(app, needs)
  execRoute(app, needs)
  fileRoutes(app, needs)
  return app
}

/** Pages must not drive a backend on somebody's own machine, and no client of ours is a browser. */
const fromBrowser = ({ headers }: FastifyRequest): boolean => 'origin' in headers || 'sec-fetch-site' in headers

function shows({ headers }: FastifyRequest, token: string): boolean {
  const shown = Buffer.from(headers.authorization ?? '')
  const expected = Buffer.from(`Bearer ${token}`)
  return shown.length === expected.length && timingSafeEqual(shown, expected)
}

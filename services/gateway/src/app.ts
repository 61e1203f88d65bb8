import { endUnread } from '@tollgate/service'
import type { Log } from '@tollgate/telemetry'
import { type FastifyInstance, type FastifyPluginAsync, type FastifyPluginCallback, fastify } from 'fastify'
import { authenticate } from './auth/authenticate.ts'
import type { Identities } from './auth/identities.ts'
import { takeJson } from './body.ts'
import { type Drain, openDrain } from './drain.ts'
import { answerErrors } from './errors.ts'
import { newId } from './ids.ts'
import { notAPath, refuseBytes, refuseExpectation } from './not-http.ts'
import { observeRequests } from './observe.ts'
import './request.ts'
import { describeRoutes, serveDocumentation } from './routes/documentation.ts'
import { healthRoute } from './routes/health.ts'
import { serializeWithZod } from './routes/wire.ts'
import { validateWithZod } from './validation.ts'

export interface AppNeeds {
  log: Log
  identities: Identities
  version: string
  bodyLimitBytes: number
  /** How long a client may take no byte of a finished answer. */
  unreadAnswerMs: number
  notReady(): Promise<string | undefined>
  /** What lies below `/api/v1`; made with the signal that ends answers when the drain limit comes. */
  routes(cut: AbortSignal): Routes
}

type Route = FastifyPluginCallback | FastifyPluginAsync

/** A route that stands without a prefix as well, for clients that are given one short address. */
export const alsoBare = (route: Route): { alsoBare: Route } => ({ alsoBare: route })

export type Routes = (Route | { alsoBare: Route })[]

export interface App {
  server: FastifyInstance
  drain: Drain
}

/**
 * Times a client has for its side only. An answer takes as long as it takes: no timeout of the server's cuts one
 * (BR-161) but for a client that reads nothing of it. An idle connection outlives those of the usual load balancers, so
 * that they never send into a closed one.
 */
const clientTimes = {
  http: { headersTimeout: 20_000, connectionsCheckingInterval: 5_000 },
  requestTimeout: 300_000,
  keepAliveTimeout: 75_000,
  connectionTimeout: 0,
}

/** The HTTP server: everything a request passes on its way to a route, and back. */
export async function buildApp(needs: AppNeeds): Promise<App> {
  const app = fastify({
    ...clientTimes,
    bodyLimit: needs.bodyLimitBytes,
    genReqId: newId,
    return503OnClosing: false,
    exposeHeadRoutes: false,
    routerOptions: { maxParamLength: 512 },
    frameworkErrors: (_error, _request, reply) => notAPath(reply.raw),
    clientErrorHandler: refuseBytes,
  })
  app.server.on('checkExpectation', refuseExpectation)
  endUnread(app.server, needs.unreadAnswerMs)
  app.setValidatorCompiler(validateWithZod)
  app.setSerializerCompiler(serializeWithZod)
  takeJson(app)
  answerErrors(app, needs.log)
  const stopObserving = observeRequests(app, needs.log)
  app.addHook('onClose', async () => stopObserving())
  const drain = openDrain(app)

  await describeRoutes(app, needs.version)
  await app.register(healthRoute({ notReady: async () => (drain.draining ? 'draining' : needs.notReady()) }))
  app.get('/', { schema: { hide: true } }, (_request, reply) => reply.redirect('/docs'))
  const routes = needs.routes(drain.cut)
  await app.register(api(routes), { prefix: '/api/v1' })
  await app.register(alias(routes), { prefix: '/v1' })
  await app.register(alias(routes.filter((route) => 'alsoBare' in route)))
  await serveDocumentation(app)
  await app.ready()
  return { server: app, drain }

  function api(served: Routes) {
    return async (scope: FastifyInstance): Promise<void> => {
      authenticate(scope, needs.identities)
      for (const route of served) await scope.register('alsoBare' in route ? route.alsoBare : route)
    }
  }

  /** The same under other paths, for clients that were made for another base URL; documented once. */
  function alias(served: Routes) {
    return async (scope: FastifyInstance): Promise<void> => {
      scope.addHook('onRoute', (route) => {
        route.schema = { ...route.schema, hide: true }
      })
      await api(served)(scope)
    }
  }
}

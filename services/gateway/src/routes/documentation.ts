import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'
import { createJsonSchemaTransform } from 'fastify-type-provider-zod'

const fromZod = createJsonSchemaTransform({ zodToJsonConfig: { unrepresentable: 'any' } })

const description =
  'Chat completions from any model, with web search, page reading and code execution run by the gateway, every call priced.'

/** Reads every route registered after it, once and at registration; a request costs nothing more for it. */
export async function describeRoutes(app: FastifyInstance, version: string): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: 'Tollgate', description, version },
      components: {
        securitySchemes: {
          bearer: { type: 'http', scheme: 'bearer', description: 'An API key (`gw-…`) or the master key' },
          otariKey: { type: 'apiKey', in: 'header', name: 'Otari-Key' },
          apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key' },
        },
      },
      security: [{ bearer: [] }, { otariKey: [] }, { apiKey: [] }],
    },
    hideUntagged: true,
    transform: (route) => {
      const { schema, url } = fromZod(route as Parameters<typeof fromZod>[0])
      return { schema: nameWildcard(schema), url: url.replace(/\*$/, ':key') }
    },
  })
}

/** `/openapi.json`, and `/docs` for people: everything it loads comes from here, so that it works without the internet. */
export async function serveDocumentation(app: FastifyInstance): Promise<void> {
  app.get('/openapi.json', { schema: { hide: true } }, (_request, reply) =>
    reply.type('application/json; charset=utf-8').send(JSON.stringify(app.swagger())),
  )
  await app.register(async (docs) => {
    docs.addHook('onSend', async (_request, reply) => {
      reply.headers({
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
      })
    })
    await docs.register(swaggerUi, { routePrefix: '/docs', staticCSP: true })
  })
}

/** A path that ends in `*` is shown with a named parameter. */
function nameWildcard<S>(schema: S): S {
  const { params } = schema as { params?: { properties?: Record<string, unknown> } }
  const wildcard = params?.properties?.['*']
  return wildcard === undefined
    ? schema
    : { ...schema, params: { ...params, properties: { key: wildcard }, required: ['key'] } }
}

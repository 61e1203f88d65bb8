import type { Identity } from './auth/identity.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Who asks. There on every path below `/api/v1`, since nobody else gets that far. */
    identity: Identity
    /** The JSON body as it was written: `body` is what it parses to. Empty without a body. */
    bodyText: string
  }
}

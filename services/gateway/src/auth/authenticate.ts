import { Fault } from '@tollgate/contracts'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { readCredential } from './credential.ts'
import type { Identities } from './identities.ts'

/** Every route of this scope answers 401 to whoever is unknown, before its body is read. */
export function authenticate(scope: FastifyInstance, identities: Identities): void {
  scope.addHook('onRequest', (request, _reply, done) => {
    const found = identities.identify(readCredential(request.raw))
    if (!(found instanceof Promise)) {
      request.identity = found
      return done()
    }
    found.then((identity) => {
      request.identity = identity
      done()
    }, done)
  })
}

/** As a route's `preValidation` hook: the operator's credential or 403. */
export async function operatorOnly(request: FastifyRequest): Promise<void> {
  if (request.identity.kind !== 'master') throw new Fault('forbidden', 'This endpoint requires the master key')
}

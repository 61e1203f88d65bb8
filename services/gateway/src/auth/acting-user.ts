import { Fault } from '@tollgate/contracts'
import type { Dialect } from '../conversation/turn.ts'
import type { GatewaySettings } from '../settings.ts'
import type { Identities } from './identities.ts'
import type { Identity } from './identity.ts'

/**
 * Whom a completion runs for: a key's own user, or with the master key the one the request names. Comes after
 * the body's validation and before everything that the user's rights decide.
 */
export async function actFor(
  identity: Identity,
  named: string | undefined,
  { dialect, identities, settings }: { dialect: Dialect; identities: Identities; settings: GatewaySettings },
): Promise<Identity> {
  const id = identity.kind === 'master' ? requireUser(named, dialect) : identity.user
  const user = await identities.user(identity.organization, id)
  if (!user) throw new Fault('not_found', `User '${id}' not found`)
  if (user.blocked) throw new Fault('forbidden', `User '${id}' is blocked`)
  if (identity.kind === 'master') {
    const { allowedModels, allowedTools } = user
    return { ...identity, user: id, allowedModels, allowedTools }
  }
  const reject = identity.rejectUserMismatch ?? settings.rejectUserMismatch
  if (named && named !== id && reject) {
    throw new Fault('forbidden', 'The user named in the request is not the user of this API key')
  }
  return identity
}

function requireUser(named: string | undefined, dialect: Dialect): string {
  if (named) return named
  const member = dialect === 'messages' ? 'metadata.user_id' : 'user'
  throw new Fault('invalid_request', `When using master key, '${member}' field is required in request body`)
}

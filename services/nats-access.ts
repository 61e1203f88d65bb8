import { parseUrl } from '@tollgate/contracts'
/** Servers without who may use them, and that apart, as the bus wants it. */
export interface NatsAccess {
  servers: string[]
  user?: string
  password?: string
  token?: string
}

/**
 * Reads `nats_url`: one or more servers, separated by commas, with the credentials NATS URLs may carry
 * (`nats://user:password@host:4222`, or `nats://token@host:4222`), which are the same for all of them.
 */
export function natsAccess(text: string): NatsAccess {
  const urls = text.split(',').map((part) => readServer(part.trim()))
  const servers = urls.map((url) => `${url.protocol}//${url.host}`)
  const named = urls.find(({ username }) => username !== '')
  if (!named) return { servers }
  const [user, password] = [decodeURIComponent(named.username), decodeURIComponent(named.password)]
  return password === '' ? { servers, token: user } : { servers, user, password }
}

function readServer(text: string): URL {
  const url = parseUrl(text.includes('://') ? text : `nats://${text}`)
  if (!url) throw new Error('nats_url is not a list of servers like nats://host:4222')
  return url
}

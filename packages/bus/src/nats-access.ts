import { setTimeout as sleep } from 'node:timers/promises'
import {
  type Authenticator,
  type ConnectionOptions,
  connect,
  credsAuthenticator,
  ErrorCode,
  type NatsConnection,
  NatsError,
} from 'nats'

export interface ServerAccess {
  /** `nats://host:port`, or `tls://` to insist on TLS; several may be given. */
  servers: string | string[]
  user?: string
  password?: string
  token?: string
  /** The text of a credentials file. */
  creds?: string
  /** PEM texts for TLS that does not rest on public authorities, or that asks for a client's certificate. */
  tls?: { ca?: string; cert?: string; key?: string }
}

/** A server that starts beside us may need a moment; credentials that it refuses do not get better by waiting. */
export async function firstConnection(options: ConnectionOptions, startBy: number): Promise<NatsConnection> {
  for (;;) {
    try {
      return await connect(options)
    } catch (cause) {
      const code = cause instanceof NatsError ? cause.code : 'the address does not resolve or answer'
      const refused = code === ErrorCode.AuthorizationViolation || code === ErrorCode.BadAuthentication
      if (!refused && Date.now() < startBy) {
        await sleep(250)
        continue
      }
      const advice = refused ? 'check the credentials' : 'check that its address is right and that it runs'
      throw new Error(`cannot connect to NATS (${code}): ${advice}`, { cause })
    }
  }
}

export function connectionOptions({ servers, user, password, token, creds, tls }: ServerAccess): ConnectionOptions {
  const addresses = [servers].flat().flatMap((list) => list.split(',').map((one) => one.trim()))
  // the client reads no credentials out of a URL, and would show them when it names the server
  if (addresses.some((address) => address.includes('@'))) {
    throw new Error('the address of NATS holds credentials: give user and password, token or creds beside it')
  }
  const secure = addresses.some((address) => address.startsWith('tls://'))
  return {
    servers: addresses,
    ...(user === undefined ? {} : { user }),
    ...(password === undefined ? {} : { pass: password }),
    ...(token === undefined ? {} : { token }),
    ...(creds === undefined ? {} : { authenticator: authenticatorOf(creds) }),
    ...(secure || tls ? { tls: tls ?? {} } : {}),
    timeout: 5_000,
    maxReconnectAttempts: -1,
    ignoreAuthErrorAbort: true,
    reconnectTimeWait: 250,
    reconnectJitter: 250,
    reconnectJitterTLS: 500,
    // a server that is there but hangs is left after 15 s
    pingInterval: 5_000,
    maxPingOut: 2,
    noAsyncTraces: true,
  }
}

const authenticatorOf = (creds: string): Authenticator => credsAuthenticator(new TextEncoder().encode(creds))

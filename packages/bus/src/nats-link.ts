import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '@tollgate/telemetry'
import {
  type Authenticator,
  type ConnectionOptions,
  connect,
  credsAuthenticator,
  ErrorCode,
  Events,
  type NatsConnection,
  NatsError,
  type PublishOptions,
  type Status,
} from 'nats'
import { inboxPrefix } from './nats-inbox.ts'

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

/** One connection that comes back by itself, however long it was gone. */
export interface Link {
  readonly connection: NatsConnection
  readonly connected: boolean
  /** Counts connections, from 1: what was sent in an earlier one may never have arrived. */
  readonly generation: number
  /** Epoch milliseconds since when the connection stands. */
  readonly since: number
  /** False when there is no connection: what the client would keep for later, it would throw away with its next try. */
  publish(subject: string, data?: Uint8Array | string, options?: PublishOptions): boolean
  /** True once there will be no connection any more. */
  readonly closed: boolean
  /** Told whenever the connection comes or goes. */
  onChange(listener: () => void): void
  /** Resolves when there is a connection, or will be none any more. */
  whenConnected(): Promise<void>
  /** Resolves once everything that the server has sent us until now was read; rejects when the connection breaks. */
  caughtUp(): Promise<void>
  close(): Promise<void>
}

interface LinkOptions extends ServerAccess {
  name: string
  log: Log
  startWithinMs: number
}

export async function openLink({ name, log, startWithinMs, ...access }: LinkOptions): Promise<Link> {
  const connection = await firstConnection(
    { ...connectionOptions(access), name, inboxPrefix: inboxPrefix(name) },
    Date.now() + startWithinMs,
  )
  const listeners = new Set<() => void>()
  // sent together once a turn of the event loop: a write to the socket costs more than all the rest of a message
  const outgoing: Parameters<NatsConnection['publish']>[] = []
  let connected = true
  let closing = false
  let closed = false
  let coming: Promise<void> | undefined
  let came: (() => void) | undefined
  let catchingUp: Promise<void> | undefined
  let generation = 1
  let since = Date.now()

  const change = (now: boolean) => {
    if (now === connected) return
    connected = now
    if (connected) {
      generation += 1
      since = Date.now()
      arrive()
    }
    for (const listener of listeners) listener()
  }
  const arrive = () => {
    came?.()
    coming = undefined
  }
  const end = () => {
    closed = true
    change(false)
    arrive()
  }
  const send = () => {
    for (const [subject, data, options] of outgoing.splice(0)) {
      try {
        connection.publish(subject, data, options)
      } catch (err) {
        // as if it had been under way when the connection broke
        log.debug({ err, subject }, 'a message could not be sent')
      }
    }
  }
  const follow = async () => {
    for await (const status of connection.status()) {
      if (status.type === Events.Disconnect) {
        if (connected && !closing) log.warn('the connection to NATS is lost; trying again until it is back')
        change(false)
      } else if (status.type === Events.Reconnect) {
        log.info('connected to NATS again')
        change(true)
      } else if (status.type === Events.Error) log.warn(problem(status), 'NATS reports a problem')
    }
  }
  follow().catch((err: unknown) => log.error({ err }, 'the state of the connection to NATS is no longer known'))
  connection.closed().then((err) => {
    if (!closing) log.error({ err }, 'the connection to NATS was closed for good')
    end()
  }, end)

  return {
    connection,
    get connected() {
      return connected
    },
    get generation() {
      return generation
    },
    get since() {
      return since
    },
    publish(subject, data, options) {
      if (!connected) return false
      if (outgoing.push([subject, data, options]) === 1) setImmediate(send)
      return true
    },
    get closed() {
      return closed
    },
    onChange: (listener) => void listeners.add(listener),
    whenConnected() {
      if (connected || closed) return Promise.resolve()
      coming ??= new Promise((resolve) => {
        came = resolve
      })
      return coming
    },
    caughtUp() {
      catchingUp ??= connection.flush().finally(() => {
        catchingUp = undefined
      })
      return catchingUp
    },
    async close() {
      closing = true
      send()
      // a server that does not answer must not hold up the end
      if (connected) await Promise.race([connection.flush().catch(() => undefined), sleep(1_000)])
      await connection.close()
    },
  }
}

/** A server that starts beside us may need a moment; credentials that it refuses do not get better by waiting. */
async function firstConnection(options: ConnectionOptions, startBy: number): Promise<NatsConnection> {
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

function connectionOptions({ servers, user, password, token, creds, tls }: ServerAccess): ConnectionOptions {
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

const problem = ({ data, permissionContext }: Status & { permissionContext?: unknown }): object => ({
  code: typeof data === 'string' ? data : undefined,
  ...(permissionContext ? { permission: permissionContext } : {}),
})

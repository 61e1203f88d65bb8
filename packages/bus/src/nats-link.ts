import { setTimeout as sleep } from 'node:timers/promises'
import type { Log } from '@tollgate/telemetry'
import { Events, type NatsConnection, type PublishOptions, type Status } from 'nats'
import { connectionOptions, firstConnection, type ServerAccess } from './nats-access.ts'
import { inboxPrefix } from './nats-inbox.ts'

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

const problem = ({ data, permissionContext }: Status & { permissionContext?: unknown }): object => ({
  code: typeof data === 'string' ? data : undefined,
  ...(permissionContext ? { permission: permissionContext } : {}),
})

import type { Log } from '@tollgate/telemetry'
import { createInbox, type Msg } from 'nats'
import type { Link } from './nats-link.ts'

export interface Inbox {
  /** Gives a subject on which `receive` hears what is sent there, until it is closed. */
  open(receive: (message: Msg) => void): Address
  /** A subject prefix that nobody else uses, for a subscription of its own. */
  fresh(): string
}

export interface Address {
  subject: string
  /** Unique among all callers, and one token of a subject. */
  id: string
  close(): void
}

/** One subscription for all replies of a connection: a subscription for each would cost the server more than the reply. */
export function openInbox(link: Link, name: string, log: Log): Inbox {
  const base = createInbox(inboxPrefix(name))
  const unique = base.slice(base.lastIndexOf('.') + 1)
  const receivers = new Map<string, (message: Msg) => void>()
  let next = 0
  link.connection.subscribe(`${base}.*`, {
    callback(error, message) {
      // whatever escapes from here would end the client's reader
      try {
        if (error) throw error
        receivers.get(message.subject.slice(base.length + 1))?.(message)
      } catch (err) {
        log.error({ err }, 'a reply could not be read')
      }
    },
  })
  return {
    fresh: () => createInbox(inboxPrefix(name)),
    open(receive) {
      next += 1
      const token = next.toString(36)
      receivers.set(token, receive)
      return { subject: `${base}.${token}`, id: `${unique}-${token}`, close: () => receivers.delete(token) }
    },
  }
}

/** Everything that is sent to a service, but what it serves, comes under this: permissions are given by it. */
export const inboxPrefix = (name: string): string => `_INBOX.${name}`

/** The call that replies to an inbox belong to. */
export function callIdOf(inbox: string): string {
  const token = inbox.lastIndexOf('.')
  const unique = inbox.lastIndexOf('.', token - 1)
  return `${inbox.slice(unique + 1, token)}-${inbox.slice(token + 1)}`
}

/** True for what the server itself says when nobody listens to a subject. */
export const nobodyListens = (message: Msg): boolean => message.data.length === 0 && message.headers?.code === 503

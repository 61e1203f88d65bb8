import { type Msg, nanos } from 'nats'
import { type Delivery, openDelivery } from './nats-delivery.ts'
import type { Link } from './nats-link.ts'
import type { Place } from './nats-streams.ts'

/** The server drops a request for messages after so long, and is asked anew. */
const EXPIRES_MS = 20_000
/** How much later than that we stop believing that the server still knows of the request. */
const LATE_MS = 2_000

interface PullOptions {
  link: Link
  /** A subject prefix of its own for what the server sends. */
  inbox: string
  place: Place
  consumer: string
  deliver(delivery: Delivery): void
  /** A request has ended: all came, none did in time, or the server has gone or says no. */
  ended(why: 'done' | 'expired' | 'trouble'): void
}

export interface Pull {
  /** True while the server owes us messages. */
  readonly asking: boolean
  ask(count: number): void
  /** Asks no more; what is still on its way is delivered before it resolves. */
  stop(): Promise<void>
}

/**
 * Asks a consumer for messages, one request at a time. Not by the client's own iterators: those end no request early,
 * so that a worker which stops would still be handed work.
 */
export function openPull({ link, inbox, place, consumer, deliver, ended }: PullOptions): Pull {
  const api = `$JS.API.CONSUMER.MSG.NEXT.${place.stream}.${consumer}`
  let request = 0
  let owed = 0
  let overdue: NodeJS.Timeout | undefined
  const end = (why: 'done' | 'expired' | 'trouble') => {
    if (owed === 0) return
    owed = 0
    clearTimeout(overdue)
    ended(why)
  }
  const receive = (message: Msg) => {
    // a message keeps the subject it was sent to; what the server itself says comes to the inbox
    if (!message.subject.startsWith(inbox)) {
      const all = owed === 1
      if (!all && owed > 0) owed -= 1
      deliver(openDelivery(link, place, message))
      if (all) end('done')
    } else if (message.subject === `${inbox}.${request}`) {
      const code = message.headers?.code
      if (code !== undefined && code >= 400) end(code === 404 || code === 408 ? 'expired' : 'trouble')
    }
  }
  const subscription = link.connection.subscribe(`${inbox}.*`, {
    callback(error, message) {
      if (error) end('trouble')
      else receive(message)
    },
  })
  link.onChange(() => end('trouble'))
  return {
    get asking() {
      return owed > 0
    },
    ask(count) {
      request += 1
      owed = count
      overdue = setTimeout(end, EXPIRES_MS + LATE_MS, 'trouble')
      const body = JSON.stringify({ batch: count, expires: nanos(EXPIRES_MS) })
      if (!link.publish(api, body, { reply: `${inbox}.${request}` })) end('trouble')
    },
    async stop() {
      clearTimeout(overdue)
      owed = 0
      // it fails when the connection is gone, and then nothing is on its way
      await subscription.drain().catch(() => undefined)
    },
  }
}

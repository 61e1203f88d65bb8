import type { Fault } from '@tollgate/contracts'
import { MsgHdrsImpl } from 'nats'
import type { Carry, Outgoing } from './caller.ts'
import { busy, disconnected, silent, unserved } from './faults.ts'
import { QUEUE_LENGTH } from './limits.ts'
import { Exchange, type Way, type Wiring } from './nats-exchange.ts'
import { nobodyListens } from './nats-inbox.ts'
import { Publication } from './nats-publication.ts'
import { deliveriesOf } from './nats-streams.ts'
import { type Carrier, writeTrace } from './tracing.ts'

export interface Calls {
  carry: Carry
  readonly pending: number
  giveUp(why: Fault): void
}

/** Sends calls and gathers their replies. */
export function openCalls(wiring: Wiring): Calls {
  const pending = new Set<Exchange>()
  return {
    async carry(outgoing) {
      if (wiring.link.closed) throw disconnected('the bus is closed')
      // without a connection calls wait for it, and what waits must have a bound
      if (!wiring.link.connected && pending.size >= QUEUE_LENGTH) throw disconnected('too many calls wait for NATS')
      const way = outgoing.rpc.delivery === 'queue' ? queued : direct
      const exchange = new Exchange(wiring, outgoing, (self) => way(wiring, outgoing, self))
      pending.add(exchange)
      try {
        return await exchange.answer
      } finally {
        pending.delete(exchange)
      }
    },
    get pending() {
      return pending.size
    },
    giveUp(why) {
      for (const exchange of pending) exchange.giveUp(why)
    },
  }
}

/** A direct call is sent once more at most: when it may run twice, or has surely not run. */
const SENDS = 2
const REPEAT_AFTER_MS = 50
const REPEAT_SPREAD_MS = 150
/** For so long after a reconnection others may not be back yet: that nobody serves a subject says little. */
const RETURN_MS = 2_000

function direct({ link, names, timing }: Wiring, outgoing: Outgoing, exchange: Exchange): Way {
  const { rpc, deadline } = outgoing
  const subject = names.subject(rpc.subject)
  const body = Buffer.from(outgoing.json)
  let waitsSince = Date.now()
  let sends = 0
  let sentAt = 0
  let notBefore = 0

  const send = (now: number) => {
    const headers = MsgHdrsImpl.fromRecord(headersOf(outgoing, sends > 0 ? { 'Tg-Attempt': [`${sends + 1}`] } : {}))
    if (!link.publish(subject, body, { reply: exchange.address.subject, headers })) return
    sends += 1
    sentAt = now
  }
  const postpone = (until: number) => {
    waitsSince = Date.now()
    sentAt = 0
    notBefore = until
  }
  return {
    tick(now) {
      if (sentAt !== 0) {
        if (exchange.isSilent(now, sentAt)) exchange.fail({ fault: silent(rpc.subject), again: 'idempotent' })
      } else if (link.connected) {
        if (now >= notBefore) send(now)
      } else if (now - waitsSince > timing.patienceMs) {
        exchange.giveUp(disconnected('NATS has been out of reach for too long'))
      }
    },
    serverSays(message) {
      if (!nobodyListens(message)) return
      const now = Date.now()
      if (link.generation > 1 && now - link.since < RETURN_MS) {
        sends -= 1
        postpone(now + REPEAT_AFTER_MS)
      } else exchange.fail({ fault: unserved(rpc.subject), again: 'always' })
    },
    retries({ again }) {
      const now = Date.now()
      const repeatAt = now + REPEAT_AFTER_MS + Math.random() * REPEAT_SPREAD_MS
      if (again === 'never' || (again === 'idempotent' && !rpc.idempotent)) return false
      if (sends >= SENDS || repeatAt >= deadline) return false
      postpone(repeatAt)
      return true
    },
  }
}

function queued({ link, names, streams }: Wiring, outgoing: Outgoing, exchange: Exchange): Way {
  const { rpc } = outgoing
  const { id, subject: reply } = exchange.address
  const publication = new Publication({
    link,
    subject: names.subject(rpc.subject),
    reply,
    headers: headersOf(outgoing, { 'Nats-Msg-Id': [id], 'Tg-Reply': [reply] }),
    body: Buffer.from(outgoing.json),
    once: !rpc.idempotent,
    prepare() {
      const place = streams.queue(rpc)
      place.doubt()
      return place.ready()
    },
  })
  const lastAttempt = deliveriesOf(rpc)
  let storedIn = 0

  return {
    tick(now) {
      const unheard = exchange.reply.attempt === 0
      // the queue is in memory, so that it may have gone with its server; one that is still there knows the call's id
      if (publication.stored && storedIn !== link.generation && unheard && rpc.idempotent) publication.restart()
      publication.tick(now)
      const nobodyElse = exchange.reply.attempt >= lastAttempt
      if (nobodyElse && exchange.isSilent(now, exchange.heardAt)) exchange.giveUp(silent(rpc.subject))
    },
    serverSays(message) {
      const refused = publication.take(message) === 'full'
      if (publication.stored) storedIn = link.generation
      else if (refused) exchange.giveUp(busy())
    },
    // another worker takes over from one that dies, and nobody else tries again
    retries: () => false,
  }
}

function headersOf({ deadline, step }: Outgoing, more: Carrier): Carrier {
  const headers: Carrier = { 'Tg-Deadline': [`${deadline}`], ...more }
  writeTrace(step.context, headers)
  return headers
}

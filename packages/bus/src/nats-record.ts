import type { Fault } from '@tollgate/contracts'
import type { Recording } from './caller.ts'
import type { Ticking } from './clock.ts'
import { busy, notStored } from './faults.ts'
import { QUEUE_LENGTH } from './limits.ts'
import type { Wiring } from './nats-exchange.ts'
import type { Health } from './nats-health.ts'
import { Publication } from './nats-publication.ts'
import { type Carrier, writeTrace } from './tracing.ts'

export interface Recorder {
  store(recording: Recording): Promise<void>
  readonly pending: number
  giveUp(why: Fault): void
}

/** Stores events: one is in the stream's file, and on its replicas, when `store` resolves. */
export function openRecorder(wiring: Wiring, health: Health): Recorder {
  const { link, inbox, clock, names, streams } = wiring
  const pending = new Set<(fault: Fault) => void>()

  function store({ topic, id, json, deadline, step }: Recording): Promise<void> {
    if (pending.size >= QUEUE_LENGTH) throw busy()
    const headers: Carrier = { 'Nats-Msg-Id': [id] }
    writeTrace(step.context, headers)
    return new Promise((resolve, reject) => {
      const address = inbox.open((message) => {
        const refused = publication.take(message) !== undefined
        if (publication.stored) end()
        else if (refused) health.failed()
      })
      const place = streams.events(topic.subject)
      const publication = new Publication({
        link,
        subject: names.subject(topic.subject),
        reply: address.subject,
        headers,
        body: Buffer.from(json),
        prepare() {
          place.doubt()
          return place.ready()
        },
      })
      const item: Ticking = {
        tick(now) {
          if (now >= deadline) giveUp(notStored(new Error(publication.trouble)))
          else publication.tick(now)
        },
      }
      const close = () => {
        clock.remove(item)
        address.close()
        pending.delete(giveUp)
      }
      const end = () => {
        close()
        health.worked(place.stream)
        resolve()
      }
      const giveUp = (fault: Fault) => {
        close()
        health.failed()
        reject(fault)
      }
      pending.add(giveUp)
      clock.add(item)
      item.tick(Date.now())
    })
  }

  return {
    store,
    get pending() {
      return pending.size
    },
    giveUp(why) {
      for (const end of pending) end(why)
    },
  }
}

import type { Topic } from '@tollgate/contracts'
import { type Offered, offer } from './batches.ts'
import type { ConsumeOptions } from './bus.ts'
import { textOf } from './frames.ts'
import { countDropped } from './measure.ts'
import type { Delivery } from './nats-delivery.ts'
import type { Wiring } from './nats-exchange.ts'
import { contextOf } from './nats-order.ts'
import { openSupply } from './nats-supply.ts'

const DEFAULT_BATCH = 64
const RETRY_MS = 1_000
const RETRY_MOST_MS = 30_000

export interface Consuming {
  readonly busy: boolean
  stop(): Promise<void>
}

type Event = Offered<unknown> & { delivery: Delivery }

/** Takes events from a stream, batch by batch; see `Bus.consume`. */
export async function consumeEvents(
  wiring: Wiring,
  topic: Topic,
  { durable, batch = DEFAULT_BATCH, lingerMs = 0 }: ConsumeOptions,
  handler: (events: never[]) => Promise<void>,
): Promise<Consuming> {
  const { link, streams, timing, log } = wiring
  const { subject } = topic
  const place = streams.consumer(subject, durable)
  await place.ready()
  const supply = openSupply({ wiring, place, consumer: durable, most: batch, ahead: true, lingerMs })
  let taken: Delivery[] = []

  /** An event that does not parse never will: it is dropped, since holding on to it would change nothing. */
  function read(delivery: Delivery): Event[] {
    try {
      const event = topic.event.parse(JSON.parse(textOf(delivery.data)))
      return [{ event, from: contextOf(delivery.headers), delivery }]
    } catch (err) {
      log.error({ err, subject, sequence: delivery.sequence }, 'a recorded event cannot be read, and is dropped')
      countDropped(subject)
      delivery.term()
      return []
    }
  }

  async function work(): Promise<void> {
    const events = taken.flatMap(read)
    if (events.length === 0) return
    const failures = await offer(subject, events, handler as (events: unknown[]) => Promise<void>, log)
    for (const [index, { delivery }] of events.entries()) {
      if (failures[index] === undefined) delivery.ack()
      else delivery.nak(Math.min(RETRY_MS * 2 ** (delivery.count - 1), RETRY_MOST_MS))
    }
  }

  async function loop(): Promise<void> {
    for (taken = await supply.take(); taken.length > 0; taken = await supply.take()) {
      await work().catch((err: unknown) => log.error({ err, subject }, 'recorded events could not be taken'))
      taken = []
    }
  }
  // it never rejects: the supply gives nothing more when the connection is closed, and work is caught
  void loop()

  // what is not done in time would be handed to somebody else, so that it is held on to until it is done
  let stopped = false
  const alive = setInterval(() => {
    if (link.closed || (stopped && taken.length === 0)) clearInterval(alive)
    for (const delivery of [...taken, ...supply.held]) delivery.working()
  }, timing.ackWaitMs)
  alive.unref()
  return {
    get busy() {
      return taken.length > 0
    },
    async stop() {
      stopped = true
      await supply.stop((delivery) => delivery.nak())
    },
  }
}

import type { Rpc } from '@tollgate/contracts'
import { stopping } from './faults.ts'
import { countTaken } from './measure.ts'
import type { Bench } from './nats-bench.ts'
import type { Delivery } from './nats-delivery.ts'
import type { Wiring } from './nats-exchange.ts'
import { refuse } from './nats-job.ts'
import { readOrder } from './nats-order.ts'
import type { Served } from './nats-serve.ts'
import { deliveriesOf } from './nats-streams.ts'
import { openSupply, type Supply } from './nats-supply.ts'
import type { AnyHandler } from './perform.ts'

/** Serves a queued call: each free slot fetches one, so that a slow worker is not dealt what a quick one could do. */
export async function serveQueue(
  wiring: Wiring,
  bench: Bench,
  rpc: Rpc,
  handler: AnyHandler,
  slotCount: number,
): Promise<Served> {
  const { link, log } = wiring
  const { subject } = rpc
  const place = wiring.streams.workers(rpc, wiring.name)
  await place.ready()
  const slots = Array.from({ length: slotCount }, () =>
    openSupply({ wiring, place, consumer: wiring.name, most: 1, ahead: false, lingerMs: 0 }),
  )
  let busy = 0

  async function work(delivery: Delivery): Promise<void> {
    countTaken(subject, delivery)
    const order = readOrder(delivery, delivery.count)
    if (!order) {
      log.warn({ subject }, 'a message came that is no call')
      return delivery.term()
    }
    const running = bench.find(order.id)
    if (running) {
      // handed out again since the queue lost sight of us: it goes on, and is acknowledged under its new number
      running.delivery = delivery
      return
    }
    if (!bench.wanted(order)) return delivery.ack()
    const last = order.attempt >= deliveriesOf(rpc)
    // what will not be handed out again leaves the queue now, or it would fill it if we died
    if (last) delivery.ack()
    const job = bench.take(order, last ? undefined : delivery)
    job.beat()
    await job.run(rpc, handler).finally(() => bench.remove(job))
  }

  async function loop(slot: Supply): Promise<void> {
    for (let [delivery] = await slot.take(); delivery; [delivery] = await slot.take()) {
      busy += 1
      await work(delivery).catch((err: unknown) => log.error({ err, subject }, 'a call could not be worked on'))
      busy -= 1
    }
  }
  // it never rejects: a slot gives nothing more when the connection is closed, and work is caught
  for (const slot of slots) void loop(slot)

  const giveBack = (delivery: Delivery) => {
    if (rpc.idempotent) return delivery.nak()
    const order = readOrder(delivery, delivery.count)
    if (order) refuse(link, order, stopping())
    delivery.ack()
  }
  return {
    load: () => ({ busy, slots: slotCount }),
    async stop() {
      await Promise.all(slots.map((slot) => slot.stop(giveBack)))
    },
  }
}

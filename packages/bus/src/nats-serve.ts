import type { Rpc } from '@tollgate/contracts'
import type { Msg } from 'nats'
import { busy, stopping } from './faults.ts'
import type { Bench } from './nats-bench.ts'
import type { Wiring } from './nats-exchange.ts'
import { type NatsJob, refuse } from './nats-job.ts'
import { type Order, readOrder } from './nats-order.ts'
import type { AnyHandler } from './perform.ts'
import { Slots } from './slots.ts'

/** A contract that this process serves. */
export interface Served {
  load(): { busy: number; slots: number }
  /** Takes no new calls; resolves when none can come in any more. */
  stop(): Promise<void>
}

/** Serves a direct call: dealt out by the server among all that serve it, worked on when a slot is free. */
export async function serveDirect(
  wiring: Wiring,
  bench: Bench,
  rpc: Rpc,
  handler: AnyHandler,
  slotCount: number,
): Promise<Served> {
  const { link, names, log } = wiring
  const slots = new Slots(slotCount, 2 * slotCount)
  const waiting = new Map<NatsJob, () => void>()
  let open = true

  function begin(order: Order): void {
    const job = bench.take(order)
    const start = () => {
      waiting.delete(job)
      void work(job)
    }
    waiting.set(job, start)
    if (slots.enter(start)) return
    waiting.delete(job)
    bench.remove(job)
    refuse(link, order, busy())
  }

  async function work(job: NatsJob): Promise<void> {
    try {
      if (bench.wanted(job.order) && !job.left) await job.run(rpc, handler)
    } catch (err) {
      log.error({ err, subject: rpc.subject }, 'a call could not be answered')
    } finally {
      bench.remove(job)
      slots.leave()
    }
  }

  function receive(message: Msg): void {
    const order = readOrder(message)
    if (!order) throw new Error('a message came that is no call')
    // the same call again: its caller lost sight of us, and will hear of the first
    if (bench.find(order.id) || !bench.wanted(order)) return
    if (open) begin(order)
    else refuse(link, order, stopping())
  }

  const subscription = link.connection.subscribe(names.subject(rpc.subject), {
    queue: wiring.name,
    callback(err, message) {
      // whatever escapes from here would end the client's reader
      try {
        if (err) throw err
        receive(message)
      } catch (thrown) {
        log.error({ err: thrown, subject: rpc.subject }, 'a call could not be taken')
      }
    },
  })
  await link.connection.flush()

  return {
    load: () => ({ busy: slots.busy, slots: slots.slots }),
    async stop() {
      open = false
      for (const [job, start] of waiting) {
        slots.withdraw(start)
        bench.remove(job)
        refuse(link, job.order, stopping())
      }
      waiting.clear()
      // calls that the server has dealt to us already still come in, and are refused
      await subscription.drain().catch(() => undefined)
    },
  }
}

import type { Wiring } from './nats-exchange.ts'
import { NatsJob, type Queued } from './nats-job.ts'
import type { Order } from './nats-order.ts'

/** How many cancelled calls are remembered that may still be on their way here. */
const REMEMBERED = 10_000

/** All calls that a process works on, whatever brought them. */
export interface Bench {
  readonly size: number
  find(id: string): NatsJob | undefined
  /** False when nobody waits for it any more. */
  wanted(order: Order): boolean
  /** Takes a call on: its caller is told now and then that it is not forgotten, until it is removed. */
  take(order: Order, delivery?: Queued): NatsJob
  remove(job: NatsJob): void
  interruptAll(): void
}

export function openBench(wiring: Wiring): Bench {
  const { link, names, clock, log } = wiring
  const jobs = new Map<string, NatsJob>()
  const cancelled = new Set<string>()

  const cancel = (id: string) => {
    const job = jobs.get(id)
    if (job) return job.leave()
    for (const oldest of cancelled) {
      if (cancelled.size < REMEMBERED) break
      cancelled.delete(oldest)
    }
    cancelled.add(id)
  }
  link.connection.subscribe(names.cancel('*'), {
    callback(err, message) {
      if (err) log.error({ err }, 'this worker is not told when a call is cancelled')
      else cancel(message.subject.slice(names.cancel('').length))
    },
  })

  return {
    get size() {
      return jobs.size
    },
    find: (id) => jobs.get(id),
    wanted: ({ id, deadline }) => deadline > Date.now() && !cancelled.has(id),
    take(order, delivery) {
      const job = new NatsJob(wiring, order, delivery)
      jobs.set(order.id, job)
      clock.add(job)
      return job
    },
    remove(job) {
      jobs.delete(job.order.id)
      clock.remove(job)
    },
    interruptAll() {
      for (const job of jobs.values()) job.interrupt()
    },
  }
}

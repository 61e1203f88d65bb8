import type { Topic } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import { offer } from './batches.ts'
import type { ConsumeOptions } from './bus.ts'
import type { Recording } from './caller.ts'
import type { Clock, Ticking } from './clock.ts'
import { busy, notStored } from './faults.ts'
import { QUEUE_LENGTH } from './limits.ts'
import { readInput } from './validate.ts'

/** How many ids are remembered, so that an event recorded twice is taken once. */
const REMEMBERED = 10_000
const DEFAULT_BATCH = 64

interface Waiting {
  recording: Recording
  taken(): void
  failed(why: unknown): void
}

interface Consumer {
  batch: number
  handler: (events: unknown[]) => Promise<void>
  queue: Waiting[]
  busy: boolean
}

export interface MemoryTopics {
  record(recording: Recording): Promise<void>
  consume(topic: Topic, options: ConsumeOptions, handler: (events: never[]) => Promise<void>): void
  /** Events not yet taken. */
  readonly pending: number
}

/** Recording inside one process: the consumer takes the event in the same step, and what it writes is the receipt. */
export function openMemoryTopics(clock: Clock, log: Log): MemoryTopics {
  const consumers = new Map<string, Map<string, Consumer>>()
  const unclaimed = new Map<string, Set<Waiting>>()
  const remembered = new Map<string, Promise<void>>()
  const pending = new Set<Promise<void>>()

  function store(recording: Recording): Promise<void> {
    const { subject } = recording.topic
    const claimed = consumers.get(subject)
    if (claimed)
      return Promise.all([...claimed.values()].map((consumer) => add(consumer, recording))).then(() => undefined)
    const early = unclaimed.get(subject) ?? new Set()
    unclaimed.set(subject, early)
    if (early.size >= QUEUE_LENGTH) return Promise.reject(busy())
    return new Promise((resolve, reject) => {
      early.add({ recording, taken: resolve, failed: reject })
    })
  }

  function add(consumer: Consumer, recording: Recording): Promise<void> {
    if (consumer.queue.length >= QUEUE_LENGTH) return Promise.reject(busy())
    return new Promise((resolve, reject) => {
      consumer.queue.push({ recording, taken: resolve, failed: reject })
      if (!consumer.busy) void work(consumer, recording.topic)
    })
  }

  /** What came in while a batch was being taken makes the next one. */
  async function work(consumer: Consumer, { subject, event }: Topic): Promise<void> {
    consumer.busy = true
    for (
      let batch = consumer.queue.splice(0, consumer.batch);
      batch.length > 0;
      batch = consumer.queue.splice(0, consumer.batch)
    ) {
      const offered = batch.map(({ recording }) => ({
        event: readInput(event, recording.json),
        from: recording.step.context,
      }))
      const failures = await offer(subject, offered, consumer.handler, log)
      for (const [index, { taken, failed }] of batch.entries()) {
        if (failures[index] === undefined) taken()
        else failed(notStored(failures[index]))
      }
    }
    consumer.busy = false
  }

  return {
    record(recording) {
      const key = `${recording.topic.subject} ${recording.id}`
      const known = remembered.get(key)
      if (known) return known
      const stored = byDeadline(store(recording), recording.deadline, clock)
      remembered.set(key, stored)
      pending.add(stored)
      stored.then(
        () => pending.delete(stored),
        () => {
          pending.delete(stored)
          remembered.delete(key)
        },
      )
      for (const oldest of remembered.keys()) {
        if (remembered.size <= REMEMBERED) break
        remembered.delete(oldest)
      }
      return stored
    },
    consume(topic, { durable, batch = DEFAULT_BATCH }, handler) {
      const { subject } = topic
      const named = consumers.get(subject) ?? new Map<string, Consumer>()
      consumers.set(subject, named)
      if (named.has(durable)) throw new Error(`${durable} consumes ${subject} twice in one process`)
      const consumer = { batch, handler: handler as Consumer['handler'], queue: [], busy: false }
      named.set(durable, consumer)
      const early = unclaimed.get(subject) ?? []
      unclaimed.delete(subject)
      for (const { recording, taken, failed } of early) add(consumer, recording).then(taken, failed)
    },
    get pending() {
      return pending.size
    },
  }
}

/** A consumer that takes too long may still take the event; that it is recorded again then changes nothing. */
function byDeadline(stored: Promise<void>, deadline: number, clock: Clock): Promise<void> {
  return new Promise((resolve, reject) => {
    const item: Ticking = {
      tick(now) {
        if (now < deadline) return
        clock.remove(item)
        reject(notStored(new Error('it was not taken by its deadline')))
      },
    }
    clock.add(item)
    stored.then(resolve, reject).finally(() => clock.remove(item))
  })
}

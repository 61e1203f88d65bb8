import type { Fault, Topic } from '@tollgate/contracts'
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
  giveUp(why: Fault): void
}

/** Recording inside one process: the consumer takes the event in the same step, and what it writes is the receipt. */
export function openMemoryTopics(clock: Clock, log: Log): MemoryTopics {
  const consumers = new Map<string, Map<string, Consumer>>()
  const unclaimed = new Map<string, Map<Recording, Waiting>>()
  const remembered = new Map<string, Promise<void>>()
  const pending = new Set<(why: Fault) => void>()

  function store(recording: Recording): Promise<unknown> {
    const { subject } = recording.topic
    const claimed = consumers.get(subject)
    if (claimed) return Promise.all([...claimed.values()].map((consumer) => add(consumer, recording)))
    const early = unclaimed.get(subject) ?? new Map<Recording, Waiting>()
    unclaimed.set(subject, early)
    if (early.size >= QUEUE_LENGTH) return Promise.reject(busy())
    return new Promise<void>((resolve, reject) => {
      early.set(recording, { recording, taken: resolve, failed: reject })
    })
  }

  function add(consumer: Consumer, recording: Recording): Promise<void> {
    if (consumer.queue.length >= QUEUE_LENGTH) return Promise.reject(busy())
    return new Promise((resolve, reject) => {
      consumer.queue.push({ recording, taken: resolve, failed: reject })
      if (!consumer.busy) void work(consumer, recording.topic)
    })
  }

  /** Ends by its deadline; a consumer that takes longer may still take the event, and recording it again changes nothing. */
  function storeInTime(recording: Recording): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = () => {
        clock.remove(item)
        pending.delete(giveUp)
        unclaimed.get(recording.topic.subject)?.delete(recording)
      }
      const giveUp = (why: Fault) => {
        end()
        reject(why)
      }
      const item: Ticking = {
        tick(now) {
          if (now >= recording.deadline) giveUp(notStored(new Error('it was not taken by its deadline')))
        },
      }
      pending.add(giveUp)
      clock.add(item)
      store(recording).then(() => {
        end()
        resolve()
      }, giveUp)
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
      const stored = storeInTime(recording)
      remembered.set(key, stored)
      stored.catch(() => remembered.delete(key))
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
      const early = unclaimed.get(subject)?.values() ?? []
      unclaimed.delete(subject)
      for (const { recording, taken, failed } of early) add(consumer, recording).then(taken, failed)
    },
    get pending() {
      return pending.size
    },
    giveUp(why) {
      for (const end of pending) end(why)
    },
  }
}

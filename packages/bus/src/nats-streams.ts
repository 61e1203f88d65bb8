import type { Rpc } from '@tollgate/contracts'
import {
  AckPolicy,
  type ConsumerConfig,
  DiscardPolicy,
  type JetStreamManager,
  NatsError,
  nanos,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
  type StreamInfo,
} from 'nats'
import { QUEUE_LENGTH, type Timing } from './limits.ts'
import type { Names } from './names.ts'
import type { Link } from './nats-link.ts'

const MINUTE_MS = 60_000
const QUEUE_BYTES = 64 * 1024 * 1024

/** The streams behind queued calls and recorded events, and their consumers. */
export interface Streams {
  /** Calls that wait: in memory, each for one worker; a call that finds it full is refused. */
  queue(rpc: Rpc): Place
  /** Workers that share a queue. */
  workers(rpc: Rpc, name: string): Place
  /** Events: in files, kept for seven days, and known again by their id for two minutes. */
  events(subject: string): Place
  consumer(subject: string, name: string): Place
  /** Objects: in files, for as long as nobody deletes them; one that finds it full is refused. */
  bucket(name: string, maxBytes: number): Place
}

/** A stream, or a stream and a consumer of it, that is made when it is not there and changed when it differs. */
export interface Place {
  readonly stream: string
  /** When the stream was made; undefined before it was first looked after. */
  readonly made: string | undefined
  /** Resolves once it is there; asked for as often as one likes, it is looked after once a connection. */
  ready(): Promise<void>
  /** It seems to have gone: `ready` looks again. */
  doubt(): void
}

interface StreamOptions {
  link: Link
  names: Names
  timing: Timing
  replicas: number
}

/** How often a queued call is handed out before nobody tries any more. */
export const deliveriesOf = ({ idempotent }: Rpc): number => (idempotent ? 3 : 1)

export function openStreams({ link, names, timing, replicas }: StreamOptions): Streams {
  const places = new Map<string, Place>()

  function place(subject: string, config: Partial<StreamConfig>, consumer?: Partial<ConsumerConfig>): Place {
    const stream = names.stream(subject)
    return placeOf(stream, { subjects: [names.subject(subject)], ...config }, consumer)
  }

  function placeOf(stream: string, config: Partial<StreamConfig>, consumer?: Partial<ConsumerConfig>): Place {
    const key = `${stream} ${consumer?.durable_name ?? ''}`
    const known = places.get(key)
    if (known) return known
    const wanted = { ...config, name: stream, num_replicas: replicas }
    const made = openPlace(link, stream, async () => {
      try {
        const manager = await link.connection.jetstreamManager({ checkAPI: false })
        const { created } = await ensureStream(manager, wanted)
        if (consumer) await manager.consumers.add(stream, consumer)
        return created
      } catch (cause) {
        const why = cause instanceof Error ? cause.message : 'no reason given'
        throw new Error(`the stream ${stream} cannot be set up (NATS with JetStream is needed): ${why}`, { cause })
      }
    })
    places.set(key, made)
    return made
  }

  const queue = {
    storage: StorageType.Memory,
    retention: RetentionPolicy.Workqueue,
    discard: DiscardPolicy.New,
    max_msgs: QUEUE_LENGTH,
    max_bytes: QUEUE_BYTES,
    max_age: nanos(15 * MINUTE_MS),
    duplicate_window: nanos(2 * MINUTE_MS),
  }
  const events = {
    storage: StorageType.File,
    retention: RetentionPolicy.Limits,
    // a full disk must refuse what is new, which its sender notices, and not forget what is old
    discard: DiscardPolicy.New,
    max_age: nanos(7 * 24 * 60 * MINUTE_MS),
    duplicate_window: nanos(2 * MINUTE_MS),
  }
  const pulled = { ack_policy: AckPolicy.Explicit, max_waiting: 2_048 }
  return {
    queue: (rpc) => place(rpc.subject, queue),
    workers: (rpc, name) =>
      place(rpc.subject, queue, {
        ...pulled,
        durable_name: name,
        ack_wait: nanos(timing.ackWaitMs),
        max_deliver: deliveriesOf(rpc),
        max_ack_pending: QUEUE_LENGTH,
      }),
    events: (subject) => place(subject, events),
    consumer: (subject, name) =>
      place(subject, events, {
        ...pulled,
        durable_name: name,
        ack_wait: nanos(3 * timing.ackWaitMs),
        max_deliver: -1,
        // events that wait for their next try count here too, and must not hold up the others
        max_ack_pending: 100_000,
      }),
    // named and laid out as the NATS object store has it
    bucket: (name, maxBytes) =>
      placeOf(`OBJ_${name}`, {
        subjects: [`$O.${name}.C.>`, `$O.${name}.M.>`],
        storage: StorageType.File,
        retention: RetentionPolicy.Limits,
        discard: DiscardPolicy.New,
        max_bytes: maxBytes,
        allow_rollup_hdrs: true,
        allow_direct: true,
      }),
  }
}

function openPlace(link: Link, stream: string, ensure: () => Promise<string>): Place {
  let ensured: Promise<void> | undefined
  let ensuredIn = 0
  let made: string | undefined
  const doubt = () => {
    ensured = undefined
  }
  return {
    stream,
    get made() {
      return made
    },
    ready() {
      if (ensuredIn !== link.generation) doubt()
      if (!ensured) {
        ensuredIn = link.generation
        ensured = ensure().then((created) => {
          made = created
        })
        ensured.catch(doubt)
      }
      return ensured
    },
    doubt,
  }
}

/** JetStream's number for a name that is taken by a stream with other settings. */
const NAME_IN_USE = 10058

async function ensureStream(
  manager: JetStreamManager,
  wanted: Partial<StreamConfig> & { name: string },
): Promise<StreamInfo> {
  try {
    return await manager.streams.add(wanted)
  } catch (error) {
    if (!(error instanceof NatsError) || error.api_error?.err_code !== NAME_IN_USE) throw error
    return manager.streams.update(wanted.name, wanted)
  }
}

import type { Log } from '@tollgate/telemetry'
import { readsWith } from './broadcasts.ts'
import type { Bus } from './bus.ts'
import { callWith, recordWith } from './caller.ts'
import { openClock } from './clock.ts'
import { endBy } from './drain.ts'
import { disconnected, stopping } from './faults.ts'
import { textOf } from './frames.ts'
import { DEFAULT_SLOTS, REQUEST_BYTES, TIMING, type Timing, toJson } from './limits.ts'
import { openNames } from './names.ts'
import type { ServerAccess } from './nats-access.ts'
import { type Bench, openBench } from './nats-bench.ts'
import { openCalls } from './nats-calls.ts'
import { type Consuming, consumeEvents } from './nats-consume.ts'
import type { Wiring } from './nats-exchange.ts'
import { openHealth } from './nats-health.ts'
import { openInbox } from './nats-inbox.ts'
import { openLink } from './nats-link.ts'
import { openObjects } from './nats-objects.ts'
import { serveQueue } from './nats-queue.ts'
import { openRecorder } from './nats-record.ts'
import { type Served, serveDirect } from './nats-serve.ts'
import { openStreams } from './nats-streams.ts'
import type { AnyHandler } from './perform.ts'

export interface NatsBusOptions extends ServerAccess {
  /** The service: replicas of one name share its calls. Letters, digits, `-` and `_`. */
  name: string
  log: Log
  /** Takes the place of the leading `tg` of every subject, for several systems on one server. */
  prefix?: string
  /** Copies of every stream; three in a cluster. */
  streamReplicas?: number
  /** How long to try to connect for the first time. */
  startWithinMs?: number
  timing?: Partial<Timing>
}

/** The bus between processes. Rejects when no server can be reached; once it has been, it comes back by itself. */
export async function natsBus(options: NatsBusOptions): Promise<Bus> {
  const { name, log, prefix = 'tg', streamReplicas = 1, startWithinMs = 10_000, timing, ...access } = options
  if (!/^[\w-]+$/.test(name)) throw new Error('the name of a service on NATS is letters, digits, - and _')
  const names = openNames(prefix)
  const link = await openLink({ ...access, name, log, startWithinMs })
  const settings = { ...TIMING, ...timing }
  const clock = openClock()
  const streams = openStreams({ link, names, timing: settings, replicas: streamReplicas })
  const inbox = openInbox(link, name, log)
  const wiring: Wiring = { link, inbox, clock, names, streams, timing: settings, log, name }
  const calls = openCalls(wiring)
  const health = await openHealth(link)
  const recorder = openRecorder(wiring, health)
  const served = new Map<string, Served>()
  const consuming: Consuming[] = []
  let bench: Bench | undefined
  let draining: Promise<boolean> | undefined

  async function drain(deadline: number): Promise<boolean> {
    await Promise.all([...served.values(), ...consuming].map((one) => one.stop()))
    const underWay = () =>
      (bench?.size ?? 0) + calls.pending + recorder.pending > 0 || consuming.some((consumer) => consumer.busy)
    const ended = await endBy(deadline, underWay, () => {
      bench?.interruptAll()
      calls.giveUp(stopping())
      recorder.giveUp(stopping())
    })
    health.close()
    await link.close()
    calls.giveUp(disconnected('the bus is closed'))
    recorder.giveUp(disconnected('the bus is closed'))
    clock.close()
    return ended
  }

  return {
    call: callWith(calls.carry, log),
    record: recordWith(async (recording) => {
      if (link.closed) throw disconnected('the bus is closed')
      await recorder.store(recording)
    }),

    async serve(rpc, handler, serveOptions = {}) {
      if (served.has(rpc.subject)) throw new Error(`${rpc.subject} is served twice in one process`)
      bench ??= openBench(wiring)
      const slots = serveOptions.slots ?? DEFAULT_SLOTS[rpc.delivery]
      const serve = rpc.delivery === 'queue' ? serveQueue : serveDirect
      served.set(rpc.subject, await serve(wiring, bench, rpc, handler as unknown as AnyHandler, slots))
    },

    async consume(topic, consumeOptions, handler) {
      consuming.push(await consumeEvents(wiring, topic, consumeOptions, handler))
    },

    announce(broadcast, event) {
      link.publish(names.subject(broadcast.subject), toJson(event, REQUEST_BYTES, 'the event'))
    },
    listen(broadcast, listener) {
      const tell = readsWith(broadcast, listener as (event: unknown) => void, log)
      link.connection.subscribe(names.subject(broadcast.subject), {
        callback(err, message) {
          if (err) log.error({ err, subject: broadcast.subject }, 'news cannot be heard')
          else tell(textOf(message.data))
        },
      })
    },

    objects: (objectsOptions) => openObjects(wiring, objectsOptions),

    status: () => ({
      connected: link.connected,
      canRecord: health.canRecord,
      serving: Object.fromEntries([...served].map(([subject, one]) => [subject, one.load()])),
    }),

    drain(deadline) {
      draining ??= drain(deadline)
      return draining
    },
  }
}

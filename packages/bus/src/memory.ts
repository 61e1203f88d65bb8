import { AsyncLocalStorage } from 'node:async_hooks'
import type { Rpc } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import { readsWith } from './broadcasts.ts'
import type { Bus } from './bus.ts'
import { callWith, type Outgoing, recordWith } from './caller.ts'
import { openClock } from './clock.ts'
import { endBy } from './drain.ts'
import { busy, disconnected, faultFromJson, faultToJson, interrupted, stopping, unserved } from './faults.ts'
import { DEFAULT_SLOTS, QUEUE_LENGTH, REQUEST_BYTES, toJson } from './limits.ts'
import { MemoryCall } from './memory-call.ts'
import { openMemoryTopics } from './memory-topics.ts'
import { type AnyHandler, perform } from './perform.ts'
import { Slots } from './slots.ts'

interface Server {
  rpc: Rpc
  handler: AnyHandler
  slots: Slots
}

export interface MemoryBusOptions {
  log: Log
}

/** The bus of a single process. Values still pass through JSON, so that nothing works here that would fail over NATS. */
export function memoryBus({ log }: MemoryBusOptions): Bus {
  const clock = openClock()
  const servers = new Map<string, Server>()
  const waiting = new Set<MemoryCall>()
  const running = new Set<MemoryCall>()
  const topics = openMemoryTopics(clock, log)
  const listeners = new Map<string, Set<(json: string) => void>>()
  // while the bus drains, the calls that a running call makes still go through: without them it could not end
  const inWork = new AsyncLocalStorage<true>()
  let state: 'open' | 'draining' | 'closed' = 'open'
  let draining: Promise<boolean> | undefined

  function mustTake(): void {
    if (state === 'open' || (state === 'draining' && inWork.getStore())) return
    throw disconnected('the bus is closed')
  }

  async function carry(outgoing: Outgoing): Promise<string> {
    mustTake()
    const { subject, delivery } = outgoing.rpc
    const server = servers.get(subject)
    if (!server && delivery === 'direct') throw unserved(subject)
    const call = new MemoryCall(outgoing, clock)
    if (server) begin(server, call)
    else if (waiting.size >= QUEUE_LENGTH) call.fail(busy())
    else {
      waiting.add(call)
      call.waitsIn(() => waiting.delete(call))
    }
    return call.answer
  }

  function begin({ rpc, handler, slots }: Server, call: MemoryCall): void {
    const start = () => {
      waiting.delete(call)
      call.started()
      const { json, step } = call.outgoing
      const work = inWork.run(true, () => perform(rpc, handler, call.job, json, log, step.context))
      running.add(call)
      work
        .then(
          (answer) => call.succeed(answer),
          // as it would arrive from another process: without its cause
          (fault) => call.fail(faultFromJson(faultToJson(fault))),
        )
        .finally(() => {
          running.delete(call)
          slots.leave()
        })
    }
    waiting.add(call)
    call.waitsIn(() => {
      waiting.delete(call)
      slots.withdraw(start)
    })
    if (!slots.enter(start)) call.fail(busy())
  }

  async function drain(deadline: number): Promise<boolean> {
    state = 'draining'
    for (const call of waiting) call.fail(stopping())
    const ended = await endBy(
      deadline,
      () => running.size + topics.pending > 0,
      () => {
        for (const call of [...running, ...waiting]) call.fail(interrupted())
        topics.giveUp(stopping())
      },
    )
    state = 'closed'
    clock.close()
    return ended
  }

  return {
    call: callWith(carry, log),
    record: recordWith(async (recording) => {
      mustTake()
      await topics.record(recording)
    }),

    async serve(rpc, handler, options = {}) {
      if (servers.has(rpc.subject)) throw new Error(`${rpc.subject} is served twice in one process`)
      const slots = options.slots ?? DEFAULT_SLOTS[rpc.delivery]
      const mayWait = rpc.delivery === 'queue' ? QUEUE_LENGTH : 2 * slots
      const server = { rpc, handler: handler as unknown as AnyHandler, slots: new Slots(slots, mayWait) }
      servers.set(rpc.subject, server)
      for (const call of waiting) if (call.outgoing.rpc.subject === rpc.subject) begin(server, call)
    },

    consume: async (topic, options, handler) => topics.consume(topic, options, handler),

    announce(broadcast, event) {
      const json = toJson(event, REQUEST_BYTES, 'the event')
      for (const tell of listeners.get(broadcast.subject) ?? []) setImmediate(tell, json)
    },
    listen(broadcast, listener) {
      const heard = listeners.get(broadcast.subject) ?? new Set()
      listeners.set(broadcast.subject, heard.add(readsWith(broadcast, listener as (event: unknown) => void, log)))
    },

    async objects() {
      throw new Error('a single process has no store that others share: keep files in a folder of its own')
    },

    status: () => ({
      connected: state !== 'closed',
      canRecord: state !== 'closed',
      serving: Object.fromEntries(
        [...servers].map(([subject, { slots }]) => [subject, { busy: slots.busy, slots: slots.slots }]),
      ),
    }),

    drain(deadline) {
      draining ??= drain(deadline)
      return draining
    },
  }
}

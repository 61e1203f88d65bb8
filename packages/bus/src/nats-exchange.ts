import { Fault, type Rpc } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import type { Msg } from 'nats'
import type { Outgoing } from './caller.ts'
import type { Clock, Ticking } from './clock.ts'
import { cancelled, timedOut } from './faults.ts'
import { type Outcome, Reply, readFrame } from './frames.ts'
import type { Timing } from './limits.ts'
import type { Names } from './names.ts'
import type { Address, Inbox } from './nats-inbox.ts'
import type { Link } from './nats-link.ts'
import type { Streams } from './nats-streams.ts'

/** What the parts of a NATS bus have in common. */
export interface Wiring {
  link: Link
  inbox: Inbox
  clock: Clock
  names: Names
  streams: Streams
  timing: Timing
  log: Log
  /** The service's name: its queue group, and its place at a queue. */
  name: string
}

/** How a call travels: `direct` or `queue`. */
export interface Way {
  /** Looks after it: what is to be sent, sent again, or given up. */
  tick(now: number): void
  /** The server itself says something: that nobody listens, or that it stored the call. */
  serverSays(message: Msg): void
  /** The call failed; true when it will be tried again. */
  retries(failed: Exclude<Outcome, { json: string }>): boolean
}

const BRACE = 0x7b

/** A call over NATS, from its first message to the last frame of its reply. */
export class Exchange implements Ticking {
  readonly answer: Promise<string>
  readonly address: Address
  readonly reply: Reply
  readonly rpc: Rpc
  /** Epoch milliseconds of the last frame; 0 before the first. */
  heardAt = 0
  private askedAt = 0
  private readAll = false
  private readonly wiring: Wiring
  private readonly outgoing: Outgoing
  private readonly way: Way
  private settle!: { resolve: (json: string) => void; reject: (fault: Fault) => void }

  constructor(wiring: Wiring, outgoing: Outgoing, wayOf: (exchange: Exchange) => Way) {
    this.wiring = wiring
    this.outgoing = outgoing
    this.rpc = outgoing.rpc
    this.reply = new Reply(outgoing.onEvent)
    this.answer = new Promise((resolve, reject) => {
      this.settle = { resolve, reject }
    })
    this.address = wiring.inbox.open(this.receive)
    this.way = wayOf(this)
    wiring.clock.add(this)
    outgoing.signal?.addEventListener('abort', this.onAbort, { once: true })
    this.way.tick(Date.now())
  }

  /**
   * True when its worker has not been heard of for too long. A beat may lie unread, behind large replies or since our own
   * process was busy: only when all that came was read is nothing nothing.
   */
  isSilent(now: number, since: number): boolean {
    const { link, timing } = this.wiring
    const quietSince = Math.max(since, this.heardAt, link.since)
    if (!link.connected || now - quietSince <= timing.silenceMs) return false
    if (this.askedAt <= quietSince) {
      this.askedAt = now
      this.readAll = false
      link.caughtUp().then(
        () => {
          this.readAll = true
        },
        () => undefined, // the connection broke, and the wait begins anew when it is back
      )
    }
    return this.readAll
  }

  tick(now: number): void {
    if (now >= this.outgoing.deadline) this.giveUp(timedOut())
    else this.way.tick(now)
  }

  /** Ends it unless it is tried again. */
  fail(failed: Exclude<Outcome, { json: string }>): void {
    if (this.way.retries(failed)) return
    // whoever was started and fell silent may work on it yet
    if (failed.again === 'idempotent') this.tellWorker()
    this.end()
    this.settle.reject(failed.fault)
  }

  /** Ends it, and tells whoever works on it. */
  giveUp(fault: Fault): void {
    this.tellWorker()
    this.end()
    this.settle.reject(fault)
  }

  private readonly onAbort = () => this.giveUp(cancelled())

  private readonly receive = (message: Msg): void => {
    try {
      const { data } = message
      if (data.length === 0 || data[0] === BRACE) this.way.serverSays(message)
      else this.take(message, data)
    } catch (err) {
      this.wiring.log.error({ err, subject: this.rpc.subject }, 'a reply could not be read')
      this.giveUp(Fault.from(err))
    }
  }

  private take(message: Msg, data: Uint8Array): void {
    this.heardAt = Date.now()
    // a worker that was cut off asks whether we hear it again
    if (message.reply) this.wiring.link.publish(message.reply)
    const outcome = this.reply.take(readFrame(data))
    if (outcome === undefined) return
    if ('fault' in outcome) this.fail(outcome)
    else {
      this.end()
      this.settle.resolve(outcome.json)
    }
  }

  private tellWorker(): void {
    this.wiring.link.publish(this.wiring.names.cancel(this.address.id))
  }

  private end(): void {
    this.wiring.clock.remove(this)
    this.address.close()
    this.outgoing.signal?.removeEventListener('abort', this.onAbort)
  }
}

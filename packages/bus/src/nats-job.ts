import { setTimeout as sleep } from 'node:timers/promises'
import { Fault, type Rpc } from '@tollgate/contracts'
import { ErrorCode, NatsError } from 'nats'
import type { Ticking } from './clock.ts'
import { cancelled, faultToJson, interrupted, timedOut } from './faults.ts'
import { bodyFrames, frame } from './frames.ts'
import type { Delivery } from './nats-delivery.ts'
import type { Wiring } from './nats-exchange.ts'
import type { Link } from './nats-link.ts'
import type { Order } from './nats-order.ts'
import { type AnyHandler, type Job, openJob, perform } from './perform.ts'

/** What the queue that handed a call out wants to hear of it. */
export type Queued = Pick<Delivery, 'working' | 'ack' | 'nak'>

/** How long to wait for a caller's word that it hears us, and before asking again. */
const ASK_MS = 500
const ASK_AGAIN_MS = 200

/** Says that a call was not started. */
export const refuse = (link: Link, { replyTo, attempt }: Order, fault: Fault): boolean =>
  link.publish(replyTo, frame('refused', attempt, faultToJson(fault)))

/** One call in work: its handler's context, its signs of life, its answer. */
export class NatsJob implements Ticking {
  readonly order: Order
  /** Where to acknowledge it, unless that was done before it started. */
  delivery: Queued | undefined
  private readonly wiring: Wiring
  private readonly job: Job
  private readonly generation: number
  private beatAt = Date.now()
  private fate: 'done' | 'left' | 'interrupted' = 'done'

  constructor(wiring: Wiring, order: Order, delivery?: Queued) {
    this.wiring = wiring
    this.order = order
    this.delivery = delivery
    this.generation = wiring.link.generation
    this.job = openJob(order.deadline, order.attempt, (json) => this.say(frame('event', order.attempt, json)))
  }

  tick(now: number): void {
    if (now >= this.order.deadline) this.job.giveUp(timedOut())
    if (now - this.beatAt < this.wiring.timing.beatMs) return
    this.beat()
    this.delivery?.working()
  }

  /** Tells the caller that it is in work. */
  beat(): void {
    this.beatAt = Date.now()
    this.say(frame('beat', this.order.attempt))
  }

  /** Its caller went away. */
  leave(): void {
    this.fate = 'left'
    this.job.giveUp(cancelled())
  }

  /** This worker stops before it is done. */
  interrupt(): void {
    this.fate = 'interrupted'
    this.job.giveUp(interrupted())
  }

  /** True when nobody waits for it any more, though it has not started. */
  get left(): boolean {
    return this.fate === 'left'
  }

  /** Runs it to its end and answers it. */
  async run(rpc: Rpc, handler: AnyHandler): Promise<void> {
    const { json, parent, attempt } = this.order
    try {
      const answer = await perform(rpc, handler, this.job, json, this.wiring.log, parent)
      await this.send(() => bodyFrames(attempt, answer))
    } catch (thrown) {
      await this.failed(Fault.from(thrown))
    }
    this.delivery?.ack()
  }

  private async failed(fault: Fault): Promise<void> {
    if (this.fate === 'left') return
    if (this.fate === 'interrupted' && this.delivery) {
      // another worker takes it over, and its caller need not know
      this.delivery.nak()
      this.delivery = undefined
      return
    }
    const kind = this.fate === 'interrupted' ? 'interrupted' : 'error'
    await this.send(() => [frame(kind, this.order.attempt, faultToJson(fault))])
  }

  private say(bytes: Buffer): boolean {
    return this.wiring.link.publish(this.order.replyTo, bytes)
  }

  /** Sends the last frames. After the connection was lost they wait until the caller, which lost it too, is there again. */
  private async send(frames: () => Iterable<Buffer>): Promise<void> {
    const { link } = this.wiring
    if (link.connected && link.generation === this.generation && this.sayAll(frames())) return
    while (Date.now() < this.order.deadline && !link.closed) {
      if (link.connected && (await this.isHeard()) && this.sayAll(frames())) return
      await sleep(ASK_AGAIN_MS)
    }
  }

  private sayAll(frames: Iterable<Buffer>): boolean {
    for (const bytes of frames) if (!this.say(bytes)) return false
    return true
  }

  private async isHeard(): Promise<boolean> {
    const { replyTo, attempt } = this.order
    try {
      await this.wiring.link.connection.request(replyTo, frame('beat', attempt), { timeout: ASK_MS })
      return true
    } catch (error) {
      // no answer from somebody who is there: it hears us all the same
      return error instanceof NatsError && error.code === ErrorCode.Timeout && this.wiring.link.connected
    }
  }
}

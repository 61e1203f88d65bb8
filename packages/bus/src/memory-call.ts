import type { Fault } from '@tollgate/contracts'
import type { Outgoing } from './caller.ts'
import type { Clock, Ticking } from './clock.ts'
import { cancelled, timedOut } from './faults.ts'
import { type Job, openJob } from './perform.ts'

/** A call inside the process, from its caller's first word to its outcome; its handler may go on for a while after that. */
export class MemoryCall implements Ticking {
  readonly outgoing: Outgoing
  readonly job: Job
  readonly answer: Promise<string>
  private readonly clock: Clock
  private settle!: { resolve: (json: string) => void; reject: (fault: Fault) => void }
  private withdraw: (() => void) | undefined

  constructor(outgoing: Outgoing, clock: Clock) {
    this.outgoing = outgoing
    this.clock = clock
    this.job = openJob(outgoing.deadline, 1, (json) => outgoing.onEvent?.(json))
    this.answer = new Promise((resolve, reject) => {
      this.settle = { resolve, reject }
    })
    clock.add(this)
    outgoing.signal?.addEventListener('abort', this.onAbort, { once: true })
  }

  /** While it waits: how to take it out of where it waits when it ends. */
  waitsIn(withdraw: () => void): void {
    this.withdraw = withdraw
  }

  /** It waits no longer. */
  started(): void {
    this.withdraw = undefined
  }

  tick(now: number): void {
    if (now >= this.outgoing.deadline) this.fail(timedOut())
  }

  succeed(json: string): void {
    this.end()
    this.settle.resolve(json)
  }

  fail(fault: Fault): void {
    this.end()
    this.job.giveUp(fault)
    this.settle.reject(fault)
  }

  private readonly onAbort = () => this.fail(cancelled())

  private end(): void {
    this.clock.remove(this)
    this.outgoing.signal?.removeEventListener('abort', this.onAbort)
    this.withdraw?.()
    this.withdraw = undefined
  }
}

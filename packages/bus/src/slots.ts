/** Room for calls: some are worked on, some wait in order of arrival, more are refused. */
export class Slots {
  busy = 0
  readonly slots: number
  private readonly mayWait: number
  private readonly waiting = new Set<() => void>()

  constructor(slots: number, mayWait: number) {
    this.slots = slots
    this.mayWait = mayWait
  }

  /** Starts at once if a slot is free, else when one is; false when too many wait already. */
  enter(start: () => void): boolean {
    if (this.busy < this.slots) {
      this.busy += 1
      start()
      return true
    }
    if (this.waiting.size >= this.mayWait) return false
    this.waiting.add(start)
    return true
  }

  /** Takes back what has not started; false when it has. */
  withdraw(start: () => void): boolean {
    return this.waiting.delete(start)
  }

  /** Whoever started says here that it has ended, and the next one starts. */
  leave(): void {
    const [next] = this.waiting
    if (next) {
      this.waiting.delete(next)
      next()
    } else this.busy -= 1
  }
}

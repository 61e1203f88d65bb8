import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@tollgate/contracts'

/** The work of a service that is under way, so that closing can wait for it. */
export interface Work {
  /** Runs `task` with a signal that also fires when the drain limit is reached; refuses it once closing has begun. */
  run<T>(signal: AbortSignal, task: (signal: AbortSignal) => Promise<T>): Promise<T>
  /** Resolves false when something was still under way at the deadline (epoch milliseconds) and had to be cancelled. */
  close(deadline: number): Promise<boolean>
}

export function trackWork(): Work {
  const running = new Set<Promise<unknown>>()
  const cut = new AbortController()
  let closing = false
  return {
    async run(signal, task) {
      if (closing) throw new Fault('unavailable', 'This service is stopping.')
      const promise = task(AbortSignal.any([signal, cut.signal]))
      running.add(promise)
      try {
        return await promise
      } finally {
        running.delete(promise)
      }
    },
    async close(deadline) {
      closing = true
      const timer = new AbortController()
      const late = sleep(Math.max(0, deadline - Date.now()), 'late', { signal: timer.signal }).catch(() => 'in time')
      const ended = await Promise.race([Promise.allSettled(running), late])
      timer.abort()
      if (ended !== 'late') return true
      cut.abort(new Fault('unavailable', 'This service is stopping.'))
      await Promise.allSettled(running)
      return false
    },
  }
}

import { setMaxListeners } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@tollgate/contracts'

/** The work of a service that is under way, so that closing can wait for it. */
export interface Work {
  /** Runs `task` with a signal that also fires when the drain limit is reached; refuses it once closing has begun. */
  run<T>(signal: AbortSignal, task: (signal: AbortSignal) => Promise<T>): Promise<T>
  /** Resolves false when something was still under way at the deadline (epoch milliseconds) and had to be cancelled. */
  close(deadline: number): Promise<boolean>
}

/** Five pages of a search at once, each with the waits within it, listen to the one signal; Node warns past ten. */
const MOST_LISTENERS = 40

export function trackWork(): Work {
  const running = new Set<Promise<unknown>>()
  const cut = new AbortController()
  let closing = false
  return {
    async run(signal, task) {
      if (closing) throw new Fault('unavailable', 'This service is stopping.')
      const ends = AbortSignal.any([signal, cut.signal])
      setMaxListeners(MOST_LISTENERS, ends)
      const promise = task(ends)
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

import { setTimeout as sleep } from 'node:timers/promises'

export interface Repeating {
  /** Tells the round under way, and begins no other; resolves false when that did not end by `deadline` (epoch milliseconds). */
  stop(deadline: number): Promise<boolean>
}

/** Does something at once and then again `everyMs` after it ended; a round that fails is told and the next one tries again. */
export function repeat(
  everyMs: number,
  round: (stopping: AbortSignal) => Promise<void>,
  failed: (error: unknown) => void,
): Repeating {
  const stopping = new AbortController()
  const running = (async () => {
    while (!stopping.signal.aborted) {
      await round(stopping.signal).catch(failed)
      await sleep(everyMs, undefined, { signal: stopping.signal }).catch(() => {}) // woken to stop
    }
  })()
  return {
    async stop(deadline) {
      stopping.abort()
      const late = new AbortController()
      const ended = await Promise.race([
        running.then(() => true),
        sleep(Math.max(0, deadline - Date.now()), false, { signal: late.signal }).catch(() => false),
      ])
      late.abort()
      return ended
    },
  }
}

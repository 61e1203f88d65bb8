import { Fault } from '@tollgate/contracts'

/** Hands out things of which each can do one piece of work at a time, first come, first served. */
export interface HostQueue<H> {
  /** Rejects when `signal` fires before its turn, or `unavailable` at once when `maxWaiting` are waiting already. */
  use<T>(signal: AbortSignal, work: (host: H) => Promise<T>): Promise<T>
  waiting(): number
}

export function openHostQueue<H>(hosts: readonly H[], maxWaiting: number): HostQueue<H> {
  const free = [...hosts]
  const waiting: { take(host: H): void }[] = []

  const acquire = (signal: AbortSignal): Promise<H> => {
    const host = free.pop()
    if (host) return Promise.resolve(host)
    if (waiting.length >= maxWaiting) throw new Fault('unavailable', 'too many pages are waiting to be read')
    return new Promise((take, reject) => {
      const leave = () => {
        waiting.splice(waiting.indexOf(place), 1)
        reject(signal.reason)
      }
      const place = {
        take(next: H) {
          signal.removeEventListener('abort', leave)
          take(next)
        },
      }
      waiting.push(place)
      signal.addEventListener('abort', leave, { once: true })
    })
  }

  return {
    async use(signal, work) {
      signal.throwIfAborted()
      const host = await acquire(signal)
      try {
        return await work(host)
      } finally {
        const next = waiting.shift()
        if (next) next.take(host)
        else free.push(host)
      }
    },
    waiting: () => waiting.length,
  }
}

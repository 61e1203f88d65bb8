import { availableParallelism } from 'node:os'
import type { Log } from '@tollgate/telemetry'
import type { Driver, Sandbox } from './drivers/driver.ts'

/** Sandboxes that are made before anyone asks, so that leasing one takes no time. */
export interface Pool {
  /** A waiting one, or a new one, in the order of asking. Rejects when none can be made. */
  take(): Promise<Sandbox>
  readonly waiting: number
  close(): Promise<void>
}

interface Client {
  resolve(sandbox: Sandbox): void
  reject(error: unknown): void
}

/** More than these at once would all be ready late, where some could be ready soon. */
const MOST_AT_ONCE = Math.max(4, 2 * availableParallelism())

export function openPool(driver: Driver, size: number, log: Log): Pool {
  const ready = new Set<Sandbox>()
  /** Those who came when none was ready; there are never more than sessions may be. */
  const clients: Client[] = []
  const making = new Set<Promise<void>>()
  let closed = false

  const keep = (sandbox: Sandbox): boolean => {
    const client = clients.shift()
    if (closed) sandbox.end()
    else if (client) client.resolve(sandbox)
    else {
      ready.add(sandbox)
      void sandbox.ended.then(() => ready.delete(sandbox))
    }
    return true
  }
  const fail = (error: unknown): boolean => {
    if (clients.length === 0) log.warn({ err: error }, 'no session could be prepared; the next client makes one')
    // whoever is behind has a try of its own, unless there is nothing to try
    for (const client of clients.splice(0, driver.down() === undefined ? 1 : clients.length)) client.reject(error)
    return false
  }
  const make = () => {
    const one: Promise<void> = driver
      .create()
      .then(keep, fail)
      .then((isKept) => {
        making.delete(one)
        if (isKept || clients.length > 0) fill()
      })
    making.add(one)
  }
  const fill = () => {
    while (!closed && making.size < Math.min(MOST_AT_ONCE, clients.length + size - ready.size)) make()
  }
  fill()

  return {
    get waiting() {
      return ready.size
    },
    take() {
      if (closed) return Promise.reject(new Error('no session is made any more'))
      const [first] = ready
      if (first) {
        ready.delete(first)
        fill()
        return Promise.resolve(first)
      }
      return new Promise((resolve, reject) => {
        clients.push({ resolve, reject })
        fill()
      })
    },
    async close() {
      closed = true
      for (const { reject } of clients.splice(0)) reject(new Error('no session is made any more'))
      for (const sandbox of ready) sandbox.end()
      await Promise.all(making)
    },
  }
}

import type { Log } from '@tollgate/telemetry'
import type { Driver, Sandbox } from './drivers/driver.ts'

/** Sandboxes that are made before anyone asks, so that leasing one takes no time. */
export interface Pool {
  /** A waiting one, or a new one. Rejects when none can be made. */
  take(): Promise<Sandbox>
  readonly waiting: number
  close(): Promise<void>
}

export function openPool(driver: Driver, size: number, log: Log): Pool {
  const ready = new Set<Sandbox>()
  const making = new Set<Promise<void>>()
  let closed = false

  const make = async () => {
    const sandbox = await driver.create()
    if (closed) sandbox.end()
    else ready.add(sandbox)
    void sandbox.ended.then(() => ready.delete(sandbox))
  }
  const fill = () => {
    for (let missing = size - ready.size - making.size; missing > 0 && !closed; missing -= 1) {
      const one: Promise<void> = make()
        .catch((error: unknown) => log.warn({ err: error }, 'no session could be prepared; the next client makes one'))
        .finally(() => making.delete(one))
      making.add(one)
    }
  }
  fill()

  return {
    get waiting() {
      return ready.size
    },
    async take() {
      const [first] = ready
      if (first) ready.delete(first)
      // refilled once the one that is needed now has been made
      const sandbox = first ?? (await driver.create())
      fill()
      return sandbox
    },
    async close() {
      closed = true
      for (const sandbox of ready) sandbox.end()
      await Promise.all(making)
    },
  }
}

/** Something with a deadline, or that must be seen to from time to time. */
export interface Ticking {
  tick(now: number): void
}

export interface Clock {
  add(item: Ticking): void
  remove(item: Ticking): void
  close(): void
}

/** Between two looks; a deadline is kept to within this, and never passed by more than half of it. */
export const TICK_MS = 20

/**
 * One timer for everything that waits: at thousands of calls a second, a timer each is what costs. It runs only while
 * something waits.
 */
export function openClock(): Clock {
  const items = new Set<Ticking>()
  let timer: NodeJS.Timeout | undefined
  let closed = false
  const tick = () => {
    if (items.size === 0) {
      clearInterval(timer)
      timer = undefined
    }
    // half a step early on average rather than a whole one late
    const now = Date.now() + TICK_MS / 2
    for (const item of items) item.tick(now)
  }
  return {
    add(item) {
      if (closed) return
      items.add(item)
      timer ??= setInterval(tick, TICK_MS)
    },
    remove: (item) => void items.delete(item),
    close() {
      closed = true
      clearInterval(timer)
      items.clear()
    },
  }
}

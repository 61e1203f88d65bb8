/** Places for work that may be under way at once. */
export interface Slots {
  /**
   * Runs `work` once there is a place for it, in order of asking. Resolves `full`, without running it, when as many wait
   * as may; rejects with the signal's reason when that fires while waiting.
   */
  run<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T | 'full'>
}

export function openSlots({ places, waiting }: { places: number; waiting: number }): Slots {
  let free = places
  const queue = new Set<() => void>()

  const enter = (signal: AbortSignal): Promise<void> =>
    new Promise((settle, reject) => {
      const leave = () => {
        queue.delete(start)
        reject(signal.reason)
      }
      const start = () => {
        queue.delete(start)
        signal.removeEventListener('abort', leave)
        settle()
      }
      signal.addEventListener('abort', leave, { once: true })
      queue.add(start)
    })

  /** A place is handed over to the first who waits, so that nobody who comes later can slip in between. */
  const giveBack = () => {
    const [next] = queue
    if (next) next()
    else free += 1
  }

  return {
    async run(signal, work) {
      signal.throwIfAborted()
      if (free > 0) free -= 1
      else if (queue.size >= waiting) return 'full'
      else await enter(signal)
      try {
        return await work()
      } finally {
        giveBack()
      }
    },
  }
}

/** Works through `items` with at most `atOnce` under way; results keep the items' order. */
export async function mapAtMost<T, R>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = []
  const rest = items.entries()
  const worker = async () => {
    for (const [index, item] of rest) results[index] = await work(item)
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, worker))
  return results
}

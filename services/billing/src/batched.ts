import { Fault } from '@tollgate/contracts'

export interface BatchOptions<I, O> {
  /** Most items of one run. */
  most: number
  /** Runs under way at once. */
  inFlight: number
  /** Items waiting for a run; one more is refused with `unavailable`. */
  mostWaiting: number
  /** Outputs in the order of the items. */
  run(items: I[]): Promise<O[]>
}

export interface Batch<I, O> {
  /** An item whose signal fires before its run begins is not run. */
  add(item: I, signal?: AbortSignal): Promise<O>
  waiting(): number
}

interface Place<I, O> {
  item: I
  signal: AbortSignal | undefined
  resolve(output: O): void
  reject(error: unknown): void
}

/**
 * Does together what is asked for at about the same time: a run begins at the end of the event loop's turn, and while
 * all runs are busy what comes waits for the next. Items of a run that failed are tried alone, so that a bad one harms
 * no other.
 */
export function batched<I, O>({ most, inFlight, mostWaiting, run }: BatchOptions<I, O>): Batch<I, O> {
  const queue: Place<I, O>[] = []
  let running = 0
  let scheduled = false

  function schedule(): void {
    if (scheduled || running >= inFlight || queue.length === 0) return
    scheduled = true
    setImmediate(() => {
      scheduled = false
      start()
    })
  }

  function start(): void {
    const places: Place<I, O>[] = []
    while (places.length < most) {
      const place = queue.shift()
      if (place === undefined) break
      if (place.signal?.aborted) place.reject(new Fault('cancelled', 'the caller left'))
      else places.push(place)
    }
    if (places.length === 0) return
    running++
    void perform(places).finally(() => {
      running--
      schedule()
    })
    schedule()
  }

  /** Never rejects: each place is told its own outcome. */
  async function perform(places: Place<I, O>[]): Promise<void> {
    try {
      const outputs = await run(places.map(({ item }) => item))
      places.forEach((place, n) => {
        place.resolve(outputs[n] as O)
      })
    } catch (error) {
      if (places.length === 1 || isOutage(error)) {
        for (const place of places) place.reject(error)
        return
      }
      for (const place of places) await perform([place])
    }
  }

  return {
    add(item, signal) {
      if (queue.length >= mostWaiting) {
        return Promise.reject(new Fault('unavailable', 'too many calls are waiting for the database'))
      }
      return new Promise((resolve, reject) => {
        queue.push({ item, signal, resolve, reject })
        schedule()
      })
    },
    waiting: () => queue.length,
  }
}

/** What failed for want of the database fails for every item, one by one too. */
const isOutage = (error: unknown): boolean =>
  error instanceof Fault && (error.failure === 'unavailable' || error.failure === 'timeout')

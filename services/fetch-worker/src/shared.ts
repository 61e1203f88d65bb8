/**
 * Work that several callers want at once is done once. It ends when the last of them has left, and each may leave without
 * the others noticing.
 */
export interface Shared<T> {
  run(key: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T>
}

interface Running<T> {
  result: Promise<T>
  waiting: number
  end: AbortController
}

export function openShared<T>(): Shared<T> {
  const running = new Map<string, Running<T>>()
  return {
    run(key, signal, work) {
      let entry = running.get(key)
      if (!entry) {
        const end = new AbortController()
        const result = work(end.signal)
        entry = { result, waiting: 0, end }
        running.set(key, entry)
        const started = entry
        const forget = () => {
          if (running.get(key) === started) running.delete(key)
        }
        result.then(forget, forget)
      }
      return join(entry, signal, () => running.get(key) === entry && running.delete(key))
    },
  }
}

function join<T>(entry: Running<T>, signal: AbortSignal, forget: () => void): Promise<T> {
  entry.waiting++
  return new Promise((resolve, reject) => {
    const leave = () => {
      reject(signal.reason)
      if (--entry.waiting > 0) return
      forget()
      entry.end.abort(signal.reason)
    }
    signal.addEventListener('abort', leave, { once: true })
    if (signal.aborted) leave()
    const stay = () => signal.removeEventListener('abort', leave)
    entry.result.finally(stay).then(resolve, reject)
  })
}

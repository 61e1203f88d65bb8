import { openDeadline } from './deadline.ts'

/** What a download waits for, one after the other; `encoding` is undoing a body's codings. Tells nothing of the host. */
export type NetworkStage = 'resolve' | 'connect' | 'tls' | 'proxy' | 'headers' | 'body' | 'encoding'

/** The clocks of one download: one for all of it, and one that each wait for the network starts anew (WM-21). */
export interface Operations {
  /** Fires with the caller's own reason, and when either clock has run out. */
  readonly signal: AbortSignal
  readonly stage: NetworkStage
  /** Whether it was a clock. */
  readonly expired: boolean
  /** The next wait begins; with the same stage again: more of what is waited for has come. */
  begin(stage: NetworkStage): void
  /** Gives timers and listeners back; to be called once the download has ended. */
  end(): void
}

export interface OperationLimits {
  /** Epoch milliseconds by which everything ends. */
  deadline: number
  /** Most milliseconds of each wait; none of its own when absent. */
  operationTimeoutMs?: number
}

const MOST_CONNECT_MS = 10_000
const connecting: ReadonlySet<NetworkStage> = new Set(['connect', 'tls', 'proxy'])

export function openOperations({ deadline, operationTimeoutMs }: OperationLimits, parent: AbortSignal): Operations {
  const own = new AbortController()
  const left = () => own.abort(parent.reason)
  parent.addEventListener('abort', left, { once: true })
  if (parent.aborted) left()
  const overall = openDeadline(deadline, own.signal)
  let stage: NetworkStage = 'resolve'
  let isLate = false
  let timer: NodeJS.Timeout | undefined
  const late = () => {
    isLate = true
    own.abort(new DOMException('a network operation took too long', 'TimeoutError'))
  }
  return {
    signal: overall.signal,
    get stage() {
      return stage
    },
    get expired() {
      return isLate || overall.expired
    },
    begin(next) {
      if (next === stage && timer) {
        timer.refresh()
        return
      }
      stage = next
      clearTimeout(timer)
      if (operationTimeoutMs === undefined) return
      timer = setTimeout(
        late,
        connecting.has(next) ? Math.min(MOST_CONNECT_MS, operationTimeoutMs) : operationTimeoutMs,
      )
    },
    end() {
      clearTimeout(timer)
      parent.removeEventListener('abort', left)
      overall.end()
    },
  }
}

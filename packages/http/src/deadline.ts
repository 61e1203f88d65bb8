export interface Deadline {
  /** Fires with the parent's reason when the parent fires, and at the deadline. */
  signal: AbortSignal
  /** Whether it was the clock. */
  readonly expired: boolean
  /** Gives the timer and the listener back; to be called once the work has ended. */
  end(): void
}

/**
 * A signal for work that ends by `at` (epoch milliseconds) or when `parent` fires. Written out because on Node 20
 * `AbortSignal.any([…, AbortSignal.timeout(ms)])` can be garbage collected before it fires: the deadline then never comes.
 */
export function openDeadline(at: number, parent: AbortSignal): Deadline {
  const controller = new AbortController()
  const left = () => controller.abort(parent.reason)
  let expired = false
  const timer = setTimeout(
    () => {
      expired = true
      controller.abort(new DOMException('the deadline has passed', 'TimeoutError'))
    },
    Math.max(0, at - Date.now()),
  )
  parent.addEventListener('abort', left, { once: true })
  if (parent.aborted) left()
  return {
    signal: controller.signal,
    get expired() {
      return expired
    },
    end() {
      clearTimeout(timer)
      parent.removeEventListener('abort', left)
    },
  }
}

export interface AttemptTime {
  /** Fires with the request's, and when the answer has not begun in time. */
  signal: AbortSignal
  /** Whether it was the clock of this attempt. */
  late(): boolean
  /** The answer has begun: from here on the request's own deadline counts alone. */
  began(): void
  end(): void
}

/** What a candidate has to begin its answer; without a limit of its own it has all that the request has. */
export function openAttemptTime(mostMs: number | undefined, request: AbortSignal): AttemptTime {
  if (mostMs === undefined) return { signal: request, late: () => false, began() {}, end() {} }
  const ending = new AbortController()
  let late = false
  const follow = () => ending.abort(request.reason)
  const timer = setTimeout(() => {
    late = true
    ending.abort(new DOMException('the attempt took too long', 'TimeoutError'))
  }, mostMs)
  request.addEventListener('abort', follow, { once: true })
  if (request.aborted) follow()
  return {
    signal: ending.signal,
    late: () => late && !request.aborted,
    began: () => clearTimeout(timer),
    end() {
      clearTimeout(timer)
      request.removeEventListener('abort', follow)
    },
  }
}

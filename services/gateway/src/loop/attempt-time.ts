export interface AttemptTime {
  /** Fires with the request's, and when the answer has not begun in time. */
  signal: AbortSignal
  /** The model is asked now: its time begins. What this gateway needs before that is not the model's. */
  asking(): void
  /** Whether it was the clock of this attempt. */
  late(): boolean
  /** The answer has begun: from here on the request's own deadline counts alone. */
  began(): void
  end(): void
}

/** What a candidate has to begin its answer; without a limit of its own it has all that the request has. */
export function openAttemptTime(mostMs: number | undefined, request: AbortSignal): AttemptTime {
  if (mostMs === undefined) return { signal: request, asking() {}, late: () => false, began() {}, end() {} }
  const ending = new AbortController()
  let late = false
  const follow = () => ending.abort(request.reason)
  let timer: NodeJS.Timeout | undefined
  request.addEventListener('abort', follow, { once: true })
  if (request.aborted) follow()
  return {
    signal: ending.signal,
    asking() {
      timer ??= setTimeout(() => {
        late = true
        ending.abort(new DOMException('the attempt took too long', 'TimeoutError'))
      }, mostMs)
    },
    late: () => late && !request.aborted,
    began: () => clearTimeout(timer),
    end() {
      clearTimeout(timer)
      request.removeEventListener('abort', follow)
    },
  }
}

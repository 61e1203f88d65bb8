/** Every way a call can fail, as far as a caller can act on it: the HTTP status it means, and whether another try may help. */
export const failures = {
  invalid_request: { http: 400, retry: false },
  unauthorized: { http: 401, retry: false },
  pricing_required: { http: 402, retry: false },
  insufficient_funds: { http: 402, retry: false },
  over_budget: { http: 403, retry: false },
  forbidden: { http: 403, retry: false },
  not_found: { http: 404, retry: false },
  conflict: { http: 409, retry: false },
  too_large: { http: 413, retry: false },
  invalid_value: { http: 422, retry: false },
  rate_limited: { http: 429, retry: true },
  cancelled: { http: 499, retry: false },
  internal: { http: 500, retry: false },
  upstream: { http: 502, retry: true },
  unavailable: { http: 503, retry: true },
  timeout: { http: 504, retry: false },
} as const

export type Failure = keyof typeof failures

export const isFailure = (name: unknown): name is Failure => typeof name === 'string' && Object.hasOwn(failures, name)

interface FaultOptions extends ErrorOptions {
  /** Seconds after which another try makes sense; reaches the client as `Retry-After`. */
  retryAfterSeconds?: number
}

/** A failure with a name from the table. Its message is for the caller; what really happened is its `cause` and stays here. */
export class Fault extends Error {
  override readonly name = 'Fault'
  readonly failure: Failure
  readonly retryAfterSeconds: number | undefined

  constructor(failure: Failure, message: string, options?: FaultOptions) {
    super(message, options)
    this.failure = failure
    this.retryAfterSeconds = options?.retryAfterSeconds
  }

  get status(): number {
    return failures[this.failure].http
  }

  /** Whatever was thrown, as a Fault; what is not one already becomes `internal` with a text that tells nothing. */
  static from(thrown: unknown): Fault {
    return thrown instanceof Fault
      ? thrown
      : new Fault('internal', 'something went wrong on our side', { cause: thrown })
  }
}

import type { AnswerEvent } from '../conversation/events.ts'

/** How a dialect writes an answer as server-sent events. Each text is whole frames; '' shows the client nothing. */
export interface AnswerWriter {
  push(event: AnswerEvent): string
  /** What follows the finish. */
  end(): string
  /** What ends a stream that failed after its first byte, and nothing follows it. */
  fail(): string
  /** What may stand between any two frames while nothing else is sent. */
  readonly keepalive: string
}

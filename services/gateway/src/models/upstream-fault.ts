import { type Failure, Fault } from '@tollgate/contracts'
import type { Wire } from '../conversation/turn.ts'
import type { FailureKind } from './failure-kind.ts'

/** Who failed, as far as every part of one provider instance needs to know it. */
export interface Origin {
  /** The instance's name. */
  name: string
  wire: Wire
  /** Strings that must never be seen outside: its key, its host. */
  hidden: readonly string[]
}

interface UpstreamOptions extends ErrorOptions {
  /** The status the provider answered with, or the one its in-stream error stands for. */
  upstreamStatus?: number
  /** Whether another candidate model may do better (L-37). */
  retryable: boolean
  headers?: Record<string, string>
  retryAfterSeconds?: number
  /** Where it does not follow from the failure: see `kindOf`. */
  kind?: FailureKind
  toolRefusal?: ToolRefusal | undefined
}

/** What a backend has against the tools of a request, as far as that is the operator's to put right (PE-50, PE-51). */
export type ToolRefusal = { type: 'mixed' } | { type: 'duplicate'; name: string }

/**
 * A model call that failed at the provider's end. Its message is fit for the client, its `cause` for the log, and
 * neither holds the provider's body.
 */
export class UpstreamFault extends Fault {
  readonly wire: Wire
  readonly upstreamStatus: number | undefined
  readonly retryable: boolean
  readonly kind: FailureKind | undefined
  readonly toolRefusal: ToolRefusal | undefined
  /** What the operator is told of it, and nobody else: it stands in the activity log. */
  note: string | undefined
  /** Headers worth passing on, in lower case: `retry-after` and the vendor's quota headers (BR-043). */
  readonly headers: Readonly<Record<string, string>>

  constructor(failure: Failure, message: string, { name, wire }: Origin, options: UpstreamOptions) {
    super(failure, message, { ...options, cause: options.cause ?? new Error(`provider ${name}`) })
    this.wire = wire
    this.upstreamStatus = options.upstreamStatus
    this.retryable = options.retryable
    this.kind = options.kind
    this.toolRefusal = options.toolRefusal
    this.headers = options.headers ?? {}
  }
}

/** The failures that have no status of their own, each with its one text. */
export const brokenAnswers = {
  unreachable: 'the model provider could not be reached',
  redirect: 'the model provider answered with a redirect, which is not followed',
  unreadable: "the model provider's answer could not be read",
  empty: 'the model provider answered with nothing',
  cut: "the model provider's answer broke off",
  nameless: 'the model provider sent a tool call without a name',
  too_large: "the model provider's answer is larger than this gateway takes",
} as const

export function brokenAnswer(kind: keyof typeof brokenAnswers, origin: Origin, cause?: unknown): UpstreamFault {
  return new UpstreamFault('upstream', brokenAnswers[kind], origin, {
    retryable: true,
    cause,
    kind: kind === 'unreachable' ? 'connection' : 'broken_answer',
  })
}

import type { UpstreamFault } from './upstream-fault.ts'

/** Failures for which another candidate may be asked, as a routing policy names them. */
export const failureKinds = [
  'rate_limit',
  'server_error',
  'timeout',
  'connection',
  'broken_answer',
  'account',
  'not_found',
  /** This gateway has as many calls under way to it as it may. */
  'busy',
] as const
export type FailureKind = (typeof failureKinds)[number]

/** What of a provider failed; undefined where the client's own request is to blame, which no other model is asked for. */
export function kindOf({ failure, retryable, kind: stated }: UpstreamFault): FailureKind | undefined {
  if (!retryable) return undefined
  if (stated !== undefined) return stated
  switch (failure) {
    case 'rate_limited':
      return 'rate_limit'
    case 'timeout':
      return 'timeout'
    case 'not_found':
      return 'not_found'
    default:
      return 'server_error'
  }
}

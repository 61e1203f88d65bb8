import { builtinFetchLabel, type FetchFailed, type FetchFailure } from '@tollgate/contracts'
import type { DownloadFailure, NetworkStage } from '@tollgate/http'
import type { Log } from '@tollgate/telemetry'

export const failed = (failure: FetchFailure, more: Partial<FetchFailed> = {}): FetchFailed => ({
  status: 'failed',
  failure,
  ...more,
  label: builtinFetchLabel,
})

/** A download that came to nothing, as far as a caller may know (F-31, WM-26); the log may know more. */
export function downloadFailed(answer: DownloadFailure, log: Log): FetchFailed {
  if (answer.failure === 'network') log.debug({ stage: answer.stage, err: answer.cause }, 'a page could not be reached')
  switch (answer.failure) {
    case 'network':
    case 'timeout':
      return failed(answer.failure, { stage: stages[answer.stage] })
    case 'redirect_disallowed':
      return failed(answer.failure, { redirect: answer.why })
    default:
      return failed(answer.failure)
  }
}

const stages = {
  resolve: 'resolve',
  connect: 'connect',
  proxy: 'connect',
  tls: 'tls',
  headers: 'headers',
  body: 'body',
  encoding: 'encoding',
} as const satisfies Record<NetworkStage, FetchFailed['stage']>

import type { FailureTag, FetchFailure } from '@tollgate/contracts'
import type { ShownFailure } from '../conversation/events.ts'

/** Why there is no page: the words for the model, and what a client is shown. */
export interface FetchProblem extends ShownFailure {
  text: string
  /** The address is unsafe or none at all, and is not echoed. */
  hidesUrl?: boolean
}

/** The fixed texts of F-31. */
export function problemOf(failure: FetchFailure, httpStatus?: number): FetchProblem {
  switch (failure) {
    case 'url_disallowed':
      return { text: 'URL invalid or disallowed by gateway safety policy', tag: 'invalid_url', hidesUrl: true }
    case 'domain_disallowed':
      return { text: 'URL disallowed by workspace domain policy', tag: 'blocked' }
    case 'redirect_disallowed':
      return { text: 'redirect invalid or disallowed', tag: 'redirect' }
    case 'timeout':
      return { text: 'Web Fetch timed out', tag: 'timeout' }
    case 'network':
      return { text: 'Web Fetch network failure', tag: 'network' }
    case 'http_status':
      return httpStatus === undefined
        ? { text: 'Web Fetch failed', tag: 'http_error' }
        : { text: `destination returned HTTP ${httpStatus}`, tag: 'http_error', httpStatus }
    case 'unsupported_type':
      return { text: 'unsupported content type', tag: 'unsupported_content_type' }
    case 'extraction_failed':
      return { text: 'content extraction failed', tag: 'extraction_failed' }
    case 'robots_disallowed':
      return { text: 'the site’s robots policy disallows this URL', tag: 'blocked' }
    case 'too_large':
    case 'offset_past_end':
    case 'internal':
      return { text: 'Web Fetch failed', tag: 'unavailable' }
    default:
      return failure satisfies never
  }
}

/** F-42: the tag, the status where one is known, and never a word of the provider's. */
export function instanceProblem({
  tag,
  httpStatus,
}: {
  tag: FailureTag
  httpStatus?: number | undefined
}): FetchProblem {
  return httpStatus === undefined
    ? { text: `fetch failed (${tag})`, tag }
    : { text: `fetch failed (${tag}, HTTP ${httpStatus})`, tag, httpStatus }
}

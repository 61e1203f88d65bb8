import { fetchFailure } from '@tollgate/contracts'
import { counter, histogram } from '@tollgate/telemetry'
import { hostEnds } from './extract/host-process.ts'

export const fetchOutcomes = ['ok', ...fetchFailure.options, 'cancelled', 'error'] as const
export type FetchOutcome = (typeof fetchOutcomes)[number]

export const fetchSeconds = histogram('fetch_seconds', 'Time from a fetch call to its answer.', {
  outcome: fetchOutcomes,
})
export const imageSeconds = histogram('fetch_image_seconds', 'Time from a call for an image to its answer.', {
  outcome: fetchOutcomes,
})
export const renderedSeconds = histogram(
  'fetch_rendered_seconds',
  'Time from a call for a rendered page to its answer.',
  {
    outcome: fetchOutcomes,
  },
)
export const fetchPages = counter(
  'fetch_pages_total',
  'Pages by where they came from: the cache as they were, the cache after the site was asked, or the web.',
  {
    from: ['cache', 'revalidated', 'web'],
  },
)
export const fetchBytes = counter('fetch_bytes_total', 'Decoded bytes read from sites.', {})
export const extractRestarts = counter('extract_restarts_total', 'Extracting processes replaced.', { why: hostEnds })
export const extractSeconds = histogram('extract_seconds', 'Time to read a body, waiting included.', {
  kind: ['html', 'text', 'feed', 'pdf', 'failed'],
})

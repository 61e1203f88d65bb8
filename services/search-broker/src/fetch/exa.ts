import { z } from 'zod'
import { costDollars } from '../providers/exa-cost.ts'
import { under } from '../providers/provider.ts'
import { text } from '../providers/replies.ts'
import type { FetchAnswer, FetchProvider } from './provider.ts'

const pageStatus = z.object({
  status: z.enum(['success', 'error']),
  error: z
    .object({ tag: text, httpStatusCode: z.int().min(100).max(599).nullish().catch(undefined) })
    .nullish()
    .catch(undefined),
})

/** Exa's own words for a page that did not come in time (https://exa.ai/docs/reference/error-codes). */
const tooLate: readonly string[] = ['CRAWL_TIMEOUT', 'CRAWL_LIVECRAWL_TIMEOUT']

/**
 * Exa, `POST /contents` with `x-api-key` (https://exa.ai/docs/reference/get-contents). What became of the one page asked
 * for is in `statuses`, in a reply whose own status is 200; `costDollars.total` is what it cost (FP-05). A page that
 * succeeded without text is an empty one (F-45).
 */
export const exaContents: FetchProvider = {
  id: 'exa',
  docUrl: 'https://exa.ai/docs/reference/get-contents',
  requiresApiKey: true,
  defaultApiBase: 'https://api.exa.ai',
  reportsFinalUrl: false,
  options: [
    {
      name: 'max_age_hours',
      type: 'integer',
      minimum: -1,
      maximum: 720,
      description: 'How old a saved copy of a page may be: 0 reads it anew each time, -1 never.',
    },
  ],

  request: ({ url, maxCharacters, options }, { apiBase, apiKey }) => ({
    method: 'POST',
    url: under(apiBase, 'contents'),
    headers: { 'x-api-key': apiKey ?? '' },
    body: { urls: [url], text: { maxCharacters }, maxAgeHours: options.max_age_hours },
  }),

  answer: z
    .object({
      results: z.array(z.object({ text, title: text })),
      statuses: z.array(pageStatus).default([]),
      costDollars,
    })
    .refine(({ results, statuses }) => results.length + statuses.length > 0)
    .transform(({ results: [page], statuses: [said], costDollars: cost }): FetchAnswer => {
      if (said?.status === 'error') return failed(said.error?.tag, said.error?.httpStatusCode)
      return { status: 'ok', text: page?.text ?? '', title: page?.title, cost }
    }),
}

/** The status is the page's own, as Exa saw it. */
function failed(tag = '', httpStatus?: number | null): FetchAnswer {
  if (tooLate.includes(tag)) return { status: 'failed', tag: 'timeout' }
  return { status: 'failed', tag: 'http_error', ...(typeof httpStatus === 'number' && { httpStatus }) }
}

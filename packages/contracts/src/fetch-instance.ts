import { z } from 'zod'
import { domainPolicy } from './fetch.ts'
import { rpc } from './rpc.ts'
import { searchOption } from './search-options.ts'
import { tenancy } from './tenancy.ts'
import { failureTag } from './tool-result.ts'

/** Why an address was not fetched, or what came of it not handed on: our own verdicts, not the provider's (F-40). */
export const fetchRefusal = z.enum(['url_disallowed', 'domain_disallowed', 'redirect_disallowed'])
export type FetchRefusal = z.infer<typeof fetchRefusal>

const instanceFailed = z.object({
  status: z.literal('failed'),
  label: z.string(),
  tag: failureTag,
  httpStatus: z.int().optional(),
})

/**
 * One page as text, fetched by the provider of a fetch instance on its own side. Served where search is, since that is
 * where keys of providers are known. A provider's failure is an answer: the model reads about it (F-42).
 */
export const searchFetch = rpc({
  subject: 'tg.v1.search.fetch',
  delivery: 'direct',
  idempotent: true,
  input: z.object({
    tenancy,
    instance: z.string().min(1),
    url: z.string(),
    policy: domainPolicy.prefault({}),
    /** Most code points of text in the answer, and what a provider that can be told is asked for (FP-08). */
    maxCharacters: z.int().positive().max(1_000_000),
  }),
  output: z.discriminatedUnion('status', [
    z.object({
      status: z.literal('ok'),
      label: z.string(),
      title: z.string().optional(),
      /** Absent when the provider reports none (F-43). */
      contentType: z.string().optional(),
      /** Absent when the provider does not report where it found the page in the end (F-41). */
      finalUrl: z.string().optional(),
      /** Valid UTF-8 without control characters but tab and newline; empty for a page reported as empty (F-45). */
      text: z.string(),
      /** Decimal dollars, as the provider reported them. */
      reportedCost: z.string().optional(),
    }),
    instanceFailed,
    z.object({
      status: z.literal('refused'),
      label: z.string(),
      why: fetchRefusal,
      /** When the provider was asked before its answer was refused. */
      reportedCost: z.string().optional(),
    }),
  ]),
})

/** A fetch provider this deployment knows, configured or not (SP-01), without what only its operator may set. */
export const fetchProvider = z.object({
  id: z.string(),
  docUrl: z.string(),
  requiresApiKey: z.boolean(),
  defaultApiBase: z.string(),
  /** False: only the requested URL can be judged, not where a redirect led (F-41). */
  reportsFinalUrl: z.boolean(),
  options: z.array(searchOption),
})
export type FetchProviderEntry = z.infer<typeof fetchProvider>

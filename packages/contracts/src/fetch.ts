import { z } from 'zod'
import { rpc } from './rpc.ts'
import { tenancy } from './tenancy.ts'

/** Bare host names, lower case, without scheme or port; `example.com` also stands for every name under it (W-34). */
export const domainPolicy = z.object({
  /** Null: every host. An empty list: none. */
  allowedDomains: z.array(z.string()).nullable().default(null),
  blockedDomains: z.array(z.string()).default([]),
})
export type DomainPolicy = z.infer<typeof domainPolicy>

/** Why a page was not read, as far as a model or a client may know (F-31). */
export const fetchFailure = z.enum([
  'url_disallowed', // gateway safety policy
  'domain_disallowed', // workspace domain policy
  'redirect_disallowed',
  'timeout',
  'network',
  'http_status',
  'unsupported_type',
  'extraction_failed',
  'too_large',
  'internal',
])
export type FetchFailure = z.infer<typeof fetchFailure>

export const fetchedPage = z.object({
  status: z.literal('ok'),
  /** Complete URLs; whoever shows one drops query and fragment (F-33). */
  requestedUrl: z.string(),
  finalUrl: z.string(),
  /** Media type without parameters; absent when the server named none. */
  contentType: z.string().optional(),
  title: z.string().optional(),
  /** Extracted text (Markdown for HTML): valid UTF-8, no control characters but tab and newline. */
  text: z.string(),
  /** Sentences to be shown with the text: what was cut, and why. */
  notices: z.array(z.string()).default([]),
  /** Bytes read from the network after content decoding. */
  bytes: z.int().nonnegative(),
  label: z.string(),
  /** Decimal dollars, when a fetch provider reported its charge. */
  reportedCost: z.string().optional(),
})
export type FetchedPage = z.infer<typeof fetchedPage>

export const fetchFailed = z.object({
  status: z.literal('failed'),
  failure: fetchFailure,
  httpStatus: z.int().optional(),
  /** What an `extraction_failed` came of, in a word. */
  reason: z.enum(['damaged', 'password', 'bot_protection', 'time', 'memory', 'crash']).optional(),
  label: z.string(),
})
export type FetchFailed = z.infer<typeof fetchFailed>

/** One page as text. Raw bodies never cross the bus: extraction happens where the bytes arrive. */
export const fetchPage = rpc({
  subject: 'tg.v1.fetch.page',
  delivery: 'queue',
  idempotent: true,
  input: z.object({
    tenancy,
    url: z.string(),
    policy: domainPolicy.prefault({}),
    /** Most UTF-8 bytes of text in the answer; what is cut is said in a notice. */
    maxTextBytes: z
      .int()
      .positive()
      .max(1024 * 1024)
      .default(50 * 1024),
    /** One deadline for DNS, connect, TLS, redirects and body together (F-21); extraction has its own (F-25). */
    timeoutMs: z.int().positive().max(120_000).default(5_000),
    /** Only the operator's `web_search_allow_private_hosts` sets it (S-77). */
    allowPrivateHosts: z.boolean().default(false),
  }),
  event: z.object({ type: z.enum(['downloading', 'extracting']) }),
  output: z.discriminatedUnion('status', [fetchedPage, fetchFailed]),
})

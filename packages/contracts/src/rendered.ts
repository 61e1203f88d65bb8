import { z } from 'zod'
import { domainPolicy, downloadRules, fetchedPage, fetchFailed, fetchPage } from './fetch.ts'
import { rpc } from './rpc.ts'
import { tenancy } from './tenancy.ts'

/** One page as a browser shows it, read like any other (WM-07): for pages whose text is made by their scripts. */
export const fetchRendered = rpc({
  subject: 'tg.v1.fetch.rendered',
  delivery: 'queue',
  idempotent: true,
  input: fetchPage.input
    .omit({ reads: true, anyStatus: true, pdfPage: true })
    .extend({ timeoutMs: z.int().positive().max(60_000).default(20_000) }),
  event: z.object({ type: z.enum(['rendering', 'extracting']) }),
  output: z.discriminatedUnion('status', [fetchedPage, fetchFailed]),
})

/** What a browser made of a page: its document as HTML, for `fetch.rendered` alone. */
export const renderPage = rpc({
  subject: 'tg.v1.render.page',
  delivery: 'queue',
  idempotent: true,
  input: z.object({
    tenancy,
    url: z.string(),
    policy: domainPolicy.prefault({}),
    rules: downloadRules.prefault({}),
    /** UTF-16 units of HTML that are handed over: as many as fit a reply in any script. */
    maxHtmlLength: z
      .int()
      .positive()
      .max(2 * 1024 * 1024)
      .default(1.25 * 1024 * 1024),
    timeoutMs: z.int().positive().max(60_000),
    allowPrivateHosts: z.boolean().default(false),
  }),
  output: z.discriminatedUnion('status', [
    z.object({
      status: z.literal('ok'),
      finalUrl: z.string(),
      httpStatus: z.int(),
      html: z.string(),
      isCut: z.boolean(),
      /** Bytes that the page and all it asked for took from the network. */
      bytes: z.int().nonnegative(),
    }),
    fetchFailed,
  ]),
})
export type RenderedPage = z.output<(typeof renderPage)['output']>

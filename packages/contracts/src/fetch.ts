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
  'offset_past_end',
  'robots_disallowed',
  'internal',
])
export type FetchFailure = z.infer<typeof fetchFailure>

/** How HTML is handed back; anything else is text as it came. */
export const pageFormat = z.enum(['text', 'markdown', 'html'])
export type PageFormat = z.infer<typeof pageFormat>

/** What a page says of itself, each as far as it does. */
export const pageFacts = z.object({
  /** Its own heading, without the name of the site. */
  headline: z.string().optional(),
  byline: z.string().optional(),
  /** ISO 8601 date, or date and time when the page gives one. */
  published: z.string().optional(),
  /** BCP 47, as declared or told from the text. */
  language: z.string().optional(),
  /** Absolute http(s) URL. */
  canonicalUrl: z.string().optional(),
  siteName: z.string().optional(),
  description: z.string().optional(),
  pageType: z.enum(['article', 'forum', 'product', 'listing', 'collection', 'documentation', 'service']).optional(),
})
export type PageFacts = z.infer<typeof pageFacts>

/** Absolute http(s) URLs, each once (WM-46). */
export const pageImage = z.object({
  url: z.string(),
  alt: z.string(),
  width: z.int().nonnegative().nullable(),
  height: z.int().nonnegative().nullable(),
  source: z.enum(['img', 'og:image', 'twitter:image', 'icon']),
})
export const pageLink = z.object({ url: z.string(), text: z.string() })
export const pageAssets = z.object({
  images: z.array(pageImage).max(30),
  links: z.array(pageLink).max(100),
  /** Either list was cut. */
  truncated: z.boolean(),
})
export type PageAssets = z.infer<typeof pageAssets>

export const fetchedPage = z.object({
  status: z.literal('ok'),
  /** Complete URLs; whoever shows one drops query and fragment (F-33). */
  requestedUrl: z.string(),
  finalUrl: z.string(),
  httpStatus: z.int().default(200),
  /** Media type without parameters; absent when the server named none. */
  contentType: z.string().optional(),
  title: z.string().optional(),
  facts: pageFacts.default({}),
  format: pageFormat.default('text'),
  /** Main content found, the whole page converted, or a body returned as it was (WM-30, WA-1). */
  extractor: z.enum(['main', 'whole', 'none']).default('none'),
  /** Extracted text: valid UTF-8, no control characters but tab and newline. */
  text: z.string(),
  /** Code points of the whole text, and where the window of this answer begins and the next one would (WM-31, WM-32). */
  totalChars: z.int().nonnegative().optional(),
  offset: z.int().nonnegative().default(0),
  nextOffset: z.int().positive().optional(),
  /** The page of a PDF to go on with, when not all were read. */
  nextPdfPage: z.int().positive().optional(),
  /** The body was larger than its limit, and was cut (WM-42). */
  bodyCut: z.boolean().default(false),
  likelyJsRendered: z.boolean().default(false),
  /** Only when asked for. */
  assets: pageAssets.optional(),
  /** Sentences to be shown with the text: what was cut, and why. */
  notices: z.array(z.string()).default([]),
  /** Bytes read from the network after content decoding; none when the page came from the cache. */
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
  /** What a `network` failure or a timeout happened at (WM-26). */
  stage: z.enum(['resolve', 'connect', 'tls', 'headers', 'body', 'encoding']).optional(),
  /** What an `unsupported_type` or `too_large` was declared to be (WM-37, WM-53). */
  declared: z.object({ contentType: z.string().optional(), bytes: z.int().nonnegative().optional() }).optional(),
  /** Whether a `redirect_disallowed` was one redirect too many, or one to where none may lead. */
  redirect: z.enum(['too_many', 'not_allowed']).optional(),
  /** With `offset_past_end`. */
  totalChars: z.int().nonnegative().optional(),
  label: z.string(),
})
export type FetchFailed = z.infer<typeof fetchFailed>

/** How far a surface lets a download go; the guard's verdict on addresses is the same for all (WM-87). */
export const downloadRules = z.object({
  /** Decoded bytes of a body that are read. */
  maxBodyBytes: z
    .int()
    .positive()
    .max(64 * 1024 * 1024)
    .optional(),
  maxRedirects: z.int().nonnegative().max(50).optional(),
  /** Limit for each network operation, beside the deadline for all of them; connecting has at most 10 s (WM-21). */
  operationTimeoutMs: z.int().positive().max(600_000).optional(),
  /** Follow a redirect from https to http (V-I20, WA-11). */
  allowDowngrade: z.boolean().default(false),
  /** Exact host names whose addresses need not be public (WM-86). */
  allowedHosts: z.array(z.string()).max(1_000).default([]),
  /** Never through a proxy, whatever the deployment trusts (WM-24). */
  direct: z.boolean().default(false),
})
export type DownloadRules = z.infer<typeof downloadRules>

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
      .max(4 * 1024 * 1024)
      .default(50 * 1024),
    rules: downloadRules.prefault({}),
    /** `documents`: also PDFs (F-17). `text`: textual types only, told from the headers (WM-36, WM-37). */
    reads: z.enum(['documents', 'text']).default('documents'),
    /** A page with any status is an answer (WM-40); else only those from 200 to 299 (F-31). */
    anyStatus: z.boolean().default(false),
    format: pageFormat.default('markdown'),
    /** Main content where it can be told, or the whole page (WM-34). */
    part: z.enum(['main', 'whole']).default('main'),
    assets: z.boolean().default(false),
    /** Code points, of the whole text; absent: its beginning, as far as `maxTextBytes` goes. */
    window: z
      .object({ offset: z.int().nonnegative().default(0), maxChars: z.int().positive().max(2_000_000).optional() })
      .optional(),
    /** First page of a PDF to read. */
    pdfPage: z.int().positive().optional(),
    /** One deadline for DNS, connect, TLS, redirects and body together (F-21); extraction has its own (F-25). */
    timeoutMs: z.int().positive().max(120_000).default(5_000),
    /** Only the operator's `web_search_allow_private_hosts` sets it (S-77). */
    allowPrivateHosts: z.boolean().default(false),
  }),
  event: z.object({ type: z.enum(['downloading', 'extracting']) }),
  output: z.discriminatedUnion('status', [fetchedPage, fetchFailed]),
})

/** One image as a model can look at it (WM-50). */
export const fetchImage = rpc({
  subject: 'tg.v1.fetch.image',
  delivery: 'queue',
  idempotent: true,
  input: z.object({
    tenancy,
    url: z.string(),
    policy: domainPolicy.prefault({}),
    rules: downloadRules.prefault({}),
    timeoutMs: z.int().positive().max(600_000).default(120_000),
    /** Longest edge and most encoded bytes of what is handed back (WM-55). */
    maxEdgePx: z.int().positive().max(16_384).default(1_568),
    maxEncodedBytes: z.int().positive().max(5_000_000).default(3_000_000),
    allowPrivateHosts: z.boolean().default(false),
  }),
  event: z.object({ type: z.enum(['downloading', 'extracting']) }),
  output: z.discriminatedUnion('status', [
    z.object({
      status: z.literal('ok'),
      format: z.enum(['PNG', 'JPEG', 'GIF', 'WEBP']),
      /** Pixels of the original. */
      width: z.int().positive(),
      height: z.int().positive(),
      /** Pixels of what is handed back, when it was made smaller. */
      scaled: z.object({ width: z.int().positive(), height: z.int().positive() }).optional(),
      mimeType: z.enum(['image/png', 'image/jpeg', 'image/gif', 'image/webp']),
      /** Base64. */
      data: z.string(),
      finalUrl: z.string(),
      bytes: z.int().nonnegative(),
      label: z.string(),
    }),
    fetchFailed.extend({
      /** Why what came is not taken as an image. */
      imageProblem: z.enum(['not_an_image', 'mislabelled', 'svg', 'too_many_pixels', 'damaged']).optional(),
    }),
  ]),
})

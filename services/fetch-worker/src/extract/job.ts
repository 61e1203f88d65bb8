import { type PageFormat, pageAssets, pageFacts, pageFormat } from '@tollgate/contracts'
import { z } from 'zod'

/** One body to be read, as it came from the network. */
export interface ExtractJob {
  bytes: Uint8Array
  /** The whole `Content-Type` header. */
  contentType: string | undefined
  /** Where the body was found in the end: links are resolved against it. */
  url: string
  /** The body was cut at the size limit. */
  isCut: boolean
  format: PageFormat
  /** Main content where it can be told, or the whole page as it is (WM-34). */
  part: 'main' | 'whole'
  /** List the page's images and links (WM-45). */
  assets: boolean
  /** A feed as the list of its entries, which is what is done unless told otherwise, or unchanged as all XML (WM-39). */
  feeds?: 'listed' | 'as-is'
  /** A page that only asks for a browser is no page unless told otherwise (BR-101); who takes any answer takes it too (WM-40). */
  challenges?: 'refused' | 'as-is'
  /** First page of a PDF to read, from 1. */
  pdfPage: number
  limits: ExtractLimits
}

/** How a page is wanted when nobody says otherwise. */
export const defaultReading = {
  format: 'markdown',
  part: 'main',
  assets: false,
  pdfPage: 1,
} as const satisfies Partial<ExtractJob>

export interface ExtractLimits {
  /** Most UTF-8 bytes of text handed back (F-35). */
  textBytes: number
  /** Milliseconds after which the thread is ended; parsing HTML stops by itself at half of them, reading a PDF shortly before. */
  htmlMs: number
  pdfMs: number
  pdfPages: number
}

export const defaultExtractLimits: ExtractLimits = { textBytes: 256 * 1024, htmlMs: 2_000, pdfMs: 5_000, pdfPages: 100 }

/** Why nothing could be made of a body. `time`, `memory` and `crash` come from whoever watches over the work. */
export const extractFailure = z.enum([
  'unsupported',
  'cut',
  'damaged',
  'password',
  'bot_protection',
  'time',
  'memory',
  'crash',
])
export type ExtractFailure = z.infer<typeof extractFailure>

/** What the thread answers: parsed where it comes back, since the process it comes from may be in any state. */
export const extracted = z.discriminatedUnion('status', [
  z.object({
    status: z.literal('ok'),
    kind: z.enum(['html', 'text', 'feed', 'pdf']),
    text: z.string(),
    format: pageFormat.default('text'),
    extractor: z.enum(['main', 'whole', 'none']).default('none'),
    title: z.string().optional(),
    facts: pageFacts.default({}),
    assets: pageAssets.optional(),
    likelyJsRendered: z.boolean().default(false),
    nextPdfPage: z.int().positive().optional(),
    /** Sentences to be shown with the text. */
    notices: z.array(z.string()),
  }),
  z.object({ status: z.literal('failed'), failure: extractFailure }),
])
export type Extracted = z.input<typeof extracted>
/** With every member there, as the host hands it on. */
export type ExtractedResult = z.output<typeof extracted>

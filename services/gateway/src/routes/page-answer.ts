import { type FetchedPage, pageFacts, pageFormat, pageImage, pageLink } from '@tollgate/contracts'
import { type PageArguments, pageObject } from '@tollgate/mcp-web'
import { z } from 'zod'

const orNull = z.string().nullable()

/** A page as a direct fetch answers it: what `fetch_webpage` says of one, and what else is known. */
export const pageAnswer = z.strictObject({
  object: z.literal('web_page'),
  url: z.string(),
  final_url: z.string(),
  status: z.int(),
  content_type: orNull,
  title: orNull,
  format: pageFormat,
  extractor: z.enum(['trafilatura', 'stdlib', 'none']).describe('Main content found, whole page converted, as it came'),
  text: z.string(),
  truncated: z.boolean(),
  total_chars: z.int(),
  offset: z.int(),
  next_offset: z.int().nullable(),
  has_more: z.boolean(),
  byte_cap_reached: z.boolean(),
  likely_js_rendered: z.boolean(),
  images: z.array(pageImage).optional(),
  links: z.array(pageLink).optional(),
  assets_truncated: z.boolean().optional(),
  byline: orNull,
  published: orNull,
  language: orNull,
  canonical_url: orNull,
  site_name: orNull,
  description: orNull,
  page_type: pageFacts.shape.pageType.unwrap().nullable(),
  next_pdf_page: z.int().nullable(),
  notices: z.array(z.string()),
})

export function pageAnswerOf(page: FetchedPage, wanted: PageArguments): z.input<typeof pageAnswer> {
  const { facts, notices, nextPdfPage } = page
  return {
    object: 'web_page',
    ...pageObject(page, wanted),
    byline: facts.byline ?? null,
    published: facts.published ?? null,
    language: facts.language ?? null,
    canonical_url: facts.canonicalUrl ?? null,
    site_name: facts.siteName ?? null,
    description: facts.description ?? null,
    page_type: facts.pageType ?? null,
    next_pdf_page: nextPdfPage ?? null,
    notices,
  }
}

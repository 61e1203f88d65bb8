import type { Bus } from '@tollgate/bus'
import { Fault, type FetchedPage, fetchPage, type PageAssets } from '@tollgate/contracts'
import type { z } from 'zod'
import { type CallAt, failed, type Outcome, unanswered } from './call.ts'
import { tellFetchFailure } from './fetch-failures.ts'
import { formatOf, type PageArguments } from './page-arguments.ts'

type PageInput = z.input<typeof fetchPage.input>

/** What a surface decides about its fetches, beside what each is asked for. */
export type PageRules = Pick<PageInput, 'rules' | 'reads' | 'pdfPage'> & { timeoutMs: number }

/** Beside the network's time: a turn in the queue, and reading what came (F-25). */
const READING_MS = 20_000
/** The largest window a worker hands over at once; more of a page is its next part. */
const MOST_CHARACTERS = 2_000_000
const MOST_TEXT_BYTES = 4 * 1024 * 1024

/** Reads one page, or a window of it (WM-31 to WM-35). */
export async function readPage(
  bus: Bus,
  wanted: PageArguments,
  { timeoutMs, ...rules }: PageRules,
  at: CallAt,
): Promise<Outcome<FetchedPage>> {
  const input: PageInput = {
    ...rules,
    tenancy: at.tenancy,
    url: wanted.url,
    policy: at.domains,
    timeoutMs,
    anyStatus: true,
    ...windowOf(wanted),
  }
  const deadline = Math.min(at.deadline, Date.now() + timeoutMs + READING_MS)
  try {
    const page = await bus.call(fetchPage, input, { deadline, signal: at.signal })
    if (page.status === 'ok') return { ok: true, value: page, label: page.label, reportedCost: page.reportedCost }
    const { failure, message } = tellFetchFailure(page)
    return failed(failure, message, { label: page.label })
  } catch (thrown) {
    return unanswered(thrown, 'the fetch', at)
  }
}

/** What of a page is wanted, and in which form. */
export const windowOf = (wanted: PageArguments) => ({
  format: formatOf(wanted),
  // WM-34: plain text is always what the built-in conversion makes of the whole page
  part: wanted.structured ? ('main' as const) : ('whole' as const),
  assets: wanted.include_assets,
  window: { offset: wanted.offset, maxChars: Math.min(wanted.max_length, MOST_CHARACTERS) },
  maxTextBytes: MOST_TEXT_BYTES,
})

/** The object of WM-30, its members in the order its clients know. */
export function pageObject(page: FetchedPage, { url, include_assets }: PageArguments) {
  const { totalChars, nextOffset, assets = noAssets } = page
  if (totalChars === undefined) throw new Fault('internal', 'a page came without its length')
  const hasMore = nextOffset !== undefined
  return {
    url,
    final_url: page.finalUrl,
    status: page.httpStatus,
    content_type: page.contentType ?? null,
    title: page.title ?? null,
    format: page.format,
    extractor: extractors[page.extractor],
    text: page.text,
    truncated: hasMore || page.bodyCut,
    total_chars: totalChars,
    offset: page.offset,
    next_offset: nextOffset ?? null,
    has_more: hasMore,
    byte_cap_reached: page.bodyCut,
    likely_js_rendered: page.likelyJsRendered,
    ...(include_assets && { images: assets.images, links: assets.links, assets_truncated: assets.truncated }),
  }
}

/** WM-46: what is no HTML has none. */
const noAssets: PageAssets = { images: [], links: [], truncated: false }

/** WA-1: clients check these words, which are those of the server they were made for. */
const extractors = { main: 'trafilatura', whole: 'stdlib', none: 'none' } as const satisfies Record<
  FetchedPage['extractor'],
  string
>

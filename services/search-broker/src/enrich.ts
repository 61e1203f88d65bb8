import { type DomainPolicy, Fault, type Tenancy } from '@tollgate/contracts'
import { openDeadline } from '@tollgate/http'
import { countPage } from './metrics.ts'
import type { PageReader, ReadPage } from './page-readers.ts'
import type { FoundHit } from './providers/provider.ts'
import { mapAtMost, type Slots } from './slots.ts'

/** Hits of one search whose pages are read; later ones show their snippets (S-56). */
const MOST_PAGES = 20
/** Pages of one search being read at once (S-63). */
const PAGES_AT_ONCE = 5

export interface EnrichOptions {
  tenancy: Tenancy
  policy: DomainPolicy
  /** Epoch milliseconds by which pages that are still missing are done without. */
  deadline: number
  signal: AbortSignal
  slots: Slots
  /** Called once, before the first page is asked for. */
  onReading: () => void
}

export interface Enriched {
  /** What is shown under each hit, in the hits' order. */
  bodies: string[]
  costs: (string | undefined)[]
}

/**
 * Finds something better than a snippet for hits that came without page text (S-55). Never fails a search: whatever goes
 * wrong with a page leaves its hit the snippet (S-59, S-76). Only a fired signal throws.
 */
export async function enrich(
  readPage: PageReader,
  hits: readonly FoundHit[],
  options: EnrichOptions,
): Promise<Enriched> {
  const bare = hits.filter((hit) => !hit.pageText?.trim()).slice(0, MOST_PAGES)
  if (bare.length > 0) options.onReading()
  const pages = new Map(
    await mapAtMost(bare, PAGES_AT_ONCE, async (hit) => [hit, await attempt(readPage, hit.url, options)] as const),
  )
  return {
    bodies: hits.map((hit) => bodyOf(hit, pages.get(hit))),
    costs: [...pages.values()].map((page) => page?.reportedCost),
  }
}

/** What a hit shows when no page is read for it. */
export const ownBody = (hit: FoundHit): string => hit.pageText?.trim() || hit.snippet

function bodyOf(hit: FoundHit, page: ReadPage | undefined): string {
  const pageText = page?.text.trim() ?? ''
  if (!page || pageText === '') return ownBody(hit)
  return page.replacesSnippet ? pageText : [hit.snippet, pageText].filter(Boolean).join('\n\n')
}

async function attempt(readPage: PageReader, url: string, options: EnrichOptions): Promise<ReadPage | undefined> {
  const { tenancy, policy, deadline, signal, slots } = options
  const limit = openDeadline(deadline, signal)
  try {
    const page = await slots.run(limit.signal, () => readPage({ tenancy, url, policy }, { deadline, signal }))
    countPage(page === 'full' ? 'rate_limited' : page.outcome)
    return page === 'full' ? undefined : page
  } catch (thrown) {
    signal.throwIfAborted()
    countPage(limit.expired ? 'timeout' : Fault.from(thrown).failure)
    return undefined
  } finally {
    limit.end()
  }
}

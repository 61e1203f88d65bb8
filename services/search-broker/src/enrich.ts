import type { Bus } from '@tollgate/bus'
import {
  builtinFetchLabel,
  type DomainPolicy,
  Fault,
  type FetchedPage,
  fetchPage,
  RESULT_TEXT_CHARACTERS,
  type Tenancy,
} from '@tollgate/contracts'
import { openDeadline } from '@tollgate/http'
import { countPage } from './metrics.ts'
import type { FoundHit } from './providers/provider.ts'
import { mayVisit } from './results.ts'
import { mapAtMost, type Slots } from './slots.ts'

/** Hits of one search whose pages are read; later ones show their snippets (S-56). */
const MOST_PAGES = 20
/** Pages of one search being read at once (S-63). */
const PAGES_AT_ONCE = 5
/** One deadline for everything on the network (F-21). */
const DOWNLOAD_MS = 5_000
/** The same, its turn in the queue and the extraction (F-25) included. */
const PAGE_MS = 12_000
/** Room for the longest result, whatever bytes its characters take, and a notice. */
const PAGE_TEXT_BYTES = RESULT_TEXT_CHARACTERS * 4 + 2_048

export interface EnrichOptions {
  tenancy: Tenancy
  policy: DomainPolicy
  allowPrivateHosts: boolean
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
export async function enrich(bus: Bus, hits: readonly FoundHit[], options: EnrichOptions): Promise<Enriched> {
  const bare = hits.filter((hit) => !hit.pageText?.trim()).slice(0, MOST_PAGES)
  if (bare.length > 0) options.onReading()
  const pages = new Map(
    await mapAtMost(bare, PAGES_AT_ONCE, async (hit) => [hit, await readPage(bus, hit.url, options)] as const),
  )
  return {
    bodies: hits.map((hit) => bodyOf(hit, pages.get(hit), options.policy)),
    costs: [...pages.values()].map((page) => page?.reportedCost),
  }
}

/** What a hit shows when no page is read for it. */
export const ownBody = (hit: FoundHit): string => hit.pageText?.trim() || hit.snippet

/**
 * The built-in fetcher's text replaces the snippet (S-57); an instance's follows it, since a provider may hand out a
 * site's error page as the page (S-58). The address it came from in the end is judged like the hit's own (S-60).
 */
function bodyOf(hit: FoundHit, page: FetchedPage | undefined, policy: DomainPolicy): string {
  const pageText = page && mayVisit(policy, page.finalUrl) ? page.text.trim() : ''
  if (!page || pageText === '') return ownBody(hit)
  return page.label === builtinFetchLabel ? pageText : [hit.snippet, pageText].filter(Boolean).join('\n\n')
}

async function readPage(bus: Bus, url: string, options: EnrichOptions): Promise<FetchedPage | undefined> {
  const { tenancy, policy, allowPrivateHosts, signal, slots } = options
  const limit = openDeadline(options.deadline, signal)
  try {
    const page = await slots.run(limit.signal, () =>
      bus.call(
        fetchPage,
        { tenancy, url, policy, allowPrivateHosts, maxTextBytes: PAGE_TEXT_BYTES, timeoutMs: DOWNLOAD_MS },
        { deadline: Math.min(options.deadline, Date.now() + PAGE_MS), signal },
      ),
    )
    if (page !== 'full' && page.status === 'ok') {
      countPage('read')
      return page
    }
    countPage(page === 'full' ? 'rate_limited' : page.failure)
  } catch (thrown) {
    signal.throwIfAborted()
    countPage(limit.expired ? 'timeout' : Fault.from(thrown).failure)
  } finally {
    limit.end()
  }
  return undefined
}

import type { Bus } from '@tollgate/bus'
import { type DomainPolicy, fetchPage, RESULT_TEXT_CHARACTERS, type Tenancy } from '@tollgate/contracts'
import type { FetchInstance } from './fetch/instances.ts'
import type { FetchPage } from './fetch/observed.ts'
import type { PageOutcome } from './metrics.ts'
import { mayVisit } from './results.ts'

export interface PageWanted {
  tenancy: Tenancy
  url: string
  policy: DomainPolicy
}

export interface ReadPage {
  outcome: PageOutcome
  /** Empty when there is nothing to show. */
  text: string
  /** Whether the text stands in for the snippet (S-57), or follows it (S-58). */
  replacesSnippet: boolean
  /** Decimal dollars, also for a page that cannot be used (S-62). */
  reportedCost?: string | undefined
}

/** Reads the page behind a hit. What goes wrong with it is an outcome; what is thrown is a broken call, or the signal. */
export type PageReader = (page: PageWanted, limits: { deadline: number; signal: AbortSignal }) => Promise<ReadPage>

/** One deadline for everything on the network (F-21). */
const DOWNLOAD_MS = 5_000
/** The same, its turn in the queue and the extraction (F-25) included. */
const PAGE_MS = 12_000
/** Room for the longest result, whatever bytes its characters take, and a notice. */
const PAGE_TEXT_BYTES = RESULT_TEXT_CHARACTERS * 4 + 2_048

/** The built-in fetcher judges every hop; where the page came from in the end is judged like the hit's own address (S-60). */
export const builtinReader =
  (bus: Bus, allowPrivateHosts: boolean): PageReader =>
  async (page, { deadline, signal }) => {
    const read = await bus.call(
      fetchPage,
      { ...page, allowPrivateHosts, maxTextBytes: PAGE_TEXT_BYTES, timeoutMs: DOWNLOAD_MS },
      { deadline: Math.min(deadline, Date.now() + PAGE_MS), signal },
    )
    if (read.status === 'failed') return { outcome: read.failure, text: '', replacesSnippet: true }
    const { reportedCost } = read
    const text = mayVisit(page.policy, read.finalUrl) ? read.text : ''
    return { outcome: 'read', text, replacesSnippet: true, reportedCost }
  }

/** A provider may hand out a site's error page as the page, so the snippet stays in front of what it brings (S-58). */
export const instanceReader =
  (fetch: FetchPage, instance: FetchInstance): PageReader =>
  async ({ tenancy, url, policy }, limits) => {
    const wanted = { url, policy, maxCharacters: RESULT_TEXT_CHARACTERS, request: tenancy.request }
    const read = await fetch(instance, wanted, limits)
    const replacesSnippet = false
    switch (read.status) {
      case 'ok':
        return { outcome: 'read', text: read.text, replacesSnippet, reportedCost: read.reportedCost }
      case 'refused':
        return { outcome: read.why, text: '', replacesSnippet, reportedCost: read.reportedCost }
      case 'failed':
        return { outcome: read.tag, text: '', replacesSnippet }
      default:
        return read satisfies never
    }
  }

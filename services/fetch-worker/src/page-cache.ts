import type { FetchedPage } from '@tollgate/contracts'
import type { DownloadRequest, ResponseHead } from '@tollgate/http'

export interface PageCacheLimits {
  /** How long a page is kept to be handed out again; 0: never. */
  ms: number
  entries: number
  /** Of all texts together, as they lie in memory. */
  bytes: number
}

type Known = NonNullable<DownloadRequest['known']>

/**
 * Pages that were read a moment ago, so that their next window needs no download. What is over its bounds goes, least
 * recently used first; a page larger than all of them is not kept.
 */
export interface PageCache {
  /** A later window comes from what the first one came from; a beginning only from what its site calls fresh. */
  find(key: string, wants: 'beginning' | 'continuation'): FetchedPage | undefined
  /** What to ask the site about a page that is held and no longer fresh. */
  known(key: string): Known | undefined
  /** Keeps a page, unless its answer said not to (RFC 9111 5.2.2.5). */
  keep(key: string, page: FetchedPage, head: ResponseHead): void
  /** The site said that the page still stands. Undefined when it was dropped meanwhile. */
  renew(key: string, head: ResponseHead): FetchedPage | undefined
}

interface Entry {
  page: FetchedPage
  bytes: number
  storedAt: number
  freshMs: number
  known: Known | undefined
}

/** An entry that can be asked about is held this many times as long as it may be handed out unasked. */
const KNOWN_FACTOR = 10

export function openPageCache({ ms, entries: mostEntries, bytes: mostBytes }: PageCacheLimits): PageCache {
  const entries = new Map<string, Entry>()
  let held = 0

  const drop = (key: string): void => {
    held -= entries.get(key)?.bytes ?? 0
    entries.delete(key)
  }
  const put = (key: string, entry: Entry): void => {
    drop(key)
    if (entry.bytes > mostBytes) return
    entries.set(key, entry)
    held += entry.bytes
    for (const [oldest] of entries) {
      if (entries.size <= mostEntries && held <= mostBytes) break
      drop(oldest)
    }
  }
  const live = (key: string): Entry | undefined => {
    const entry = entries.get(key)
    if (!entry) return undefined
    if (age(entry) < (entry.known ? ms * KNOWN_FACTOR : ms)) return entry
    drop(key)
    return undefined
  }

  return {
    find(key, wants) {
      const entry = live(key)
      if (!entry || age(entry) >= (wants === 'continuation' ? ms : entry.freshMs)) return undefined
      put(key, entry)
      return { ...entry.page, bytes: 0 }
    },
    known: (key) => live(key)?.known,
    keep(key, page, head) {
      const freshMs = freshness(head, ms)
      if (ms === 0 || freshMs === undefined) drop(key)
      else put(key, { page, bytes: sizeOf(page), storedAt: Date.now(), freshMs, known: knownFrom(head) })
    },
    renew(key, head) {
      const entry = live(key)
      if (!entry) return undefined
      const known = { ...entry.known, ...knownFrom(head), url: entry.page.finalUrl }
      // What a 304 does not say again stands as it was said (RFC 9111 3.2).
      const freshMs = head.header('cache-control') === undefined ? entry.freshMs : (freshness(head, ms) ?? 0)
      put(key, { ...entry, storedAt: Date.now(), freshMs, known })
      return { ...entry.page, bytes: 0 }
    },
  }
}

const age = ({ storedAt }: Entry): number => Date.now() - storedAt

const sizeOf = ({ text, assets }: FetchedPage): number =>
  2 * (text.length + (assets ? JSON.stringify(assets).length : 0)) + 1_024

/** How long an answer may stand for its page; undefined: it must not be kept. */
function freshness({ header }: ResponseHead, mostMs: number): number | undefined {
  const directives = (header('cache-control') ?? '')
    .toLowerCase()
    .split(',')
    .map((each) => each.trim())
  if (directives.includes('no-store')) return undefined
  if (directives.includes('no-cache') || header('vary')?.trim() === '*') return 0
  const maxAge = directives.find((each) => /^max-age="?\d+"?$/.test(each))?.replace(/\D/g, '')
  return maxAge === undefined ? mostMs : Math.min(mostMs, Number(maxAge) * 1_000)
}

function knownFrom({ url, header }: ResponseHead): Known | undefined {
  const [etag, lastModified] = [header('etag'), header('last-modified')]
  if (etag === undefined && lastModified === undefined) return undefined
  return {
    url: url.href,
    ...(etag === undefined ? {} : { etag }),
    ...(lastModified === undefined ? {} : { lastModified }),
  }
}

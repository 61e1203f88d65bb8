import type { GuardOptions, ProxyVariables } from '@tollgate/http'
import type { ExtractLimits } from './extract/job.ts'
import type { PageCacheLimits } from './page-cache.ts'

export interface FetchWorkerSettings {
  /** Pages worked on at once; more wait in the queue. */
  slots: number
  /** Extracting processes, of one thread each. */
  threads: number
  /** The environment's proxies, when the operator said to trust them (F-28). */
  proxies?: ProxyVariables
  /** Exceptions from the guard that the operator made for every fetch (WM-86). */
  guard?: Pick<GuardOptions, 'allowedHosts' | 'denied' | 'nat64Prefixes'>
  /** Ask each site's robots.txt before a page of it is read (BR-153); off when absent. */
  respectRobots?: boolean
  /** Decoded bytes of a body that are read (F-23). */
  maxBodyBytes?: number
  /** Cap on one extracting process (F-25). */
  extractMemoryBytes?: number
  extractLimits?: Partial<ExtractLimits>
  pageCache?: Partial<PageCacheLimits>
  /** Cap on the process that decodes images, and its time for one. */
  imageMemoryBytes?: number
  imageMs?: number
  /** There is a render-worker: `fetch.rendered` is served, with its pages (WM-07). */
  rendered?: boolean
}

export const defaults = {
  maxBodyBytes: 5 * 1024 * 1024,
  /** 256 MiB for the document on top of the process itself and pdf.js. */
  extractMemoryBytes: 400 * 1024 * 1024,
  pageCache: { ms: 60_000, entries: 256, bytes: 32 * 1024 * 1024 },
  maxImageBytes: 10_000_000,
  /** A progressive JPEG of 64 million pixels lies in memory whole. */
  imageMemoryBytes: 640 * 1024 * 1024,
  imageMs: 5_000,
  maxRedirects: 5,
  /** The product token of robots.txt, and the whole name. */
  agent: 'otari-web-retrieval',
  userAgent: 'otari-web-retrieval/1.0',
  accept:
    'text/html, application/xhtml+xml, text/markdown;q=0.9, text/plain;q=0.8, application/pdf;q=0.8, application/json;q=0.8, */*;q=0.5',
  acceptImage: 'image/png, image/jpeg, image/webp, image/gif, */*;q=0.1',
}

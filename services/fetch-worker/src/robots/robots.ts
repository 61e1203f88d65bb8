import type { Download, Downloaded, DownloadRequest, Hop } from '@tollgate/http'
import { openShared } from '../shared.ts'
import { everything, nothing, parseRobots, type RobotsRules } from './rules.ts'

export interface RobotsOptions {
  download: Download
  /** The product token that groups are matched by. */
  agent: string
}

/** Whether the site at a hop lets it be visited, by its robots.txt. */
export type Robots = (hop: Hop, request: DownloadRequest, signal: AbortSignal) => Promise<boolean>

const MAX_BYTES = 500 * 1024
const MAX_REDIRECTS = 5
const TIMEOUT_MS = 3_000
/** How long an answer stands, and a refusal that may have been the site's bad moment. */
const KEEP_MS = { known: 60 * 60_000, unknown: 60_000 }
const MOST_SITES = 1_000

/**
 * Asks each site once for its rules and keeps them for a while; with too many sites, the one asked for longest ago is
 * forgotten. The request for them is judged like any other (BR-153).
 */
export function openRobots({ download, agent }: RobotsOptions): Robots {
  const sites = new Map<string, { rules: RobotsRules; until: number }>()
  const underWay = openShared<RobotsRules>()

  const ask = async (origin: string, request: DownloadRequest, signal: AbortSignal): Promise<RobotsRules> => {
    const { judge, policy, allowDowngrade, direct = false, operationTimeoutMs } = request
    const answer = await download({
      url: `${origin}/robots.txt`,
      judge,
      policy,
      allowDowngrade,
      direct,
      ...(operationTimeoutMs === undefined ? {} : { operationTimeoutMs }),
      accept: 'text/plain, */*;q=0.5',
      maxBytes: MAX_BYTES,
      maxRedirects: MAX_REDIRECTS,
      deadline: Date.now() + TIMEOUT_MS,
      signal,
    })
    const { rules, keepMs } = read(answer, agent)
    sites.delete(origin)
    if (keepMs === 0) return rules
    sites.set(origin, { rules, until: Date.now() + keepMs })
    for (const [oldest] of sites) {
      if (sites.size <= MOST_SITES) break
      sites.delete(oldest)
    }
    return rules
  }

  return async ({ url }, request, signal) => {
    const path = url.pathname + url.search
    if (url.pathname === '/robots.txt') return true
    const known = sites.get(url.origin)
    if (known && known.until > Date.now()) return known.rules(path)
    const rules = await underWay.run(url.origin, signal, (shared) => ask(url.origin, request, shared))
    return rules(path)
  }
}

/** 2xx holds the rules; a file that is not there forbids nothing; where we are locked out or nobody answers, everything is. */
function read(answer: Downloaded, agent: string): { rules: RobotsRules; keepMs: number } {
  if (answer.outcome === 'failed') {
    // Where this call's own rules ended the request, another call's may not.
    const isItself = answer.failure === 'network' || answer.failure === 'timeout'
    return { rules: nothing, keepMs: isItself ? KEEP_MS.unknown : 0 }
  }
  const { status } = answer.head
  if (status >= 200 && status < 300) {
    const text = new TextDecoder().decode(answer.body?.bytes)
    return { rules: parseRobots(text, agent), keepMs: KEEP_MS.known }
  }
  if (status >= 500 || status === 429) return { rules: nothing, keepMs: KEEP_MS.unknown }
  return { rules: status === 401 || status === 403 ? nothing : everything, keepMs: KEEP_MS.known }
}

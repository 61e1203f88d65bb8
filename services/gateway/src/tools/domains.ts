import { type DomainPolicy, Fault } from '@tollgate/contracts'
import { domainCovers, normaliseHost } from '@tollgate/http'
import { isObject } from '../conversation/json.ts'
import type { Json, JsonObject } from '../conversation/turn.ts'

export const MOST_DOMAINS = 100
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/

/** The domain lists of a declaration, which Responses has one level deeper (T-25). An empty allow list is no list, as providers read it. */
export function readDomains(entry: JsonObject): DomainPolicy {
  const filters = isObject(entry.filters) ? entry.filters : {}
  const allowed = readList(entry.allowed_domains ?? filters.allowed_domains)
  const blocked = readList(entry.blocked_domains ?? filters.blocked_domains)
  return { allowedDomains: allowed.length > 0 ? allowed : null, blockedDomains: blocked }
}

function readList(value: Json | undefined): string[] {
  if (value === undefined || value === null) return []
  const hosts = Array.isArray(value) && value.length <= MOST_DOMAINS ? value.map(bareHost) : [undefined]
  if (hosts.every((host) => host !== undefined)) return hosts
  throw new Fault(
    'invalid_request',
    `Web search allowed_domains and blocked_domains must each contain at most ${MOST_DOMAINS} bare valid hostnames`,
  )
}

/** A host name or an address alone, as hosts are compared (W-34); undefined when it is anything else. */
export function bareHost(value: Json): string | undefined {
  if (typeof value !== 'string') return undefined
  const host = normaliseHost(value.trim().replace(/^\./, ''))
  if (host === undefined) return undefined
  return host.includes(':') || host.split('.').every((label) => LABEL.test(label)) ? host : undefined
}

/**
 * Two policies as one that permits only what both do (W-35): of overlapping allow entries the narrower stays, blocks add
 * up. Allow lists with nothing in common are a refusal.
 */
export function narrowDomains(one: DomainPolicy, other: DomainPolicy): DomainPolicy {
  const blockedDomains = [...new Set([...one.blockedDomains, ...other.blockedDomains])]
  if (one.allowedDomains === null || other.allowedDomains === null) {
    return { allowedDomains: one.allowedDomains ?? other.allowedDomains, blockedDomains }
  }
  const allowedDomains = [...covered(one.allowedDomains, other.allowedDomains)]
  if (allowedDomains.length > 0) return { allowedDomains, blockedDomains }
  throw new Fault('forbidden', 'The requested search domains are not permitted for this workspace')
}

function covered(ones: string[], others: string[]): Set<string> {
  const narrower = (entries: string[], by: string[]) =>
    entries.filter((entry) => by.some((wide) => domainCovers(wide, entry)))
  return new Set([...narrower(ones, others), ...narrower(others, ones)])
}

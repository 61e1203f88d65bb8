import { type DomainPolicy, parseUrl } from '@tollgate/contracts'
import { parseAddress, sameAddress } from './addresses.ts'

/**
 * A host as it is compared everywhere: lower case, IDNA-encoded, number forms of IPv4 spelled out, no trailing dot, no
 * brackets. Undefined when it is not a host by itself (a scheme, port, path or wildcard in it, an empty label).
 */
export function normaliseHost(text: string): string | undefined {
  const trimmed = text.trim()
  if (trimmed === '' || /[/?#@\\*\s]/.test(trimmed)) return undefined
  const literal = trimmed.includes(':') && !trimmed.startsWith('[') ? `[${trimmed}]` : trimmed
  const url = parseUrl(`http://${literal}/`)
  if (url?.port !== '' || /:\d*$/.test(literal)) return undefined
  return hostOf(url)
}

/** The host of a parsed URL in the same form; undefined when it has an empty label or is too long for a name (RFC 1035). */
export function hostOf(url: URL): string | undefined {
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '')
  if (host === '' || host.length > 253 || host.split('.').includes('')) return undefined
  return host
}

/** `example.com` stands for itself and every name under it, label by label; an address only for itself (W-34), which a mapped spelling of it is too. */
export function domainCovers(entry: string, host: string): boolean {
  if (entry === host || sameAddress(entry, host)) return true
  return parseAddress(entry) === undefined && parseAddress(host) === undefined && host.endsWith(`.${entry}`)
}

/** Whether a workspace's policy lets a host be visited. An entry that is no host covers nothing. */
export function permitsHost(policy: DomainPolicy, host: string): boolean {
  const covered = (entries: string[]) =>
    entries.some((entry) => {
      const domain = normaliseHost(entry)
      return domain !== undefined && domainCovers(domain, host)
    })
  if (covered(policy.blockedDomains)) return false
  return policy.allowedDomains === null || covered(policy.allowedDomains)
}

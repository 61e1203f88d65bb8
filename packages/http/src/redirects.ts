import { parseUrl } from '@tollgate/contracts'
import { hasForbiddenCharacter } from './guard.ts'

export interface RedirectRules {
  maxRedirects: number
  /** Whether https may lead to http: a rule of the surface, not of the guard. */
  allowDowngrade: boolean
}

/** Where a redirect leads, still to be judged like any first URL; or why it must not be followed. */
export type NextUrl = (current: URL, location: string) => { url: string } | { refused: RedirectRefusal }

/** `too_many`: the chain is longer than allowed or runs in a circle. `not_allowed`: one of its steps. */
export type RedirectRefusal = 'too_many' | 'not_allowed'

const redirectStatuses = new Set([301, 302, 303, 307, 308])

export const isRedirect = (status: number): boolean => redirectStatuses.has(status)

/**
 * Follows one chain: counts its redirects, and refuses one too many, a URL it has been at, a downgrade, and a `Location`
 * that parsers could read in two ways.
 */
export function openChain({ maxRedirects, allowDowngrade }: RedirectRules): NextUrl {
  const visited = new Set<string>()
  return (current, location) => {
    visited.add(withoutFragment(current))
    if (visited.size > maxRedirects) return { refused: 'too_many' }
    const text = utf8(location).trim()
    const next = hasForbiddenCharacter(text) ? undefined : parseUrl(text, current.href)
    if (!next) return { refused: 'not_allowed' }
    if (visited.has(withoutFragment(next))) return { refused: 'too_many' }
    if (current.protocol === 'https:' && next.protocol === 'http:' && !allowDowngrade) return { refused: 'not_allowed' }
    return { url: next.href }
  }
}

const withoutFragment = (url: URL): string => url.href.slice(0, url.href.length - url.hash.length)

/** Servers send raw UTF-8 in `Location`; the HTTP parser hands it over byte by byte. */
function utf8(header: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(header, 'latin1'))
  } catch {
    return header
  }
}

import { parseUrl } from '@tollgate/contracts'

/** An address as it may be shown: without query, fragment and credentials (F-33). Null when it is no web address. */
export function displayUrl(text: unknown): string | null {
  const url = typeof text === 'string' ? parseUrl(text) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') return null
  return `${url.origin}${url.pathname}`
}

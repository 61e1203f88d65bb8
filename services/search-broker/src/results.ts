import { type DomainPolicy, parseUrl, RESULT_TEXT_CHARACTERS, type SearchHit } from '@tollgate/contracts'
import { hostOf, permitsHost } from '@tollgate/http'
import { isoDate } from './dates.ts'
import type { FoundHit } from './providers/provider.ts'
import { clean, clip, oneLine } from './text.ts'

/** Longest URL a page could be fetched by (F-30). */
const MOST_URL_CHARACTERS = 8_192
const MOST_TITLE_CHARACTERS = 300

/**
 * The hits that may be shown, in the provider's order, equal URLs as often as it sent them (SP-22). What is no http(s)
 * URL or lies outside the domains goes first (S-81, BR-080), so that it takes nobody's place among the `count`.
 */
export const admit = (found: readonly FoundHit[], policy: DomainPolicy, count: number): FoundHit[] =>
  found.filter((hit) => mayVisit(policy, hit.url)).slice(0, count)

export function mayVisit(policy: DomainPolicy, text: string): boolean {
  const url = text.length > MOST_URL_CHARACTERS ? undefined : parseUrl(text)
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:') return false
  const host = hostOf(url)
  return host !== undefined && permitsHost(policy, host)
}

/** A hit as it is shown, with `body` under its URL. Without a title its URL stands in for one (BR-073). */
export function showHit(hit: FoundHit, body: string): SearchHit {
  // `new URL` ignores blanks and line breaks that would break the result's layout; its own spelling has none.
  const url = /[\s\p{Cc}]/u.test(hit.url) ? new URL(hit.url).href : hit.url
  const date = hit.date === undefined ? undefined : isoDate(hit.date)
  return {
    title: clip(oneLine(hit.title), MOST_TITLE_CHARACTERS) || clip(url, MOST_TITLE_CHARACTERS),
    url,
    text: clip(clean(body), RESULT_TEXT_CHARACTERS),
    ...(date !== undefined && { date }),
  }
}

import { builtinFetchLabel, type FetchFailed, type FetchFailure, parseUrl, type renderPage } from '@tollgate/contracts'
import type { Response } from 'playwright-core'
import type { z } from 'zod'
import type { Navigation } from './navigation.ts'
import type { PageProxy, Refusal } from './page-proxy.ts'

type Input = z.output<(typeof renderPage)['input']>

const MAX_REDIRECTS = 5

/** The surface's rules for redirects; where they may lead at all is the guard's affair. */
export function judgeChain(chain: string[], { rules }: Input): FetchFailed | undefined {
  if (chain.length - 1 > (rules.maxRedirects ?? MAX_REDIRECTS))
    return failed('redirect_disallowed', { redirect: 'too_many' })
  const isDowngrade = chain.some((url, at) => url.startsWith('http:') && chain[at - 1]?.startsWith('https:'))
  return isDowngrade && !rules.allowDowngrade ? failed('redirect_disallowed', { redirect: 'not_allowed' }) : undefined
}

/** What is wrong with what the page's document came to; undefined: nothing. */
export function judgeAnswer(
  response: Response | Error,
  navigation: Navigation,
  proxy: PageProxy,
): FetchFailed | undefined {
  const chain = navigation.chain()
  const httpStatus = navigation.status()
  const refusal = proxy.refusal(hostOf(chain.at(-1)))
  if (response instanceof Error) {
    if (refusal) return refusalFailed(refusal, chain.length > 1)
    if (httpStatus !== undefined && (httpStatus < 200 || httpStatus > 299)) return failed('http_status', { httpStatus })
    if (/Timeout/.test(response.message)) return failed('timeout')
    return failed(/Download is starting|ERR_ABORTED/.test(response.message) ? 'unsupported_type' : 'network')
  }
  if (response.status() < 200 || response.status() > 299)
    return failed('http_status', { httpStatus: response.status() })
  const contentType = response.headers()['content-type'] ?? 'text/html'
  if (/^(?:text\/|application\/(?:xhtml\+xml|xml|json))/i.test(contentType)) return undefined
  return failed('unsupported_type', { httpStatus: response.status(), declared: { contentType } })
}

const hostOf = (url = ''): string => parseUrl(url)?.hostname ?? ''

function refusalFailed(refusal: Refusal, redirected: boolean): FetchFailed {
  switch (refusal) {
    case 'disallowed':
      return redirected ? failed('redirect_disallowed', { redirect: 'not_allowed' }) : failed('url_disallowed')
    case 'domain':
      return failed('domain_disallowed')
    case 'unresolvable':
      return failed('network', { stage: 'resolve' })
    case 'unreachable':
      return failed('network', { stage: 'connect' })
    case 'requests':
    case 'bytes':
      return failed('too_large')
    default:
      return refusal satisfies never
  }
}

export const failed = (failure: FetchFailure, more: Partial<FetchFailed> = {}): FetchFailed => ({
  status: 'failed',
  failure,
  ...more,
  label: builtinFetchLabel,
})

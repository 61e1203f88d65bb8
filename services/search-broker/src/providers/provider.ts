import type { DomainPolicy, FailureTag, SearchOption, SearchOptionValues } from '@tollgate/contracts'
import type { z } from 'zod'

/** A hit as an adapter reads it: the provider's own words, neither cut nor judged yet. */
export interface FoundHit {
  title: string
  url: string
  snippet: string
  /** Text of the page itself, when the provider sends it; such a hit is not fetched (S-75, SP-21). */
  pageText?: string | undefined
  /** In the provider's own notation. */
  date?: string | undefined
}

export interface ProviderAnswer {
  hits: FoundHit[]
  /** Decimal dollars as the provider reported them for this search; absent when it reports none (P-25). */
  cost?: string | undefined
}

/** One search as a provider is asked for it. */
export interface ProviderSearch {
  query: string
  /** Already within the provider's maximum. */
  count: number
  options: SearchOptionValues
  /** For the provider's own filter where it has one; hits are judged here again in any case (D-20). */
  policy: DomainPolicy
  /** Whether page text would be shown, for providers that send it only when asked. */
  wantsPageText: boolean
}

export interface ProviderAccess {
  apiBase: string
  apiKey: string | undefined
}

export interface ProviderRequest {
  method: 'GET' | 'POST'
  url: URL
  headers: Record<string, string>
  /** Sent as JSON. */
  body?: unknown
}

export interface ProviderOption extends SearchOption {
  /** Taken from the deployment's configuration alone, and shown to its operators alone (S-35). */
  operatorOnly?: true
}

/**
 * What is particular about one search API. An adapter only says how to ask and how to read: it opens no connection, so
 * the rules about redirects, sizes, deadlines and secrets (SP-03, SP-04) hold for every adapter in one place, `ask.ts`.
 */
export interface SearchProvider extends ReplyReader<ProviderAnswer> {
  readonly id: string
  readonly docUrl: string
  readonly requiresApiKey: boolean
  readonly requiresApiBase: boolean
  readonly defaultApiBase?: string
  /** Most hits one request can return; absent when the API has no such number. */
  readonly maxResults?: number
  readonly queryInUrl: boolean
  readonly keyInUrl: boolean
  readonly options: readonly ProviderOption[]
  /** The longest query it takes under these options, in code points; no bound of its own when absent. */
  mostQueryCharacters?(options: SearchOptionValues): number
  request(search: ProviderSearch, access: ProviderAccess): ProviderRequest
}

/** How a provider's replies are read. */
export interface ReplyReader<A> {
  /** Reads a 2xx body; what it refuses is an `invalid_response`. */
  readonly answer: z.ZodType<A>
  /** A failure the status alone does not tell, a 200 included, by the provider's own stable code (S-38). `body` is untrusted JSON. */
  failure?(httpStatus: number, body: unknown): FailureTag | undefined
}

/** A path under an operator's base URL, whose own path stays: `https://host/searx` + `search`. */
export function under(apiBase: string, path: string): URL {
  const url = new URL(apiBase)
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/${path}`
  return url
}

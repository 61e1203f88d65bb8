import type { SearchOptionValues } from '@tollgate/contracts'
import type { ProviderFailure } from '../ask.ts'
import type { ProviderAccess, ProviderOption, ProviderRequest, ReplyReader } from '../providers/provider.ts'

/** A page as an adapter reads it: the provider's own words, neither cut nor cleaned yet. */
export interface ReadPage {
  /** Empty for a page that the provider reports as empty rather than failed (F-45). */
  text: string
  title?: string | undefined
  contentType?: string | undefined
  finalUrl?: string | undefined
  /** Decimal dollars as the provider reported them for this page; absent when it reports none. */
  cost?: string | undefined
}

/** A reply with a 2xx status can still say that its page could not be had. */
export type FetchAnswer = ({ status: 'ok' } & ReadPage) | ProviderFailure

/** One page as a provider is asked for it. */
export interface ProviderFetch {
  url: string
  /** For providers that can be told; the text is cut here in any case (FP-08). */
  maxCharacters: number
  options: SearchOptionValues
}

/** What is particular about one fetch API. As with search, an adapter only says how to ask and how to read (FP-09). */
export interface FetchProvider extends ReplyReader<FetchAnswer> {
  readonly id: string
  readonly docUrl: string
  readonly requiresApiKey: boolean
  readonly defaultApiBase: string
  /** Whether its answer names the address where the page was in the end, which is then judged as well (F-41). */
  readonly reportsFinalUrl: boolean
  readonly options: readonly ProviderOption[]
  request(page: ProviderFetch, access: ProviderAccess): ProviderRequest
}

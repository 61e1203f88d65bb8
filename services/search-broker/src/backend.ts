import type { SearchOptionValues } from '@tollgate/contracts'
import type { FetchInstance } from './fetch/instances.ts'
import type { SearchProvider } from './providers/provider.ts'
import type { Slots } from './slots.ts'

/** Something that can be searched with: an instance, or the legacy settings. */
export interface Backend {
  /** Who served a search, as usage rows name it (P-20). */
  label: string
  /** The instance's name; null for the legacy settings. */
  instance: string | null
  provider: SearchProvider
  apiKey: string | undefined
  /** Undefined for a SearXNG nobody gave an address: it exists, and is refused when it is asked (D-08). */
  apiBase: string | undefined
  timeoutMs: number
  options: SearchOptionValues
  /** Most hits of one search; absent when neither provider nor setting has a limit. */
  mostResults: number | undefined
  /** Whether the pages of its hits are read, and by what: the built-in fetcher where `fetcher` is undefined. */
  pages: { read: boolean; allowPrivateHosts: boolean; fetcher: FetchInstance | undefined }
  slots: Slots
}

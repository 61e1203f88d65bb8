import { otariLabel } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import type { Backend } from './backend.ts'
import { baseProblem } from './entries.ts'
import { deploymentOptions } from './options.ts'
import { brave } from './providers/brave.ts'
import type { SearchProvider } from './providers/provider.ts'
import { searxng } from './providers/searxng.ts'
import { tavily } from './providers/tavily.ts'
import {
  LEGACY_ENGINES,
  LEGACY_MOST_RESULTS,
  LEGACY_TIMEOUT_MS,
  type LegacySettings,
  type SearchBounds,
} from './settings.ts'
import { openSlots } from './slots.ts'

const direct: readonly SearchProvider[] = [tavily, brave]

/**
 * What the settings from before instances search with: a provider with its key, else a URL (S-70); undefined when neither
 * is set. An unknown provider stops the start, half a pair is warned about and counts as none (S-71, CFG-55).
 */
export function legacyBackend(settings: LegacySettings, bounds: SearchBounds, log: Log): Backend | undefined {
  const { provider: id, apiKey, apiBase, url, engines = LEGACY_ENGINES } = settings
  const provider = direct.find((known) => known.id === id)
  if (id !== undefined && !provider) {
    throw new Error(
      `web_search_provider: unknown provider ${id}; there is ${direct.map((known) => known.id).join(', ')}`,
    )
  }
  refuseBase('web_search_url', url, false)
  refuseBase("the search provider's base", apiBase, apiKey !== undefined)
  if ((id === undefined) !== (apiKey === undefined)) {
    const missing = id === undefined ? 'web_search_provider' : 'web_search_provider_api_key'
    log.warn({ missing }, 'only half of the search provider is set; it counts as unset')
  }

  const common = {
    label: otariLabel('web_search'),
    instance: null,
    timeoutMs: LEGACY_TIMEOUT_MS,
    mostResults: LEGACY_MOST_RESULTS,
    // S-75: these are read by the built-in fetcher, whatever fetches for models
    pages: {
      read: settings.extract !== false,
      allowPrivateHosts: settings.allowPrivateHosts === true,
      fetcher: undefined,
    },
    slots: openSlots({ places: bounds.searches, waiting: bounds.waitingSearches }),
  }
  if (provider && apiKey !== undefined) {
    const base = apiBase ?? provider.defaultApiBase
    return { ...common, provider, apiKey, apiBase: base, options: deploymentOptions(provider, {}) }
  }
  if (url === undefined) return undefined
  return {
    ...common,
    provider: searxng,
    apiKey: undefined,
    apiBase: url,
    options: deploymentOptions(searxng, { engines }),
  }
}

function refuseBase(setting: string, base: string | undefined, withKey: boolean): void {
  const problem = base === undefined ? undefined : baseProblem(base, withKey)
  if (problem) throw new Error(`${setting} ${problem}`)
}

import { BUILTIN_FETCH, checkSearchOptions, instanceLabel } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import type { Backend } from './backend.ts'
import type { FetchInstance, FetchInstances } from './fetch/instances.ts'
import { deploymentOptions } from './options.ts'
import { findProvider } from './providers/catalogue.ts'
import type { SearchProvider } from './providers/provider.ts'
import { INSTANCE_TIMEOUT_MS, type SearchBounds, type SearchSettings, type SearchToolSettings } from './settings.ts'
import { openSlots } from './slots.ts'

/** The named instances as they are now. Entries of the config file today; stored ones will join them behind this. */
export interface Instances {
  find(name: string): Backend | undefined
  all(): Backend[]
}

/** Instances of the configuration (CFG-25), whose problems were told before; what works in part is said in the log. */
export function configuredInstances(
  settings: SearchSettings,
  fetchers: FetchInstances,
  bounds: SearchBounds,
  log: Log,
): Instances {
  const backends = new Map(
    Object.entries(settings.searchTools).map(([name, tool]) => [
      name,
      openInstance(name, tool, { settings, fetchers, bounds, log }),
    ]),
  )
  return { find: (name) => backends.get(name), all: () => [...backends.values()] }
}

interface Around {
  settings: SearchSettings
  fetchers: FetchInstances
  bounds: SearchBounds
  log: Log
}

function openInstance(name: string, tool: SearchToolSettings, { settings, fetchers, bounds, log }: Around): Backend {
  const provider = findProvider(tool.provider ?? name) as SearchProvider
  const { accepted, problems } = checkSearchOptions(provider.options, tool.options ?? {})
  for (const problem of problems) log.warn({ tool: name, option: problem.name }, `option left out: ${problem.why}`)
  const apiBase =
    tool.apiBase ?? provider.defaultApiBase ?? (provider.id === 'searxng' ? settings.legacy.url : undefined)
  if (apiBase === undefined) {
    log.warn({ tool: name }, 'the tool has no api_base and no web_search_url to inherit; its searches are refused')
  }
  return {
    label: instanceLabel(provider.id, name),
    instance: name,
    provider,
    apiKey: tool.apiKey,
    apiBase,
    timeoutMs: tool.timeoutMs ?? INSTANCE_TIMEOUT_MS,
    options: deploymentOptions(provider, accepted),
    mostResults: provider.maxResults,
    pages: { read: true, allowPrivateHosts: false, fetcher: pageFetcher(name, tool.fetchTool, fetchers, log) },
    slots: openSlots({ places: bounds.searches, waiting: bounds.waitingSearches }),
  }
}

/** What reads the pages of its hits: its own `fetch_tool`, else what reads pages for models (S-55, FP-02). */
function pageFetcher(
  name: string,
  wanted: string | undefined,
  fetchers: FetchInstances,
  log: Log,
): FetchInstance | undefined {
  if (wanted === undefined) return fetchers.inLoop
  const fetcher = fetchers.find(wanted)
  if (!fetcher && wanted !== BUILTIN_FETCH) {
    log.warn({ tool: name }, 'fetch_tool names no fetch instance; the built-in fetcher reads the pages')
  }
  return fetcher
}

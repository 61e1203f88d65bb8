import { BUILTIN_FETCH, checkSearchOptions, instanceLabel, type SearchOptionValues } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import { INSTANCE_TIMEOUT_MS, type SearchBounds, type SearchSettings, type ToolEntry } from '../settings.ts'
import { openSlots, type Slots } from '../slots.ts'
import { findFetchProvider } from './catalogue.ts'
import type { FetchProvider } from './provider.ts'

/** A named way to have pages fetched by somebody else. */
export interface FetchInstance {
  name: string
  /** Who served a fetch, as usage rows name it (P-20). */
  label: string
  provider: FetchProvider
  apiKey: string | undefined
  apiBase: string
  /** Bounds a call, its wait for a place included (F-44). */
  timeoutMs: number
  options: SearchOptionValues
  slots: Slots
}

export interface FetchInstances {
  find(name: string): FetchInstance | undefined
  all(): FetchInstance[]
  /** What fetches for models, and for searches that name nothing else (FP-02); undefined is the built-in fetcher (F-19). */
  inLoop: FetchInstance | undefined
}

/** Instances of the configuration (CFG-25, FP-01), whose problems were told before. */
export function configuredFetchInstances(
  { fetchTools = {}, webFetchDefaultTool = BUILTIN_FETCH }: SearchSettings,
  bounds: SearchBounds,
  log: Log,
): FetchInstances {
  const instances = new Map(
    Object.entries(fetchTools).map(([name, tool]) => [name, openFetchInstance(name, tool, bounds, log)]),
  )
  const inLoop = instances.get(webFetchDefaultTool)
  if (!inLoop && webFetchDefaultTool !== BUILTIN_FETCH) {
    log.warn(
      { web_fetch_default_tool: webFetchDefaultTool },
      'the default fetch tool names no fetch tool; it counts as unset',
    )
  }
  return { find: (name) => instances.get(name), all: () => [...instances.values()], inLoop }
}

function openFetchInstance(name: string, tool: ToolEntry, bounds: SearchBounds, log: Log): FetchInstance {
  const provider = findFetchProvider(tool.provider ?? name) as FetchProvider
  const { accepted, problems } = checkSearchOptions(provider.options, tool.options ?? {})
  for (const problem of problems) log.warn({ tool: name, option: problem.name }, `option left out: ${problem.why}`)
  return {
    name,
    label: instanceLabel(provider.id, name),
    provider,
    apiKey: tool.apiKey,
    apiBase: tool.apiBase ?? provider.defaultApiBase,
    timeoutMs: tool.timeoutMs ?? INSTANCE_TIMEOUT_MS,
    options: accepted,
    slots: openSlots({ places: bounds.fetches, waiting: bounds.waitingFetches }),
  }
}

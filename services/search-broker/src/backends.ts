import type { Log } from '@tollgate/telemetry'
import type { Backend } from './backend.ts'
import { configuredFetchInstances, type FetchInstances } from './fetch/instances.ts'
import { inLoopDefault, warnOfUnknownDefault } from './in-loop.ts'
import { configuredInstances, type Instances } from './instances.ts'
import { legacyBackend } from './legacy.ts'
import type { SearchBounds, SearchSettings } from './settings.ts'

/** All that the deployment searches and fetches with, as its settings are at one time. */
export interface Backends {
  fetchers: FetchInstances
  instances: Instances
  legacy: Backend | undefined
  /** What a model-initiated search runs on. */
  inLoop(): Backend | undefined
  /** Hits of a search that names no number (S-33). */
  defaultResults: number | undefined
}

/** Opens them anew. What stood before under the same name keeps its places: a bound is one of all calls under way. */
export function openBackends(settings: SearchSettings, bounds: SearchBounds, log: Log, before?: Backends): Backends {
  const fetchers = configuredFetchInstances(settings, bounds, log)
  const instances = configuredInstances(settings, fetchers, bounds, log)
  const legacy = legacyBackend(settings.legacy, bounds, log)
  warnOfUnknownDefault(settings.webSearchDefaultTool, instances, log)

  for (const one of fetchers.all()) keepPlaces(one, before?.fetchers.find(one.name))
  for (const one of instances.all()) keepPlaces(one, before?.instances.find(one.instance ?? ''))
  if (legacy) keepPlaces(legacy, before?.legacy)
  return {
    fetchers,
    instances,
    legacy,
    inLoop: () => inLoopDefault(settings.webSearchDefaultTool, legacy, instances),
    defaultResults: settings.webSearchMaxResults,
  }
}

function keepPlaces(one: Pick<Backend, 'slots'>, before: Pick<Backend, 'slots'> | undefined): void {
  one.slots = before?.slots ?? one.slots
}

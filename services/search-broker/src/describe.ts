import type { FetchProviderEntry, SearchProviderEntry, searchDescribe } from '@tollgate/contracts'
import type { z } from 'zod'
import type { Backends } from './backends.ts'
import { fetchProviders } from './fetch/catalogue.ts'
import type { FetchProvider } from './fetch/provider.ts'
import { openOptions } from './options.ts'
import { providers } from './providers/catalogue.ts'
import type { SearchProvider } from './providers/provider.ts'

/** Member by member, so that what is added to a backend is secret until somebody decides otherwise. */
export function describe({ instances, fetchers, ...backends }: Backends): z.input<(typeof searchDescribe)['output']> {
  const inLoop = backends.inLoop()
  return {
    instances: [
      ...instances
        .all()
        .flatMap(({ instance, provider, mostResults }) =>
          instance === null
            ? []
            : [{ name: instance, kind: 'search' as const, provider: provider.id, ...number(mostResults) }],
        ),
      ...fetchers.all().map(({ name, provider }) => ({ name, kind: 'fetch' as const, provider: provider.id })),
    ],
    providers: providers.map(describeProvider),
    inLoop: inLoop
      ? {
          kind: inLoop.instance === null ? 'legacy' : 'instance',
          label: inLoop.label,
          instance: inLoop.instance,
          provider: inLoop.provider.id,
        }
      : null,
    fetchProviders: fetchProviders.map(describeFetchProvider),
    inLoopFetch: fetchers.inLoop
      ? { label: fetchers.inLoop.label, instance: fetchers.inLoop.name, provider: fetchers.inLoop.provider.id }
      : null,
  }
}

const describeProvider = (provider: SearchProvider): SearchProviderEntry => ({
  id: provider.id,
  docUrl: provider.docUrl,
  requiresApiKey: provider.requiresApiKey,
  requiresApiBase: provider.requiresApiBase,
  ...(provider.defaultApiBase !== undefined && { defaultApiBase: provider.defaultApiBase }),
  ...number(provider.maxResults),
  queryInUrl: provider.queryInUrl,
  keyInUrl: provider.keyInUrl,
  options: openOptions(provider).map(({ operatorOnly: _, ...option }) => option),
})

const describeFetchProvider = (provider: FetchProvider): FetchProviderEntry => ({
  id: provider.id,
  docUrl: provider.docUrl,
  requiresApiKey: provider.requiresApiKey,
  defaultApiBase: provider.defaultApiBase,
  reportsFinalUrl: provider.reportsFinalUrl,
  options: openOptions(provider).map(({ operatorOnly: _, ...option }) => option),
})

const number = (maxResults: number | undefined) => (maxResults === undefined ? {} : { maxResults })

import type { SearchProviderEntry, searchDescribe } from '@tollgate/contracts'
import type { z } from 'zod'
import type { Backend } from './backend.ts'
import { openOptions } from './options.ts'
import { providers } from './providers/catalogue.ts'
import type { SearchProvider } from './providers/provider.ts'

/** Member by member, so that what is added to a backend is secret until somebody decides otherwise. */
export const describe = (
  instances: Backend[],
  inLoop: Backend | undefined,
): z.input<(typeof searchDescribe)['output']> => ({
  instances: instances.flatMap(({ instance, provider, mostResults }) =>
    instance === null ? [] : [{ name: instance, kind: 'search', provider: provider.id, ...number(mostResults) }],
  ),
  providers: providers.map(describeProvider),
  inLoop: inLoop
    ? {
        kind: inLoop.instance === null ? 'legacy' : 'instance',
        label: inLoop.label,
        instance: inLoop.instance,
        provider: inLoop.provider.id,
      }
    : null,
})

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

const number = (maxResults: number | undefined) => (maxResults === undefined ? {} : { maxResults })

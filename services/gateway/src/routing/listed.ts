import type { Discovery } from '../models/discovery.ts'
import type { ModelRegistry } from '../models/registry.ts'
import type { ListedModel } from '../routes/models.ts'
import type { Routing } from './routing.ts'

/**
 * Everything that a request's `model` may name, as far as it is known: policies and aliases, then the models of each
 * provider, those that the operator lists or, where none are, those that the provider says it has.
 */
export function listedModels(models: ModelRegistry, routing: Routing, discovery: Discovery): ListedModel[] {
  const named = routing.names().map(({ name, candidates }) => ({ id: name, provider: 'tollgate', candidates }))
  const each = models.instances().flatMap(({ name, models: listed }): ListedModel[] => {
    if (listed.length > 0) return listed.map((model) => ({ id: `${name}:${model}`, provider: name }))
    return discovery.of(name).map(({ model, ...known }) => ({ id: `${name}:${model}`, provider: name, ...known }))
  })
  const seats = models.seats().map(({ name, selector, settings }): ListedModel => {
    const { context_window: contextTokens } = settings
    const known = contextTokens === undefined ? {} : { contextTokens }
    return { id: name, provider: 'tollgate', candidates: [selector], seat: settings, ...known }
  })
  return [...named, ...seats, ...each]
}

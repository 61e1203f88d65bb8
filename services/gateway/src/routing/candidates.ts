import { Fault } from '@tollgate/contracts'
import { permits } from '../auth/allowed-models.ts'
import type { Identity } from '../auth/identity.ts'
import type { Dialect } from '../conversation/turn.ts'
import type { Candidate } from '../loop/chain.ts'
import type { ModelRegistry } from '../models/registry.ts'
import type { Route } from './routing.ts'

/**
 * The models that a request may try. What the key's list names is what is really called: a candidate that it does
 * not let through is passed over, and only with none left is the request refused. Names that resolve to nothing are
 * refused after that, so that a key learns of no provider it may not use.
 */
export function candidatesOf(
  { candidates, policy }: Route,
  asked: string,
  { allowedModels }: Pick<Identity, 'allowedModels'>,
  models: Pick<ModelRegistry, 'resolve' | 'selectorOf'>,
  dialect: Dialect,
): Candidate[] {
  const allowed = (selector: string) => permits(allowedModels, models.selectorOf(selector))
  if (!candidates.some(allowed)) throw notPermitted(asked)
  if (policy === undefined) return candidates.map((selector) => models.resolve(selector, dialect))
  return candidates.map((selector) => {
    const resolved = models.resolve(selector, dialect)
    return allowed(selector) ? resolved : { ...resolved, refused: notPermitted(selector) }
  })
}

const notPermitted = (model: string): Fault =>
  new Fault('forbidden', `Model '${model}' is not permitted for this API key.`)

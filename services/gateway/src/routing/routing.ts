import type { FailureKind } from '../models/failure-kind.ts'
import type { ModelRegistry } from '../models/registry.ts'
import { drawOrder } from './order.ts'

/** One entry of `routing` in the config. */
export interface RoutingPolicy {
  /** In the order they are tried: `provider:model`, with a weight where several share a place. */
  candidates: readonly { model: string; weight?: number | undefined }[]
  /** Failures after which the next candidate is asked. */
  retryOn: readonly FailureKind[]
  /** How long a candidate rests that failed several times in a row; 0 lets none rest. Undefined: the usual time. */
  coolDownMs?: number | undefined
  /** What each candidate has to begin its answer; undefined: what is left of the request's time. */
  attemptTimeoutMs?: number | undefined
}

export interface RoutingSettings {
  policies: Readonly<Record<string, RoutingPolicy>>
  /** Other names: of a selector or of a policy. */
  aliases: Readonly<Record<string, string>>
}

/** What a request's `model` stands for. */
export interface Route {
  /** The policy's name; undefined for a selector. */
  policy: string | undefined
  /** Selectors, in the order in which this request tries them. */
  candidates: readonly string[]
  rules: RouteRules
}

export type RouteRules = Pick<RoutingPolicy, 'coolDownMs' | 'attemptTimeoutMs'> & {
  /** Undefined: all of them. */
  retryOn?: ReadonlySet<FailureKind> | undefined
}

export interface Routing {
  /** A name that stands for nothing is taken as a selector, which the registry judges. */
  route(model: string): Route
  policies: ReadonlyMap<string, RoutingPolicy>
  aliasesOf(policy: string): string[]
  /** Every name that may stand where a selector does, with the selectors behind it in their written order. */
  names(): { name: string; candidates: string[] }[]
}

export const noRouting: RoutingSettings = { policies: {}, aliases: {} }

/** Reads the policies and aliases of the deployment; one that leads nowhere stops the start. */
export function openRouting(
  { policies: given, aliases: named }: RoutingSettings,
  models: Pick<ModelRegistry, 'resolve'> & { seats(): readonly { name: string }[] },
  random: () => number = Math.random,
): Routing {
  const policies = new Map(Object.entries(given))
  const aliases = new Map(Object.entries(named))
  for (const [name, { candidates }] of policies)
    for (const { model } of candidates) mustResolve(models, `routing.${name}`, model)
  for (const { name } of models.seats())
    if (policies.has(name) || aliases.has(name))
      throw new Error(`models.${name}: a policy or an alias has the same name`)
  for (const [name, target] of aliases) {
    if (policies.has(name)) throw new Error(`model_aliases.${name}: a routing policy has the same name`)
    if (!policies.has(target)) mustResolve(models, `model_aliases.${name}`, target)
  }

  return {
    policies,
    route(model) {
      const target = aliases.get(model) ?? model
      const policy = policies.get(target)
      if (policy === undefined) return { policy: undefined, candidates: [target], rules: {} }
      const { retryOn, coolDownMs, attemptTimeoutMs } = policy
      return {
        policy: target,
        candidates: drawOrder(policy.candidates, random).map((candidate) => candidate.model),
        rules: { retryOn: new Set(retryOn), coolDownMs, attemptTimeoutMs },
      }
    },
    aliasesOf: (policy) => Array.from(aliases).flatMap(([name, target]) => (target === policy ? [name] : [])),
    names: () => [
      ...Array.from(policies, ([name, { candidates }]) => ({ name, candidates: candidates.map(({ model }) => model) })),
      ...Array.from(aliases, ([name, target]) => ({
        name,
        candidates: policies.get(target)?.candidates.map(({ model }) => model) ?? [target],
      })),
    ],
  }
}

function mustResolve(models: Pick<ModelRegistry, 'resolve'>, setting: string, selector: string): void {
  try {
    models.resolve(selector)
  } catch (cause) {
    throw new Error(`${setting}: '${selector}' is neither provider:model of a configured provider nor a policy`, {
      cause,
    })
  }
}

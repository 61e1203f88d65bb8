import type { Fault, PriceKey } from '@tollgate/contracts'
import type { ModelProvider } from '../models/provider.ts'
import type { ResolvedModel } from '../models/registry.ts'
import type { Capabilities } from '../tools/capabilities.ts'
import type { Plan } from './plan.ts'

/** A model that a request may try. */
export interface Candidate extends ResolvedModel {
  /** Why the key may not have it tried. */
  refused?: Fault
}

/** A candidate that this gateway does not ask: a policy or a price refuses what it would run here (X-17, S-13). */
export interface PassedOver {
  number: number
  provider: { readonly name: string }
  model: string
  refused: Fault
}

export interface Attempt {
  /** Its place among the candidates. */
  number: number
  provider: ModelProvider
  model: string
  plan: Plan
}

/** The candidates of a request, as they were planned. */
export type Chain = readonly (Attempt | PassedOver)[]

export const askedOf = (chain: Chain): Attempt[] => chain.filter((attempt) => 'plan' in attempt)

/** With nobody left to ask, the refusal is the answer: the first one's, should they differ. */
export function whyNone(chain: readonly (object | PassedOver)[]): Error {
  const refusals = chain.flatMap((attempt) => ('refused' in attempt ? [attempt.refused] : []))
  return refusals[0] ?? new Error('a request was admitted without a model to answer it')
}

/** Every tool any attempt may run and that has a price, in declaration order, so that the first without a price is the one named (P-19). */
export function pricedTools(attempts: Attempt[], capabilities: Capabilities): { tool: string; keys: PriceKey[] }[] {
  const tools = attempts.flatMap(({ plan: { owned } }) => Array.from(owned.values(), ({ tool }) => tool))
  const priced = [...new Set(tools)].map((tool) => ({ tool: tool.name, keys: tool.priceKeys(capabilities) }))
  return priced.filter(({ keys }) => keys.length > 0)
}

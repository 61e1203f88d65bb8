import type { Bus } from '@tollgate/bus'
import { billingQuote, Fault, type PriceKey } from '@tollgate/contracts'
import type { ModelProvider } from '../models/provider.ts'
import type { TurnRequest } from './admission.ts'
import { type PassedOver, whyNone } from './chain.ts'
import { modelKeys } from './tally.ts'

const QUOTE_MS = 10_000

/** As much of an attempt as its price takes. */
interface Priced {
  number: number
  provider: ModelProvider
  model: string
}

interface Asking<A> extends Pick<TurnRequest, 'tenancy' | 'budgetExempt' | 'deadline'> {
  estimate: { inputTokens: number; outputTokens: number }
  toolsOf(attempt: A): { tool: string; keys: PriceKey[] }[]
}

const isAsked = <A extends Priced>(attempt: A | PassedOver): attempt is A => !('refused' in attempt)

/**
 * A chain without the candidates that nothing prices (S-13, X-17), and the one of the others that would cost most: what is
 * set aside must do for whichever answers. One candidate alone needs no such look: its reservation is refused.
 */
export async function priceChain<A extends Priced>(
  bus: Bus,
  chain: readonly (A | PassedOver)[],
  asking: Asking<A>,
): Promise<{ attempts: readonly (A | PassedOver)[]; dearest: A }> {
  const [only, ...more] = chain.filter((attempt) => isAsked<A>(attempt))
  if (only === undefined) throw whyNone(chain)
  if (more.length === 0) return { attempts: chain, dearest: only }
  const { attempts, costOf } = await quoteChain(bus, chain, asking)
  const [first, ...others] = attempts.filter((attempt) => isAsked<A>(attempt))
  if (first === undefined) throw whyNone(attempts)
  return { attempts, dearest: others.reduce((most, other) => (costOf(other) > costOf(most) ? other : most), first) }
}

/** The chain with every candidate that nothing prices passed over, and what each would cost by the estimate. */
export async function quoteChain<A extends Priced>(
  bus: Bus,
  chain: readonly (A | PassedOver)[],
  { tenancy, budgetExempt, deadline, estimate, toolsOf }: Asking<A>,
): Promise<{ attempts: readonly (A | PassedOver)[]; costOf(attempt: A): bigint }> {
  const asks = chain.filter((attempt) => isAsked<A>(attempt))
  const { candidates } = await bus.call(
    billingQuote,
    {
      tenancy,
      candidates: asks.map((attempt) => ({
        modelKeys: modelKeys({ name: attempt.model, provider: attempt.provider.name }),
        tools: toolsOf(attempt),
      })),
      estimate,
      budgetExempt,
    },
    { deadline: Math.min(deadline, Date.now() + QUOTE_MS) },
  )
  const quotes = new Map(asks.map(({ number }, at) => [number, candidates[at]]))
  return {
    attempts: chain.map((attempt) => {
      const refusal = quotes.get(attempt.number)?.refusal
      if (typeof refusal !== 'string') return attempt
      const { number, provider, model } = attempt
      return { number, provider, model, refused: new Fault('pricing_required', refusal) }
    }),
    costOf: ({ number }) => BigInt(quotes.get(number)?.estimate ?? '0'),
  }
}

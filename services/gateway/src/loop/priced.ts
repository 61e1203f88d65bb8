import type { Bus } from '@tollgate/bus'
import { billingQuote, Fault } from '@tollgate/contracts'
import type { Capabilities } from '../tools/capabilities.ts'
import type { TurnRequest } from './admission.ts'
import { type Attempt, askedOf, type Chain, pricedTools, whyNone } from './chain.ts'
import { modelKeys } from './tally.ts'

const QUOTE_MS = 10_000

interface Asking extends Pick<TurnRequest, 'tenancy' | 'budgetExempt' | 'deadline'> {
  capabilities: Capabilities
  estimate: { inputTokens: number; outputTokens: number }
}

/**
 * A chain without the candidates that nothing prices (S-13, X-17), and the one of the others that would cost most: what is
 * set aside must do for whichever answers. One candidate alone needs no such look: its reservation is refused.
 */
export async function priceChain(
  bus: Bus,
  chain: Chain,
  { tenancy, budgetExempt, deadline, capabilities, estimate }: Asking,
): Promise<{ attempts: Chain; dearest: Attempt }> {
  const asks = askedOf(chain)
  const [only] = asks
  if (only === undefined) throw whyNone(chain)
  if (asks.length === 1) return { attempts: chain, dearest: only }

  const { candidates } = await bus.call(
    billingQuote,
    {
      tenancy,
      candidates: asks.map((attempt) => ({
        modelKeys: modelKeys({ name: attempt.model, provider: attempt.provider.name }),
        tools: pricedTools([attempt], capabilities),
      })),
      estimate,
      budgetExempt,
    },
    { deadline: Math.min(deadline, Date.now() + QUOTE_MS) },
  )
  const quotes = new Map(asks.map((attempt, at) => [attempt.number, candidates[at]]))
  const attempts = chain.map((attempt) => {
    const refusal = quotes.get(attempt.number)?.refusal
    if (typeof refusal !== 'string') return attempt
    const { number, provider, model } = attempt
    return { number, provider, model, refused: new Fault('pricing_required', refusal) }
  })
  const [first, ...others] = askedOf(attempts)
  if (first === undefined) throw whyNone(attempts)
  const costOf = ({ number }: Attempt): bigint => BigInt(quotes.get(number)?.estimate ?? '0')
  const dearest = others.reduce((most, other) => (costOf(other) > costOf(most) ? other : most), first)
  return { attempts, dearest }
}

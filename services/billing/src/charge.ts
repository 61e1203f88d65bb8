import {
  type BreakdownLine,
  type Cost,
  costAtPrice,
  instanceLabel,
  type PriceKey,
  rateOf,
  type TokenCounts,
} from '@tollgate/contracts'
import { capped, costText, rateText } from './amounts.ts'
import type { Price, Prices } from './price-table.ts'
import { type Call, foldCalls, type PricedLine, type ToolCharge } from './tool-charges.ts'

/** Everything that decides what a request costs. */
export interface Work {
  provider: string
  model: string
  priceKeys: PriceKey[]
  tokens: TokenCounts
  /** True when the upstream counted nothing and the tokens are our estimate. */
  estimated: boolean
  calls: Call[]
  beganAt: Date
  endedAt: Date
}

export interface Charge {
  /** Null when there was something to price and no price for any of it (P-64). */
  cost: Cost | null
  breakdown: BreakdownLine[]
  meters: Record<string, unknown>
  /** What was charged by tool, the tokens under `tokens`; only for counting. */
  byTool: Map<string, Cost>
}

/** Costs are counted under this name when they are a model's tokens. */
export const TOKENS = 'tokens'

/** What a request costs and how that is made up: one line a token meter, one a tool and label (P-21). Pure. */
export function chargeFor(work: Work, prices: Prices): Charge {
  const tokens = tokenLines(work, prices)
  const tools = foldCalls(work.calls, (keys) => prices.ofTool(keys, work))
  const breakdown = [...tokens, ...tools.lines]
  const byTool = tools.costs
  const tokenCost = sum(tokens)
  if (tokenCost !== null) byTool.set(TOKENS, tokenCost)
  return { cost: sum(breakdown), breakdown: breakdown.map(shown), meters: meters(work, tools.meters), byTool }
}

function tokenLines({ provider, model, priceKeys, tokens, ...span }: Work, prices: Prices): PricedLine[] {
  const counted = tokenMeters.filter(({ count }) => tokens[count] > 0)
  if (counted.length === 0) return []
  const price = prices.ofModel(priceKeys, span)
  const label = instanceLabel(provider, model)
  return counted.map(({ meter, count, rate }) => {
    const units = tokens[count]
    return { meter, label, units, cost: price ? capped(costAtPrice(rate(price), BigInt(units))) : null }
  })
}

/**
 * Reasoning tokens are part of the output. A cache without a price of its own costs what input costs, so that a row
 * with two prices never serves tokens for nothing.
 */
const tokenMeters: { meter: string; count: keyof TokenCounts; rate: (price: Price) => bigint }[] = [
  { meter: 'input_tokens', count: 'input', rate: ({ input }) => input },
  { meter: 'output_tokens', count: 'output', rate: ({ output }) => output },
  { meter: 'cache_read_tokens', count: 'cacheRead', rate: ({ cacheRead, input }) => cacheRead ?? input },
  { meter: 'cache_write_tokens', count: 'cacheWrite', rate: ({ cacheWrite, input }) => cacheWrite ?? input },
]

/** Nothing to price costs nothing; something that nothing priced has no cost. */
function sum(lines: PricedLine[]): Cost | null {
  if (lines.length === 0) return 0n
  const priced = lines.flatMap(({ cost }) => (cost === null ? [] : [cost]))
  return priced.length === 0 ? null : capped(priced.reduce((total, cost) => total + cost, 0n))
}

function shown({ meter, label, units, cost }: PricedLine): BreakdownLine {
  if (cost === null) return { meter, label, units, unitRate: null, cost: null }
  return { meter, label, units, unitRate: rateText(rateOf(cost, BigInt(units))), cost: costText(cost) }
}

/** Counts that have no place in a row's columns; those of tools lie under `tools`, where no name can be taken for one. */
function meters({ tokens, estimated }: Work, tools: Record<string, ToolCharge>): Record<string, unknown> {
  return {
    ...(tokens.cacheRead > 0 ? { cache_read_tokens: tokens.cacheRead } : {}),
    ...(tokens.cacheWrite > 0 ? { cache_write_tokens: tokens.cacheWrite } : {}),
    ...(tokens.reasoning > 0 ? { reasoning_tokens: tokens.reasoning } : {}),
    ...(estimated ? { estimated } : {}),
    ...(Object.keys(tools).length > 0 ? { tools } : {}),
  }
}

import {
  type Cost,
  otariLabel,
  type PriceKey,
  parseDecimal,
  rateOf,
  type ToolLine,
  unitRate,
} from '@tollgate/contracts'
import { EXACT_PLACES, type Exact, exactRate, rateText, roundToCost } from './amounts.ts'
import type { Price } from './price-table.ts'

export type Call = Pick<ToolLine, 'tool' | 'label' | 'priceKeys' | 'outcome' | 'reportedCost' | 'resultTokens'>

/** What `billing_meters.tools.<name>` holds (P-23). */
export interface ToolCharge {
  billed: number
  errors: number
  unit_rate: string | null
  /** Tokens of results, where a backend told: for information, since the tokens of the rounds hold them (PE-28). */
  result_tokens?: number
}

/** A line of the breakdown before it is text. */
export interface PricedLine {
  meter: string
  label: string
  units: number
  cost: Cost | null
}

/** Most tools named in one row. MCP servers choose their tools' names, so the rest share one. */
const MOST_NAMES = 32
const OTHER = '_other'
const ownTools: ReadonlySet<string> = new Set(['web_search', 'web_fetch', 'code_execution'])

interface Tally {
  tool: string
  label: string
  billed: number
  errors: number
  /** Undefined until one of the calls had a price. */
  amount: Exact | undefined
}

/**
 * One line for each tool and label that had a successful call, and the counts by tool. Failed calls are counted and cost
 * nothing (P-10). A line has a cost as soon as one of its calls has a price.
 */
export function foldCalls(calls: Call[], priceOf: (keys: PriceKey[]) => Price | undefined) {
  const named = namedTools(calls)
  const tallies = tallyCalls(calls, named, priceOf)
  const lines = tallies
    .filter(({ billed }) => billed > 0)
    .map(({ tool, label, billed, amount }): PricedLine => {
      return { meter: `${tool}_calls`, label, units: billed, cost: amount === undefined ? null : roundToCost(amount) }
    })
  const costs = new Map<string, Cost>()
  const meters = new Map<string, ToolCharge>()
  for (const tool of new Set(tallies.map((tally) => tally.tool))) {
    const own = tallies.filter((tally) => tally.tool === tool)
    const priced = own.flatMap(({ amount }) => (amount === undefined ? [] : [roundToCost(amount)]))
    const billed = own.reduce((count, tally) => count + tally.billed, 0)
    const cost = priced.reduce((total, each) => total + each, 0n)
    if (priced.length > 0) costs.set(tool, cost)
    const told = calls.flatMap((call) => (nameOf(call, named) === tool ? (call.resultTokens ?? []) : []))
    meters.set(tool, {
      billed,
      errors: own.reduce((count, tally) => count + tally.errors, 0),
      unit_rate: priced.length > 0 ? rateText(rateOf(cost, BigInt(billed))) : null,
      ...(told.length > 0 && { result_tokens: told.reduce((sum, tokens) => sum + tokens, 0) }),
    })
  }
  return { lines, costs, meters: Object.fromEntries(meters) }
}

function tallyCalls(
  calls: Call[],
  named: ReadonlySet<string>,
  priceOf: (keys: PriceKey[]) => Price | undefined,
): Tally[] {
  const tallies = new Map<string, Tally>()
  for (const call of calls) {
    const tool = nameOf(call, named)
    const label = tool === OTHER ? otariLabel(OTHER) : call.label
    const place = JSON.stringify([tool, label])
    const tally = tallies.get(place) ?? { tool, label, billed: 0, errors: 0, amount: undefined }
    tallies.set(place, tally)
    if (call.outcome === 'error') {
      tally.errors++
      continue
    }
    tally.billed++
    const amount = amountOf(call, priceOf)
    if (amount !== undefined) tally.amount = (tally.amount ?? 0n) + amount
  }
  return [...tallies.values()]
}

const nameOf = ({ tool }: Call, named: ReadonlySet<string>): string => (named.has(tool) ? tool : OTHER)

/** Reported cost first, zero included; else the first row that has a price (P-06). */
function amountOf(call: Call, priceOf: (keys: PriceKey[]) => Price | undefined): Exact | undefined {
  if (call.reportedCost !== undefined) return parseDecimal(call.reportedCost, EXACT_PLACES)
  const price = priceOf(call.priceKeys)
  return price && exactRate(unitRate(price.input))
}

/** Our own tools always keep their names; others as they come, while there is room. */
function namedTools(calls: Call[]): Set<string> {
  const named = new Set(calls.map(({ tool }) => tool).filter((tool) => ownTools.has(tool)))
  for (const { tool } of calls) if (named.size < MOST_NAMES) named.add(tool)
  return named
}

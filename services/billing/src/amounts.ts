import { type Cost, divideHalfUp, type Rate } from '@tollgate/contracts'

/**
 * Dollars at 18 places, as fine as any amount a provider may report. Calls are added up here, where nothing is lost, and
 * rounded once, when their line is a `Cost` (P-11).
 */
export type Exact = bigint
export const EXACT_PLACES = 18

const RATE_UNIT = 10n ** 10n
const COST_UNIT = 10n ** 12n

/** The most a column holds: nine trillion dollars. More is the mistake of whoever counted or reported, and stays here. */
const MOST: Cost = 2n ** 63n - 1n
export const capped = (cost: Cost): Cost => (cost > MOST ? MOST : cost)

export const exactRate = (rate: Rate): Exact => rate * RATE_UNIT
export const roundToCost = (amount: Exact): Cost => capped(divideHalfUp(amount, COST_UNIT))

/** Usage rows show every place there is: a cost has 6, a rate 8. */
export const costText = (cost: Cost): string => fixed(cost, 6)
export const rateText = (rate: Rate): string => fixed(rate, 8)

function fixed(value: bigint, places: number): string {
  const digits = value.toString().padStart(places + 1, '0')
  return `${digits.slice(0, -places)}.${digits.slice(-places)}`
}

import { formatDecimal, parseDecimal } from '@tollgate/contracts'

/** Places kept of a reported cost: all a decimal text of a message may have. Rounding is billing's, once, at the end (P-11). */
export const COST_DIGITS = 18

/** Sum of reported costs; undefined when nobody reported one, which is not the same as zero (P-67, SP-14). */
export function sumCosts(costs: readonly (string | undefined)[]): string | undefined {
  const reported = costs.filter((cost) => cost !== undefined)
  if (reported.length === 0) return undefined
  return formatDecimal(
    reported.reduce((sum, cost) => sum + parseDecimal(cost, COST_DIGITS), 0n),
    COST_DIGITS,
  )
}

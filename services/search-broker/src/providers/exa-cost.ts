import { formatDecimal, numberText, parseDecimal } from '@tollgate/contracts'
import { z } from 'zod'
import { COST_DIGITS } from '../costs.ts'

/** What an Exa call cost, as decimal dollars; a missing or odd member is an unknown cost, zero is a cost (P-67, SP-14). */
export const costDollars = z
  .object({ total: z.number().nonnegative().max(10_000) })
  .optional()
  .catch(undefined)
  .transform((cost) => cost && formatDecimal(parseDecimal(numberText(cost.total), COST_DIGITS), COST_DIGITS))

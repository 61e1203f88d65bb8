import { type billingReserve, Fault } from '@tollgate/contracts'
import type { z } from 'zod'
import type { Prices, Span } from './price-table.ts'

export type Reservation = z.output<typeof billingReserve.input>

/**
 * The refusal of work that nothing prices, or undefined. Looks for the rows that settlement would use (P-16); of several
 * tools the first declared is named (P-19), a tool before the model.
 */
export function pricingRefusal(
  { tools, modelKeys }: Pick<Reservation, 'tools' | 'modelKeys'>,
  prices: Prices,
  span: Span,
): Fault | undefined {
  const tool = tools.find(({ keys }) => !prices.ofTool(keys, span))
  if (tool) return new Fault('pricing_required', toolText(tool.tool))
  const [own] = modelKeys
  if (own && !prices.ofModel(modelKeys, span)) return new Fault('pricing_required', modelText(own.key))
  return undefined
}

/** P-17: the row it names prices the tool on any instance. */
const toolText = (tool: string): string =>
  `The gateway tool '${tool}' has no pricing, and this gateway runs with require_pricing enabled, so it will not run ` +
  `work it cannot bill. Set a per-request price for model_key 'otari:${tool}' (POST /api/v1/pricing, or the dashboard's ` +
  `Tools & Guardrails screen), or set require_pricing to false to serve it unpriced.`

const modelText = (key: string): string =>
  `The model '${key}' has no pricing, and this gateway runs with require_pricing enabled. Set a price for model_key ` +
  `'${key}' (POST /api/v1/pricing), or set require_pricing to false to serve it unpriced.`

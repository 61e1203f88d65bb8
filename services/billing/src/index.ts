export { type BillingNeeds, startBilling } from './billing.ts'
export type { ConfiguredPrice } from './configured-prices.ts'

import { z } from 'zod'
import { decimalText } from './money.ts'
import { rpc } from './rpc.ts'
import { tenancy } from './tenancy.ts'
import { priceKey } from './usage.ts'

/** A tool the request may run here, and the rows that settlement would price it with (P-16). */
export const neededPrice = z.object({ tool: z.string(), keys: z.array(priceKey).min(1) })

/**
 * Checks prices and budgets and writes the hold, in one step, before any model is called. Idempotent by request id.
 * Fails `pricing_required` (P-15), `over_budget` or `insufficient_funds` (P-43).
 */
export const billingReserve = rpc({
  subject: 'tg.v1.billing.reserve',
  delivery: 'direct',
  idempotent: true,
  input: z.object({
    tenancy,
    endpoint: z.string(),
    model: z.string(),
    provider: z.string(),
    /** Rows that price the model's tokens, first match wins. */
    modelKeys: z.array(priceKey),
    /** Tools in declaration order: the first without a price is the one named (P-19). */
    tools: z.array(neededPrice),
    /** Estimate behind the reservation: input is about characters / 4. */
    estimate: z.object({ inputTokens: z.int().nonnegative(), outputTokens: z.int().nonnegative() }),
    /** A key exempt from budgets is not refused for want of a price (P-18). */
    budgetExempt: z.boolean(),
    /** Epoch milliseconds after which a hold without settlement is swept. */
    endsAt: z.int(),
  }),
  output: z.object({ hold: z.string() }),
})

/**
 * What each candidate of a fallback chain would cost by the estimate, and why one may not be asked: nothing prices its
 * model or a tool it would run (S-13, X-17). Reserves nothing.
 */
export const billingQuote = rpc({
  subject: 'tg.v1.billing.quote',
  delivery: 'direct',
  idempotent: true,
  input: billingReserve.input.pick({ tenancy: true, estimate: true, budgetExempt: true }).extend({
    candidates: z.array(billingReserve.input.pick({ modelKeys: true, tools: true })).max(64),
  }),
  output: z.object({
    /** In the order they were asked about. */
    candidates: z.array(
      z.object({
        refusal: z.string().nullable(),
        /** Micro-dollars; 0 where the model has no price. */
        estimate: z.string().regex(/^\d+$/),
      }),
    ),
  }),
})

/** Gives a hold back when no work was done at all (P-46). */
export const billingRelease = rpc({
  subject: 'tg.v1.billing.release',
  delivery: 'direct',
  idempotent: true,
  input: z.object({ tenancy, hold: z.string() }),
  output: z.object({}),
})

/** A price row, as `POST /api/v1/pricing` takes and shows it: dollars per million units (P-02, P-03). */
export const priceRow = z.object({
  id: z.string(),
  kind: z.enum(['model', 'search', 'fetch']),
  modelKey: z.string(),
  inputPricePerMillion: decimalText,
  outputPricePerMillion: decimalText,
  cacheReadPricePerMillion: decimalText.nullable(),
  cacheWritePricePerMillion: decimalText.nullable(),
  effectiveAt: z.iso.datetime(),
  createdAt: z.iso.datetime(),
})
export type PriceRow = z.infer<typeof priceRow>

export const billingSetPrice = rpc({
  subject: 'tg.v1.billing.set-price',
  delivery: 'direct',
  idempotent: true,
  input: priceRow.omit({ id: true, createdAt: true }),
  output: priceRow,
})

export const billingPrices = rpc({
  subject: 'tg.v1.billing.prices',
  delivery: 'direct',
  idempotent: true,
  input: z.object({
    kind: z.enum(['model', 'search', 'fetch']).optional(),
    modelKey: z.string().optional(),
    /** Only the version of each key that is in force now; else all of them, newest first. */
    current: z.boolean().default(false),
    skip: z.int().nonnegative().default(0),
    limit: z.int().min(1).max(1_000).default(100),
  }),
  output: z.object({ data: z.array(priceRow), count: z.int() }),
})

export const billingDeletePrice = rpc({
  subject: 'tg.v1.billing.delete-price',
  delivery: 'direct',
  idempotent: true,
  input: z.object({ kind: z.enum(['model', 'search', 'fetch']), modelKey: z.string() }),
  output: z.object({ deleted: z.int().nonnegative() }),
})

export const breakdownLine = z.object({
  meter: z.string(),
  label: z.string(),
  units: z.int().nonnegative(),
  /** Decimal dollars; null when nothing priced the line. */
  unitRate: decimalText.nullable(),
  cost: decimalText.nullable(),
})
export type BreakdownLine = z.infer<typeof breakdownLine>

export const usageRow = z.object({
  id: z.string(),
  organization: z.string(),
  workspace: z.string(),
  key: z.string(),
  user: z.string(),
  timestamp: z.iso.datetime(),
  model: z.string(),
  provider: z.string(),
  endpoint: z.string(),
  promptTokens: z.int(),
  completionTokens: z.int(),
  totalTokens: z.int(),
  billingMeters: z.record(z.string(), z.unknown()),
  pricingBreakdown: z.array(breakdownLine),
  cost: decimalText.nullable(),
  status: z.string(),
  error: z.string().nullable(),
  settledBy: z.enum(['gateway', 'sweep']),
  durationMs: z.number().nullable(),
  /** False on the row of an attempt that another one stood in for (P-45). */
  countsTowardBudget: z.boolean().default(true),
})
export type UsageRow = z.infer<typeof usageRow>

/** Usage rows, newest first; `count` says how many match, up to 100,000. */
export const billingUsage = rpc({
  subject: 'tg.v1.billing.usage',
  delivery: 'direct',
  idempotent: true,
  input: z.object({
    /** Null: every workspace, which only an operator may ask for. */
    workspace: z.string().nullable(),
    key: z.string().optional(),
    user: z.string().optional(),
    request: z.string().optional(),
    from: z.iso.datetime().optional(),
    to: z.iso.datetime().optional(),
    skip: z.int().nonnegative().default(0),
    limit: z.int().min(1).max(1_000).default(100),
  }),
  output: z.object({ data: z.array(usageRow), count: z.int() }),
})

/** What requests used of one tool. */
export const toolUsage = z.object({
  tool: z.string(),
  requests: z.int().nonnegative(),
  /** Calls that succeeded, and those that failed, which cost nothing (P-10). */
  billed: z.int().nonnegative(),
  errors: z.int().nonnegative(),
  /** Of calls that models' backends ran and told the size of (PE-28). */
  resultTokens: z.int().nonnegative().nullable(),
  /** Decimal dollars; null when nothing priced a call. */
  cost: decimalText.nullable(),
})
export type ToolUsage = z.infer<typeof toolUsage>

/** The same requests by tool, the most used first (PE-33); at most the newest 100,000 of them. */
export const billingUsageByTool = rpc({
  subject: 'tg.v1.billing.usage-by-tool',
  delivery: 'direct',
  idempotent: true,
  input: billingUsage.input,
  output: z.object({ data: z.array(toolUsage), count: z.int() }),
})

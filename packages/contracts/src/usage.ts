import { z } from 'zod'
import { decimalText } from './money.ts'
import { topic } from './rpc.ts'
import { tenancy } from './tenancy.ts'

export const priceKey = z.object({ kind: z.enum(['model', 'search', 'fetch']), key: z.string() })

/** One tool call that ran. From the moment it is recorded the charge survives the gateway. */
export const toolLine = z.object({
  /** Unique per call, so that a second delivery changes nothing. */
  id: z.string().min(1),
  tool: z.string().min(1).max(64),
  label: z.string(),
  /** Rows that may price it, first match wins; the reported cost comes before them all (P-06). */
  priceKeys: z.array(priceKey),
  outcome: z.enum(['ok', 'error']),
  reportedCost: decimalText.optional(),
  /** Of a call that the model's backend ran: tokens of its result, which the next request's prompt holds and bills (PE-28). */
  resultTokens: z.int().nonnegative().optional(),
  at: z.iso.datetime(),
})
export type ToolLine = z.infer<typeof toolLine>

export const usageTool = topic({
  subject: 'tg.v1.usage.tool',
  event: z.object({ hold: z.string(), tenancy, line: toolLine }),
})

/** Tokens as upstreams report them, summed over rounds; `input` excludes what was read from or written to a cache. */
export const tokenCounts = z.object({
  input: z.int().nonnegative(),
  output: z.int().nonnegative(),
  cacheRead: z.int().nonnegative().default(0),
  cacheWrite: z.int().nonnegative().default(0),
  reasoning: z.int().nonnegative().default(0),
})
export type TokenCounts = z.infer<typeof tokenCounts>

/**
 * An attempt that another one stood in for: passed over (its error begins `Skipped: `, P-49) or failed before its first
 * byte (P-45). It leaves a row without cost or calls.
 */
export const absorbedAttempt = z.object({
  attempt: z.int().nonnegative(),
  model: z.string(),
  provider: z.string(),
  error: z.string().nullable(),
  durationMs: z.number().nonnegative(),
})

/**
 * How a request ended: written once, before its last byte goes out. It carries every tool line again, so that order and
 * loss of `usage.tool` do not matter to settlement.
 */
export const usageSettled = topic({
  subject: 'tg.v1.usage.settled',
  event: z.object({
    hold: z.string(),
    tenancy,
    at: z.iso.datetime(),
    endpoint: z.string(),
    /** The model that answered, without its provider, and the provider's instance name. */
    model: z.string(),
    provider: z.string(),
    priceKeys: z.array(priceKey),
    tokens: tokenCounts,
    /** True when the upstream reported no usage and the counts are our estimate (P-50). */
    estimated: z.boolean().default(false),
    lines: z.array(toolLine),
    status: z.enum(['success', 'error', 'cancelled']),
    /** A fixed text from the table of failures; never an upstream's words. */
    error: z.string().nullable(),
    durationMs: z.number().nonnegative(),
    absorbed: z.array(absorbedAttempt).max(64).default([]),
  }),
})
export type UsageSettled = z.infer<typeof usageSettled.event>

import { randomUUID } from 'node:crypto'
import {
  type billingReserve,
  otariLabel,
  otariPriceKeys,
  type PriceKey,
  type Tenancy,
  type ToolLine,
  type UsageSettled,
  usageSettled,
} from '@tollgate/contracts'
import type { z } from 'zod'

type Reservation = z.output<typeof billingReserve.input>

export const model = (key: string): PriceKey => ({ kind: 'model', key })

export const tenancyOf = (request: string = randomUUID(), more: Partial<Tenancy> = {}): Tenancy => ({
  organization: 'org',
  workspace: 'ws',
  user: 'alice',
  key: 'key-1',
  attempt: 0,
  ...more,
  request,
})

export const reservation = (more: Partial<Reservation> = {}): Reservation => ({
  tenancy: tenancyOf(),
  endpoint: '/api/v1/chat/completions',
  model: 'm-large',
  provider: 'acme',
  modelKeys: [model('acme:m-large')],
  tools: [],
  estimate: { inputTokens: 1_000, outputTokens: 500 },
  budgetExempt: false,
  endsAt: Date.now() + 60_000,
  ...more,
})

export const call = (tool: string, more: Partial<ToolLine> = {}): ToolLine => ({
  id: randomUUID(),
  tool,
  label: otariLabel(tool),
  priceKeys: otariPriceKeys(tool),
  outcome: 'ok',
  at: new Date().toISOString(),
  ...more,
})

export const settlement = (tenancy: Tenancy, more: Partial<z.input<typeof usageSettled.event>> = {}): UsageSettled =>
  usageSettled.event.parse({
    hold: tenancy.request,
    tenancy,
    at: new Date().toISOString(),
    endpoint: '/api/v1/chat/completions',
    model: 'm-large',
    provider: 'acme',
    priceKeys: [model('acme:m-large')],
    tokens: { input: 1_000, output: 100 },
    lines: [],
    status: 'success',
    error: null,
    durationMs: 1_000,
    ...more,
  })

import type { Bus } from '@tollgate/bus'
import { billingUsage, billingUsageByTool, Fault, type ToolUsage, type UsageRow } from '@tollgate/contracts'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { exact, exactNumber, exactOrNull } from '../exact-json.ts'
import { instant, listOf, paging } from './wire.ts'

const row = z.strictObject({
  id: z.string(),
  organization_id: z.string(),
  workspace_id: z.string(),
  key_id: z.string(),
  user_id: z.string(),
  timestamp: z.iso.datetime(),
  model: z.string(),
  provider: z.string(),
  endpoint: z.string(),
  prompt_tokens: z.int(),
  completion_tokens: z.int(),
  total_tokens: z.int(),
  billing_meters: z.record(z.string(), z.unknown()),
  pricing_breakdown: z.array(
    z.strictObject({
      meter: z.string(),
      label: z.string(),
      units: z.int(),
      unit_rate: exactNumber.nullable(),
      cost: exactNumber.nullable(),
    }),
  ),
  cost: exactNumber.nullable(),
  status: z.string(),
  error: z.string().nullable(),
  settled_by: z.enum(['gateway', 'sweep']),
  duration_ms: z.number().nullable(),
  counts_toward_budget: z.boolean(),
})

const byTool = z.strictObject({
  tool: z.string(),
  requests: z.int(),
  billed: z.int().describe('Calls that succeeded'),
  errors: z.int(),
  result_tokens: z.int().nullable().describe('Of results that a model’s own backend told the size of'),
  cost: exactNumber.nullable(),
})

const filters = z.strictObject({
  group_by: z.enum(['tool']).optional().describe('One row a tool, of at most the newest 100,000 requests that match'),
  workspace_id: z.string().optional().describe('An API key sees its own workspace only'),
  key_id: z.string().optional(),
  user_id: z.string().optional(),
  request_id: z.string().optional(),
  start_date: instant.optional().describe('Inclusive'),
  end_date: instant.optional().describe('Exclusive'),
  ...paging,
})

const ANSWER_MS = 10_000

/** `GET /usage`: what requests cost, newest first; a key sees its workspace, the operator every one. */
export const usageRoutes =
  ({ bus }: { bus: Bus }): FastifyPluginCallbackZod =>
  (app, _options, done) => {
    app.get(
      '/usage',
      {
        schema: {
          tags: ['usage'],
          summary: 'List usage',
          querystring: filters,
          response: { 200: z.union([listOf(row), listOf(byTool)]) },
        },
      },
      async ({ identity, query }) => {
        const own = identity.kind === 'master' ? undefined : identity.workspace
        if (own !== undefined && query.workspace_id !== undefined && query.workspace_id !== own) {
          throw new Fault('not_found', `Workspace '${query.workspace_id}' not found`)
        }
        const wanted = {
          workspace: own ?? query.workspace_id ?? null,
          skip: query.skip,
          limit: query.limit,
          ...(query.key_id === undefined ? {} : { key: query.key_id }),
          ...(query.user_id === undefined ? {} : { user: query.user_id }),
          ...(query.request_id === undefined ? {} : { request: query.request_id }),
          ...(query.start_date === undefined ? {} : { from: query.start_date.toISOString() }),
          ...(query.end_date === undefined ? {} : { to: query.end_date.toISOString() }),
        }
        const soon = { deadline: Date.now() + ANSWER_MS }
        if (query.group_by === 'tool') {
          const { data, count } = await bus.call(billingUsageByTool, wanted, soon)
          return { data: data.map(showTool), count }
        }
        const { data, count } = await bus.call(billingUsage, wanted, soon)
        return { data: data.map(show), count }
      },
    )
    done()
  }

const show = (used: UsageRow): z.input<typeof row> => ({
  id: used.id,
  organization_id: used.organization,
  workspace_id: used.workspace,
  key_id: used.key,
  user_id: used.user,
  timestamp: used.timestamp,
  model: used.model,
  provider: used.provider,
  endpoint: used.endpoint,
  prompt_tokens: used.promptTokens,
  completion_tokens: used.completionTokens,
  total_tokens: used.totalTokens,
  billing_meters: withRates(used.billingMeters),
  pricing_breakdown: used.pricingBreakdown.map(({ meter, label, units, unitRate, cost }) => ({
    meter,
    label,
    units,
    unit_rate: exactOrNull(unitRate),
    cost: exactOrNull(cost),
  })),
  cost: exactOrNull(used.cost),
  status: used.status,
  error: used.error,
  settled_by: used.settledBy,
  duration_ms: used.durationMs,
  counts_toward_budget: used.countsTowardBudget,
})

const showTool = ({ resultTokens, cost, ...used }: ToolUsage): z.input<typeof byTool> => ({
  ...used,
  result_tokens: resultTokens,
  cost: exactOrNull(cost),
})

const meteredTool = z.looseObject({ unit_rate: z.string().transform(exact).nullable() })

/** A tool's `unit_rate` travels as the text of a decimal and is shown as a number (P-23). */
function withRates(meters: Record<string, unknown>): Record<string, unknown> {
  const tools = z.record(z.string(), meteredTool).safeParse(meters.tools)
  return tools.success ? { ...meters, tools: tools.data } : meters
}

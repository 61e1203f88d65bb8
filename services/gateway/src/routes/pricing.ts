import type { Bus } from '@tollgate/bus'
import { billingDeletePrice, billingPrices, billingSetPrice, Fault, type PriceRow } from '@tollgate/contracts'
import type { FastifyRequest } from 'fastify'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { operatorOnly } from '../auth/authenticate.ts'
import { exact, exactNumber, exactOrNull, readSpelled, spelledDecimal } from '../exact-json.ts'
import { instant, listOf, paging, shortText } from './wire.ts'

const kind = z.enum(['model', 'search', 'fetch'])

const wanted = z.strictObject({
  kind: kind.default('model').describe('model, or the tool whose instance model_key names'),
  model_key: shortText.describe('provider:model, otari:<tool>, or the name of a search or fetch instance'),
  input_price_per_million: spelledDecimal.describe('Dollars per million tokens; for a tool, per million calls'),
  output_price_per_million: spelledDecimal,
  cache_read_price_per_million: spelledDecimal.nullable().default(null),
  cache_write_price_per_million: spelledDecimal.nullable().default(null),
  effective_at: instant.optional().describe('Now when absent; the row before stays in force until then'),
})

const shown = z.strictObject({
  id: z.string(),
  kind,
  model_key: z.string(),
  input_price_per_million: exactNumber,
  output_price_per_million: exactNumber,
  cache_read_price_per_million: exactNumber.nullable(),
  cache_write_price_per_million: exactNumber.nullable(),
  effective_at: z.iso.datetime(),
  created_at: z.iso.datetime(),
})

const current = z.stringbool().default(false).describe('Only the version of each key that is in force')
const byKey = z.object({ '*': shortText })
const ofKind = z.strictObject({ kind: kind.default('model') })
const tags = ['pricing']
const ANSWER_MS = 5_000
const soon = () => ({ deadline: Date.now() + ANSWER_MS })

/** `/pricing`: what a million tokens or calls cost, to the digit it was written with (P-02, P-03, P-04, P-11). */
export const pricingRoutes =
  ({ bus }: { bus: Bus }): FastifyPluginCallbackZod =>
  (app, _options, done) => {
    app.post(
      '/pricing',
      {
        schema: { tags, summary: 'Set a price', body: wanted, response: { 200: shown } },
        onRequest: operatorOnly,
        preValidation: spelledNumbers,
      },
      async ({ body }) =>
        show(
          await bus.call(
            billingSetPrice,
            {
              kind: body.kind,
              modelKey: body.model_key,
              inputPricePerMillion: body.input_price_per_million,
              outputPricePerMillion: body.output_price_per_million,
              cacheReadPricePerMillion: body.cache_read_price_per_million,
              cacheWritePricePerMillion: body.cache_write_price_per_million,
              effectiveAt: (body.effective_at ?? new Date()).toISOString(),
            },
            soon(),
          ),
        ),
    )

    app.get(
      '/pricing',
      {
        schema: {
          tags,
          summary: 'List prices, newest first',
          querystring: z.strictObject({ kind: kind.optional(), model_key: z.string().optional(), current, ...paging }),
          response: { 200: listOf(shown) },
        },
      },
      async ({ query: { kind, model_key, current, skip, limit } }) => {
        const { data, count } = await bus.call(
          billingPrices,
          {
            current,
            skip,
            limit,
            ...(kind ? { kind } : {}),
            ...(model_key === undefined ? {} : { modelKey: model_key }),
          },
          soon(),
        )
        return { data: data.map(show), count }
      },
    )

    app.get(
      '/pricing/*',
      {
        schema: {
          tags,
          summary: 'Show the price in force',
          params: byKey,
          querystring: ofKind,
          response: { 200: shown },
        },
      },
      async ({ params: { '*': modelKey }, query: { kind } }) => {
        const { data } = await bus.call(billingPrices, { kind, modelKey, current: true }, soon())
        const [price] = data
        if (!price) throw noPrice(modelKey)
        return show(price)
      },
    )

    app.delete(
      '/pricing/*',
      {
        schema: { tags, summary: 'Remove a price, every version of it', params: byKey, querystring: ofKind },
        onRequest: operatorOnly,
      },
      async ({ params: { '*': modelKey }, query: { kind } }, reply) => {
        const { deleted } = await bus.call(billingDeletePrice, { kind, modelKey }, soon())
        if (deleted === 0) throw noPrice(modelKey)
        return reply.code(204).send()
      },
    )
    done()
  }

/** Prices are read as they were written, before any of them has been a double. */
async function spelledNumbers(request: FastifyRequest): Promise<void> {
  request.body = readSpelled(request.bodyText)
}

const noPrice = (modelKey: string) => new Fault('not_found', `No price for '${modelKey}'`)

const show = (row: PriceRow): z.input<typeof shown> => ({
  id: row.id,
  kind: row.kind,
  model_key: row.modelKey,
  input_price_per_million: exact(row.inputPricePerMillion),
  output_price_per_million: exact(row.outputPricePerMillion),
  cache_read_price_per_million: exactOrNull(row.cacheReadPricePerMillion),
  cache_write_price_per_million: exactOrNull(row.cacheWritePricePerMillion),
  effective_at: row.effectiveAt,
  created_at: row.createdAt,
})

import { Fault, type SeatSettings } from '@tollgate/contracts'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { permits } from '../auth/allowed-models.ts'
import { operatorOnly } from '../auth/authenticate.ts'
import type { Identity } from '../auth/identity.ts'
import { feesOf } from '../models/seats.ts'
import { seatChanges } from '../seat-changes/changes.ts'
import type { RuntimeSeats } from '../seat-changes/runtime.ts'
import { Invalid } from '../validation.ts'

export interface ListedModel {
  /** `instance:model`, as a request names it. */
  id: string
  /** The instance's name. */
  provider: string
  /** Epoch seconds. */
  created?: number
  contextTokens?: number
  /** Of a policy or an alias: what it stands for. */
  candidates?: readonly string[]
  /** Of a seat: what its backend runs by itself. */
  seat?: SeatSettings
}

const entry = z.strictObject({
  id: z.string(),
  object: z.literal('model'),
  created: z.int(),
  owned_by: z.string(),
  context_window: z.int().optional().describe('Tokens of question and answer together, where the provider says so'),
  candidates: z.array(z.string()).optional().describe('The models that a routing policy or an alias stands for'),
})
const ofOperator = entry.extend({
  provider_executed_tools: z.array(z.string()).optional().describe('Tools that the backend runs; to the operator only'),
  delegated_search: z.string().nullable().optional().describe('The backend’s search tool that it takes only alone'),
  provider_tool_fees: z
    .record(z.string(), z.string())
    .optional()
    .describe('Decimal dollars a call, by the tool’s name'),
  provider_tool_max_calls: z.int().optional(),
  provider_tool_max_result_tokens: z.int().nullable().optional(),
  web_search_keyword: z.enum(['otari', 'provider_tool']).optional(),
  tools_refused_recently: z
    .boolean()
    .optional()
    .describe('Whether the backend refused the tools of a request in the last hour'),
})
const tags = ['models']

export interface ModelRouteNeeds {
  listModels(): readonly ListedModel[]
  /** Whether a seat's backend refused the tools of a request lately. */
  refusedTools?(seat: string): boolean
  seats: Pick<RuntimeSeats, 'change' | 'reset'>
}

/**
 * `/models` in OpenAI's shape: models that the operator listed or the providers list, policies and aliases, less what the
 * key may not use.
 */
export const modelRoutes =
  ({ listModels, refusedTools = () => false, seats }: ModelRouteNeeds): FastifyPluginCallbackZod =>
  (app, _options, done) => {
    app.get(
      '/models',
      {
        schema: {
          tags,
          summary: 'List models',
          response: { 200: z.strictObject({ object: z.literal('list'), data: z.array(ofOperator) }) },
        },
      },
      async ({ identity }) => ({
        object: 'list' as const,
        data: permitted(identity).map((model) => shown(model, identity)),
      }),
    )

    // a wildcard, since names of models have slashes in them
    app.get(
      '/models/*',
      {
        schema: { tags, summary: 'Show a model', params: z.object({ '*': z.string() }), response: { 200: ofOperator } },
      },
      async ({ identity, params: { '*': id } }) => showOne(id, identity),
    )

    app.patch(
      '/models/*',
      {
        schema: {
          tags,
          summary: 'Change what a model’s backend runs by itself',
          description:
            'A model of `models` in the configuration, by its name there. In force for new requests on every replica within 10 s; an answer under way keeps what it began with. What is left out stays; null takes a limit or the delegated search away.',
          params: z.object({ '*': z.string() }),
          body: seatChanges,
          response: { 200: ofOperator },
        },
        onRequest: operatorOnly,
      },
      async ({ identity, params: { '*': id }, body }) => {
        const fault = await seats.change(id, body)
        if (fault !== undefined) throw new Invalid([{ loc: ['body'], msg: fault, type: 'value_error' }])
        return showOne(id, identity)
      },
    )
    app.delete(
      '/models/*',
      {
        schema: {
          tags,
          summary: 'Take back what was changed of a model',
          description: 'The model stays: the configuration is in force again.',
          params: z.object({ '*': z.string() }),
        },
        onRequest: operatorOnly,
      },
      async ({ params: { '*': id } }, reply) => {
        await seats.reset(id)
        return reply.code(204).send()
      },
    )
    done()

    function showOne(id: string, identity: Identity) {
      const found = permitted(identity).find((model) => model.id === id)
      if (!found) throw new Fault('not_found', `Model '${id}' not found`)
      return shown(found, identity)
    }

    /** What a seat's backend runs is the operator's to know (PE-55). */
    function shown(model: ListedModel, { kind }: Identity) {
      const { id, seat } = model
      if (seat === undefined || kind !== 'master') return show(model)
      return {
        ...show(model),
        provider_executed_tools: seat.provider_executed_tools,
        delegated_search: seat.delegated_search ?? null,
        provider_tool_fees: Object.fromEntries(feesOf(seat)),
        provider_tool_max_calls: seat.provider_tool_max_calls,
        provider_tool_max_result_tokens: seat.provider_tool_max_result_tokens ?? null,
        web_search_keyword: seat.web_search_keyword,
        tools_refused_recently: refusedTools(id),
      }
    }

    function permitted({ allowedModels }: Identity): ListedModel[] {
      return listModels().flatMap((model) => {
        if (model.candidates === undefined) return permits(allowedModels, model.id) ? [model] : []
        const candidates = model.candidates.filter((candidate) => permits(allowedModels, candidate))
        return candidates.length > 0 ? [{ ...model, candidates }] : []
      })
    }
  }

/** Not every provider says when a model was made; clients want a number. */
const show = ({ id, provider, created = 0, contextTokens, candidates }: ListedModel) => ({
  id,
  object: 'model' as const,
  created,
  owned_by: provider,
  ...(contextTokens !== undefined && { context_window: contextTokens }),
  ...(candidates && { candidates: [...candidates] }),
})

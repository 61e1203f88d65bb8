import {
  Fault,
  instanceLabel,
  instancePriceKeys,
  type SearchHit,
  type SearchInstance,
  searchDescribe,
  searchQuery,
} from '@tollgate/contracts'
import { type CallAt, failed, type Outcome } from '@tollgate/mcp-web'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { actFor } from '../auth/acting-user.ts'
import { tenancyOf } from '../auth/tenancy.ts'
import { requestEnds } from '../conversation/request-end.ts'
import { type DirectNeeds, directCall } from '../direct/direct-call.ts'
import { chooseSearchTool, refuseSearchTool } from '../direct/search-tool.ts'
import { type DirectSearch, searchOptions, searchPolicy } from '../direct/search-wish.ts'
import type { WebPolicy } from '../policies/policy.ts'
import { refuseWebAccess } from '../policies/refusals.ts'
import { shortText } from './wire.ts'

const body = z.object({
  query: z.string().min(1).max(4_096),
  search_tool_name: shortText.optional().describe('A search tool of this gateway; the path’s wins'),
  max_results: z.int().min(1).default(10),
  search_domain_filter: z
    .array(z.string().max(256))
    .max(20)
    .default([])
    .describe('Domains; with - before it, one to leave out'),
  country: z
    .string()
    .regex(/^[A-Za-z]{2}$/, 'must be two letters')
    .optional(),
  max_tokens_per_page: z.int().min(1).optional().describe('Cuts each snippet, at about four characters a token'),
  provider_options: z.record(z.string(), z.unknown()).default({}),
  user: shortText.optional().describe('Whom the search is for; only with the master key'),
}) satisfies z.ZodType<DirectSearch>

const found = z.strictObject({
  object: z.literal('search'),
  search_tool: z.string(),
  results: z.array(
    z.strictObject({
      title: z.string().nullable(),
      url: z.string(),
      snippet: z.string().nullable(),
      date: z.string().nullable(),
    }),
  ),
})

const schema = {
  tags: ['tools'],
  summary: 'Search the web',
  description: 'A search on one of the gateway’s search tools, without a model. A failure costs nothing.',
  body,
  response: { 200: found },
}

/** More than any provider returns; each lowers it to its own maximum (D-03). */
const MOST_RESULTS = 1_000
/** Over any instance's own timeout; a broker that hangs costs no more than this. */
const SEARCH_MS = 120_000
const DESCRIBE_MS = 5_000

/** `POST /search` and `POST /search/{search_tool_name}`: a search without a model (D-01). */
export const searchRoute =
  (needs: DirectNeeds, cut: AbortSignal): FastifyPluginCallbackZod =>
  (app, _options, done) => {
    const { settings, identities, rateLimit } = needs
    const endOf = requestEnds(cut)

    app.post('/search', { schema }, ({ body, identity, id }, reply) =>
      serve(body, body.search_tool_name, identity, id, endOf(reply, settings.requestTimeoutMs)),
    )
    app.post(
      '/search/:search_tool_name',
      {
        schema: {
          ...schema,
          summary: 'Search the web with a named tool',
          params: z.object({ search_tool_name: shortText }),
        },
      },
      ({ body, params, identity, id }, reply) =>
        serve(body, params.search_tool_name, identity, id, endOf(reply, settings.requestTimeoutMs)),
    )
    done()

    async function serve(
      wanted: z.output<typeof body>,
      named: string | undefined,
      identity: Parameters<typeof actFor>[0],
      request: string,
      end: ReturnType<typeof endOf>,
    ): Promise<z.input<typeof found>> {
      try {
        const acting = await actFor(identity, wanted.user, { dialect: 'chat', identities, settings })
        const { instances, providers } = await needs.bus.call(
          searchDescribe,
          {},
          { deadline: Math.min(end.deadline, Date.now() + DESCRIBE_MS), signal: end.signal },
        )
        const tool = chooseSearchTool(named, settings.webSearchDefaultTool, instances)
        refuseSearchTool(acting, tool)
        const options = searchOptions(wanted, providers.find(({ id }) => id === tool.provider)?.options ?? [])
        const policy = searchPolicy(wanted)
        const { web } = await needs.policies.of(acting.workspace)
        refuseWebAccess(web, 'web search')
        const { name, provider } = tool
        const outcome = await directCall(
          needs,
          {
            tool: 'web_search',
            served: { name, provider },
            label: instanceLabel(provider, name),
            priceKeys: instancePriceKeys('search', provider, name),
            endpoint: '/api/v1/search',
            tenancy: tenancyOf(acting, request),
            budgetExempt: acting.budgetExempt,
            signal: end.signal,
            deadline: end.deadline,
            lastCheck: () => rateLimit.take(acting),
          },
          (at) => search(tool, { ...wanted, max_results: mostResults(wanted, web) }, { options, policy }, at),
        ).catch((thrown: unknown) => namePrice(thrown, tool))
        if (!outcome.ok) throw new Fault(outcome.failure, outcome.message, { cause: outcome.cause })
        const most = (wanted.max_tokens_per_page ?? Number.POSITIVE_INFINITY) * CHARACTERS_PER_TOKEN
        return { object: 'search', search_tool: name, results: outcome.value.map((hit) => show(hit, most)) }
      } finally {
        end.done()
      }
    }

    async function search(
      { name }: SearchInstance,
      { query, max_results }: DirectSearch,
      narrowed: { options: Record<string, unknown>; policy: ReturnType<typeof searchPolicy> },
      { tenancy, signal, deadline }: CallAt,
    ): Promise<Outcome<SearchHit[]>> {
      const answer = await needs.bus.call(
        searchQuery,
        {
          tenancy,
          instance: name,
          query,
          maxResults: max_results,
          ...narrowed,
          // what is asked for here are the provider's results; pages are read by /fetch
          enrich: false,
        },
        { signal, deadline: Math.min(deadline, Date.now() + SEARCH_MS) },
      )
      const { label } = answer
      if (answer.status === 'ok') return { ok: true, value: answer.hits, label, reportedCost: answer.reportedCost }
      // D-11: whatever it was, and nothing of the provider's own words
      return failed('upstream', 'The request could not be completed by the provider', { label })
    }
  }

/** W-32: of the workspace's policy only this and its switch hold for a direct search (W-39). */
const mostResults = ({ max_results }: DirectSearch, { maxResults }: WebPolicy): number =>
  Math.min(max_results, maxResults ?? MOST_RESULTS)

/** P-62: for a direct search it is the tool's own price that is missing. */
function namePrice(thrown: unknown, { name }: SearchInstance): never {
  if (!(thrown instanceof Fault) || thrown.failure !== 'pricing_required') throw thrown
  throw new Fault(
    'pricing_required',
    `Search tool '${name}' has no pricing, and this gateway runs with require_pricing enabled. Set a price of kind 'search' for model_key '${name}' (POST /api/v1/pricing), or price_per_call on the tool, or set require_pricing to false.`,
  )
}

/** D-21 */
const CHARACTERS_PER_TOKEN = 4

/** Where a hit has no title its address stands in for one, and is here said to be none (D-04). */
const show = ({ title, url, text, date }: SearchHit, mostCharacters: number) => ({
  title: title === url ? null : title,
  url,
  snippet: text === '' ? null : Array.from(text).slice(0, mostCharacters).join(''),
  date: date ?? null,
})

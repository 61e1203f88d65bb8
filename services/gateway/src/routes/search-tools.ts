import type { Bus } from '@tollgate/bus'
import { Fault, searchDescribe, searchFetch, searchQuery, TOOL_RESULT_BYTES } from '@tollgate/contracts'
import type { FastifyPluginCallbackZod } from 'fastify-type-provider-zod'
import { z } from 'zod'
import { operatorOnly } from '../auth/authenticate.ts'
import { tenancyOf } from '../auth/tenancy.ts'
import { type RequestEnd, requestEnds } from '../conversation/request-end.ts'
import type { GatewaySettings } from '../settings.ts'
import { shortText } from './wire.ts'

const wanted = z
  .strictObject({
    query: z.string().trim().min(1).max(4_096).optional().describe('What a search tool is to look for'),
    url: z.string().min(1).max(8_192).optional().describe('What a fetch tool is to fetch'),
  })
  .refine(({ query, url }) => (query === undefined) !== (url === undefined), 'must have either query or url')

const outcome = z.strictObject({
  ok: z.boolean(),
  error: z.string().nullable().describe('The tag of a failure; never a provider’s words'),
  hits: z.int().nullable(),
  characters: z.int().nullable(),
})
type Outcome = z.infer<typeof outcome>

const DESCRIBE_MS = 5_000
/** The master key stands for no user, and a message about work is for somebody. */
const OPERATOR = 'operator'

/** `POST /search-tools/{name}/test`: whether an instance works, without its results or a page's text (SP-07, FP-10). */
export const searchToolRoutes =
  ({ bus, settings }: { bus: Bus; settings: GatewaySettings }, cut: AbortSignal): FastifyPluginCallbackZod =>
  (app, _options, done) => {
    const endOf = requestEnds(cut)
    app.post(
      '/search-tools/:name/test',
      {
        schema: {
          tags: ['tools'],
          summary: 'Try a search or fetch tool',
          description:
            'A search tool with a query, a fetch tool with a url. Nothing is charged here; the provider may.',
          params: z.object({ name: shortText }),
          body: wanted,
          response: { 200: outcome },
        },
        onRequest: operatorOnly,
      },
      async ({ params: { name }, body: { query, url }, identity, id }, reply) => {
        const end = endOf(reply, settings.requestTimeoutMs)
        try {
          await refuseUnfit(name, url === undefined ? 'search' : 'fetch', end)
          const call = { tenancy: { ...tenancyOf(identity, id), user: OPERATOR }, instance: name }
          if (url !== undefined) return await tryFetch({ ...call, url, maxCharacters: TOOL_RESULT_BYTES }, end)
          return await trySearch({ ...call, query: query ?? '', enrich: false }, end)
        } finally {
          end.done()
        }
      },
    )
    done()

    async function refuseUnfit(name: string, kind: 'search' | 'fetch', { deadline, signal }: RequestEnd) {
      const { instances } = await bus.call(
        searchDescribe,
        {},
        { deadline: Math.min(deadline, Date.now() + DESCRIBE_MS), signal },
      )
      const tool = instances.find((instance) => instance.name === name)
      if (!tool) throw new Fault('not_found', `There is no search or fetch tool '${name}'.`)
      if (tool.kind === kind) return
      const right = tool.kind === 'search' ? 'a query' : 'a url'
      throw new Fault('invalid_value', `'${name}' is a ${tool.kind} tool: it is tried with ${right}`)
    }

    async function trySearch(search: z.input<typeof searchQuery.input>, { deadline, signal }: RequestEnd) {
      const answer = await bus.call(searchQuery, search, { deadline, signal })
      return answer.status === 'ok' ? { ...worked, hits: answer.hits.length } : failed(answer.tag)
    }

    async function tryFetch(page: z.input<typeof searchFetch.input>, { deadline, signal }: RequestEnd) {
      const answer = await bus.call(searchFetch, page, { deadline, signal })
      switch (answer.status) {
        case 'ok':
          return { ...worked, characters: Array.from(answer.text).length }
        case 'refused':
          return failed(answer.why)
        case 'failed':
          return failed(answer.tag)
        default:
          return answer satisfies never
      }
    }
  }

const worked: Outcome = { ok: true, error: null, hits: null, characters: null }
const failed = (error: string): Outcome => ({ ...worked, ok: false, error })

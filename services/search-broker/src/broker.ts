import { type Span, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api'
import { Fault, searchDescribe, searchFetch, searchJudgeSettings, searchMcp, searchQuery } from '@tollgate/contracts'
import { openTrustedClient } from '@tollgate/http'
import { type CommonNeeds, followSettings, type Running } from '@tollgate/service'
import type { Backend } from './backend.ts'
import { openBackends } from './backends.ts'
import { describe } from './describe.ts'
import { entryProblems } from './entries.ts'
import { openFetching } from './fetch/observed.ts'
import { openMcpSearch } from './mcp/search.ts'
import { countSearch, type SearchOutcome } from './metrics.ts'
import { judgeSettings, serveTrying, withRuntime } from './runtime-settings.ts'
import { REPLY_MS, type SearchContext, type SearchReply, type SearchRequest, search } from './search.ts'
import { defaultBounds, type SearchSettings } from './settings.ts'
import { openSlots } from './slots.ts'
import { trackWork } from './work.ts'

export interface SearchBrokerNeeds extends CommonNeeds {
  settings: SearchSettings
}

/** Calls of a kind taken at once; each backend has narrower bounds of its own. */
const CALL_SLOTS = 256

const tracer = trace.getTracer('@tollgate/search-broker')

/** Serves searches and fetches on the deployment's backends. Keys and addresses of providers are known in here and nowhere else (S-70). */
export async function startSearchBroker({ bus, log, settings }: SearchBrokerNeeds): Promise<Running> {
  const bounds = { ...defaultBounds, ...settings.bounds }
  const problems = entryProblems(settings)
  if (problems.length > 0) throw new Error(problems.join('\n'))
  let inForce = settings
  let backends = openBackends(settings, bounds, log)

  const work = trackWork()
  const client = openTrustedClient({ connections: bounds.searches })
  const fetchPage = openFetching(client, log)
  const parts = {
    bus,
    fetchPage,
    client,
    log,
    pageSlots: openSlots({ places: bounds.pages, waiting: bounds.waitingPages }),
  }

  const searchForMcp = openMcpSearch(settings.mcp ?? {}, client, bounds)

  const choose = (name: string | null): Backend => {
    const backend = name === null ? backends.inLoop() : backends.instances.find(name)
    if (backend) return backend
    throw new Fault(
      'not_found',
      name === null ? 'This deployment has no web search.' : `Unknown search tool '${name}'.`,
    )
  }

  const run = (backend: Backend, request: SearchRequest, context: SearchContext): Promise<SearchReply> =>
    tracer.startActiveSpan(`search ${backend.provider.id}`, { kind: SpanKind.CLIENT }, async (span) => {
      const started = performance.now()
      let outcome: SearchOutcome = 'internal'
      try {
        const { defaultResults } = backends
        const reply = await search(backend, request, context, { ...parts, defaultResults })
        outcome = reply.status === 'ok' ? 'ok' : reply.tag
        if (reply.status === 'failed') {
          const { label, tag, httpStatus } = reply
          log.warn({ request: request.tenancy.request, label, tag, httpStatus }, 'search failed')
        }
        annotate(span, reply)
        return reply
      } catch (thrown) {
        if (context.signal.aborted) outcome = 'cancelled'
        span.setStatus({ code: SpanStatusCode.ERROR })
        throw thrown
      } finally {
        countSearch(backend.provider.id, outcome, performance.now() - started)
        span.end()
      }
    })

  const following = await followSettings({
    bus,
    log,
    apply(set) {
      inForce = withRuntime(settings, set)
      backends = openBackends(inForce, bounds, log, backends)
    },
  })
  await bus.serve(
    searchJudgeSettings,
    judgeSettings(settings, () => backends),
  )
  await serveTrying(bus, client, () => inForce.legacy.engines)

  await bus.serve(
    searchQuery,
    (request, context) =>
      work.run(context.signal, (signal) => {
        const { deadline, emit } = context
        return run(choose(request.instance), request, { signal, deadline, emit })
      }),
    { slots: CALL_SLOTS },
  )
  await bus.serve(
    searchMcp,
    async (request, { signal, deadline }) => {
      const started = performance.now()
      const searched = await work.run(signal, (ends) => searchForMcp(request, { signal: ends, deadline }))
      const { provider, outcome, httpStatus, reply } = searched
      if (provider !== undefined && outcome !== 'unconfigured') {
        countSearch(provider, outcome, performance.now() - started)
      }
      if (outcome !== 'ok')
        log.warn({ request: request.tenancy.request, provider, outcome, httpStatus }, 'search failed')
      return reply
    },
    { slots: CALL_SLOTS },
  )
  await bus.serve(
    searchFetch,
    ({ instance: name, tenancy, ...wanted }, { signal, deadline }) =>
      work.run(signal, async (ends) => {
        const instance = backends.fetchers.find(name)
        if (!instance) throw new Fault('not_found', `Unknown fetch tool '${name}'.`)
        const limits = { deadline: deadline - REPLY_MS, signal: ends }
        return fetchPage(instance, { ...wanted, request: tenancy.request }, limits)
      }),
    { slots: CALL_SLOTS },
  )
  await bus.serve(searchDescribe, async () => describe(backends))

  return {
    async close(deadline) {
      const inOrder = await work.close(deadline)
      await client.close()
      await following.close()
      return inOrder
    },
  }
}

/** Neither the query nor an address of the provider: traces leave the deployment (BR-122). */
function annotate(span: Span, reply: SearchReply): void {
  span.setAttribute('search.label', reply.label)
  if (reply.status === 'ok') {
    span.setAttribute('search.hits', reply.hits.length)
    return
  }
  span.setStatus({ code: SpanStatusCode.ERROR, message: reply.tag })
  span.setAttribute('error.type', reply.tag)
  if (reply.httpStatus !== undefined) span.setAttribute('http.response.status_code', reply.httpStatus)
}

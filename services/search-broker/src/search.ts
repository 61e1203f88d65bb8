import type { Bus, CallContext } from '@tollgate/bus'
import { type FailureTag, Fault, type searchQuery } from '@tollgate/contracts'
import { openDeadline, type TrustedClient } from '@tollgate/http'
import type { Log } from '@tollgate/telemetry'
import type { z } from 'zod'
import { type Asked, askProvider, type ProviderFailure } from './ask.ts'
import type { Backend } from './backend.ts'
import { sumCosts } from './costs.ts'
import { enrich, ownBody } from './enrich.ts'
import type { FetchPage } from './fetch/observed.ts'
import { layerOptions } from './options.ts'
import { builtinReader, instanceReader } from './page-readers.ts'
import type { FoundHit, ProviderAnswer } from './providers/provider.ts'
import { admit, showHit } from './results.ts'
import { DEFAULT_RESULTS } from './settings.ts'
import type { Slots } from './slots.ts'

export type SearchRequest = z.output<(typeof searchQuery)['input']>
export type SearchReply = z.input<(typeof searchQuery)['output']>
export type SearchContext = Pick<
  CallContext<z.input<NonNullable<(typeof searchQuery)['event']>>>,
  'signal' | 'deadline' | 'emit'
>

export interface SearchParts {
  bus: Bus
  client: TrustedClient
  fetchPage: FetchPage
  pageSlots: Slots
  log: Log
  defaultResults: number | undefined
}

/** Kept back of the caller's deadline, so that an answer about a late provider still arrives in time. */
export const REPLY_MS = 500

/** One search on a backend: ask, judge the hits, read their pages. A provider's failure is an answer (S-37). */
export async function search(
  backend: Backend,
  request: SearchRequest,
  context: SearchContext,
  parts: SearchParts,
): Promise<SearchReply> {
  const { label } = backend
  const deadline = context.deadline - REPLY_MS
  context.emit({ type: 'searching' })
  const count = wantedCount(backend, request, parts)
  const asked = await ask(backend, request, count, { deadline, signal: context.signal }, parts)
  if (asked.status === 'failed') return { ...asked, label }

  const hits = admit(asked.answer.hits, request.policy, count)
  const { bodies, costs } = await readPages(backend, request, hits, deadline, context, parts)
  const reportedCost = sumCosts([asked.answer.cost, ...costs])
  return {
    status: 'ok',
    label,
    hits: hits.map((hit, index) => showHit(hit, bodies[index] ?? '')),
    ...(reportedCost !== undefined && { reportedCost }),
  }
}

/** The request's number, else the deployment's, within what the backend can return (S-33, S-34, S-74). */
const wantedCount = (backend: Backend, request: SearchRequest, { defaultResults }: SearchParts): number =>
  Math.min(request.maxResults ?? defaultResults ?? DEFAULT_RESULTS, backend.mostResults ?? Number.POSITIVE_INFINITY)

async function ask(
  backend: Backend,
  request: SearchRequest,
  count: number,
  { deadline, signal }: { deadline: number; signal: AbortSignal },
  { client, log }: SearchParts,
): Promise<Asked<ProviderAnswer>> {
  const { provider, apiBase, apiKey, slots, timeoutMs } = backend
  if (apiBase === undefined) {
    throw new Fault(
      'invalid_request',
      `Search tool '${backend.instance}' has no api_base and no web_search_url to inherit.`,
    )
  }
  const query = request.query.trim()
  if (query === '') throw new Fault('invalid_request', 'The query is empty.')
  const options = layerOptions(provider, backend.options, request.options, log)
  refuseLong(query, provider.mostQueryCharacters?.(options))
  if (deadline <= Date.now()) return failed('timeout')

  const limit = openDeadline(deadline, signal)
  const wanted = {
    query,
    count,
    options,
    policy: request.policy,
    wantsPageText: request.enrich && backend.pages.read,
  }
  try {
    const asked = await slots.run(limit.signal, () =>
      askProvider(client, provider.request(wanted, { apiBase, apiKey }), provider, {
        deadline: Math.min(deadline, Date.now() + timeoutMs),
        signal,
      }),
    )
    return asked === 'full' ? failed('rate_limited') : asked
  } catch (thrown) {
    signal.throwIfAborted()
    if (limit.expired) return failed('timeout')
    throw thrown
  } finally {
    limit.end()
  }
}

/** What the provider would refuse is told without asking it, in words to make it shorter by (SP-10). */
function refuseLong(query: string, most = Number.POSITIVE_INFINITY): void {
  if (Array.from(query).length <= most) return
  throw new Fault('invalid_request', `The query is longer than the ${most} characters this search tool takes.`)
}

const failed = (tag: FailureTag): ProviderFailure => ({ status: 'failed', tag })

async function readPages(
  backend: Backend,
  { tenancy, policy, enrich: wanted }: SearchRequest,
  hits: FoundHit[],
  deadline: number,
  { signal, emit }: SearchContext,
  { bus, fetchPage, pageSlots }: SearchParts,
): Promise<{ bodies: string[]; costs: ProviderAnswer['cost'][] }> {
  const { read, allowPrivateHosts, fetcher } = backend.pages
  if (!read || !wanted) return { bodies: hits.map(ownBody), costs: [] }
  const limits = { tenancy, policy, deadline, signal, slots: pageSlots }
  const readPage = fetcher ? instanceReader(fetchPage, fetcher) : builtinReader(bus, allowPrivateHosts)
  return enrich(readPage, hits, { ...limits, onReading: () => emit({ type: 'reading' }) })
}

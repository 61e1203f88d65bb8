import {
  checkSearchOptions,
  Fault,
  instanceLabel,
  instancePriceKeys,
  otariPriceKeys,
  type PriceKey,
  type SearchHit,
  type SearchOption,
  searchQuery,
  toolError,
} from '@tollgate/contracts'
import type { ShownFailure, ToolOutcome } from '../conversation/events.ts'
import type { JsonObject } from '../conversation/turn.ts'
import type { Capabilities, InLoopSearch } from './capabilities.ts'
import { readHint, readMaxResults, readMaxUses } from './declared-members.ts'
import { readDomains } from './domains.ts'
import { renderHits } from './search-results.ts'
import {
  type BuiltIn,
  type CallContext,
  type Declaration,
  noOptions,
  type OpenTool,
  type ToolOptions,
  type ToolResult,
  type ToolUse,
} from './tool.ts'

const MOST_QUERY_CHARACTERS = 4_096
/** More than any provider returns; each clamps to its own maximum (S-34). */
const MOST_RESULTS = 1_000
/** Of a search that names no number, where the deployment names none either (S-33). */
export const DEFAULT_RESULTS = 5
/** Over any instance's own timeout and the enrichment after it; a broker that hangs costs no more than this. */
const SEARCH_MS = 120_000

const MEMBERS = new Set([
  'type',
  'max_uses',
  'max_results',
  'allowed_domains',
  'blocked_domains',
  'purpose_hint',
  'provider_options',
])

export const webSearch: BuiltIn = {
  type: 'otari_web_search',
  name: 'web_search',
  description: 'Search the web and return ranked results with page text.',
  parameters: { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] },
  hint: (settings) => settings.webSearchPurposeHint ?? 'Use it for anything recent.',
  available: ({ search }) => search !== null,
  acceptedTypes: ({ search, intercept }) => [
    'otari_web_search',
    ...(search !== null && intercept ? ['web_search', 'web_search_<date>', 'web_search_preview'] : []),
  ],
  unavailable:
    'otari_web_search tool requested but no search backend is configured on this gateway. Set OTARI_WEB_SEARCH_URL on the gateway, or remove otari_web_search from `tools`.',
  read,
  priceKeys: ({ search }) => (search === null ? otariPriceKeys('web_search') : keysOf(search, search.label)),
  shownInput: (input) => ({ query: queryOf(input) }),
  shownFailure,
  async open(options, use) {
    return openSearch(options, use)
  },
}

/** Arguments that are no query at all read as an empty one. */
const queryOf = ({ query }: JsonObject): string => (typeof query === 'string' ? query.trim() : '')

function shownFailure(input: JsonObject, failure: ShownFailure): ToolOutcome['shown'] {
  return { kind: 'web_search', query: queryOf(input), sources: [], failure }
}

function read(declaration: Declaration, { search }: Capabilities): ToolOptions {
  const { entry } = declaration
  const own = entry.type === 'otari_web_search'
  if (own && Object.keys(entry).some((member) => !MEMBERS.has(member))) {
    throw new Fault('invalid_request', 'otari_web_search declarations contain an unsupported field')
  }
  return {
    ...noOptions,
    maxUses: readMaxUses(declaration, 'web_search'),
    maxResults: readMaxResults(entry, 'web_search'),
    domains: readDomains(entry),
    hint: own ? readHint(entry, 'web_search') : undefined,
    providerOptions: own ? readProviderOptions(entry, search?.options ?? []) : {},
  }
}

/** S-35: what the provider does not take is refused before any model is called; of the options it takes, any reaches it. */
function readProviderOptions({ provider_options: value }: JsonObject, known: readonly SearchOption[]): JsonObject {
  if (value === undefined || value === null) return {}
  if (typeof value !== 'object' || Array.isArray(value)) {
    throw new Fault('invalid_request', 'otari_web_search provider_options must be an object')
  }
  const { accepted, problems } = checkSearchOptions(known, value)
  const [problem] = problems
  if (problem === undefined) return accepted
  const name = JSON.stringify(problem.name.slice(0, 64))
  throw new Fault('invalid_request', `otari_web_search provider_options: ${name} ${problem.why}`)
}

/** Calls served by what the deployment searches with have its rows; any other label is priced under `otari:` alone (P-07). */
function keysOf({ instance, provider }: InLoopSearch, label: string): PriceKey[] {
  return instance !== null && label === instanceLabel(provider, instance)
    ? instancePriceKeys('search', provider, instance)
    : otariPriceKeys('web_search')
}

function openSearch(options: ToolOptions, { bus, settings, capabilities, webCalls }: ToolUse): OpenTool {
  const { search } = capabilities
  if (search === null) throw new Fault('invalid_request', webSearch.unavailable)
  const wanted = options.maxResults ?? settings.webSearchMaxResults
  /** Results shown by all searches of the request (S-45), and searches that count against `max_uses` (S-17). */
  let shownBefore = 0
  let succeeded = 0

  const failed = (input: JsonObject, text: string, failure: ShownFailure, more?: Partial<ToolResult>): ToolResult => ({
    outcome: { text: toolError(text), isError: true, shown: shownFailure(input, failure) },
    label: search.label,
    priceKeys: keysOf(search, more?.label ?? search.label),
    ...more,
  })

  const ask = (query: string, { tenancy, signal, deadline }: CallContext) =>
    bus.call(
      searchQuery,
      {
        tenancy,
        instance: search.instance,
        query,
        maxResults: wanted === undefined ? undefined : Math.min(wanted, MOST_RESULTS),
        policy: options.domains,
        options: options.providerOptions,
      },
      { signal, deadline: Math.min(deadline, Date.now() + SEARCH_MS) },
    )

  return {
    async run(input, at) {
      if (options.maxUses !== undefined && succeeded >= options.maxUses) {
        return failed(input, 'max_uses_exceeded', { tag: 'call_limit', overMaxUses: true })
      }
      const refusal = webCalls.take('web search')
      if (refusal !== undefined) return failed(input, refusal, { tag: 'call_limit' })
      const query = queryOf(input)
      if (query === '') return failed(input, 'empty query', { tag: 'invalid_query' })
      if (query.length > MOST_QUERY_CHARACTERS) return failed(input, 'query too long', { tag: 'invalid_query' })

      const answer = await ask(query, at).catch((thrown: unknown) => unanswered(thrown, at))
      if (answer.status === 'refused') return failed(input, answer.why, { tag: 'invalid_query' })
      if (answer.status === 'unanswered') {
        return failed(input, `search failed (${answer.tag})`, { tag: answer.tag }, { cause: answer.cause })
      }
      if (answer.status === 'failed') {
        const { label, tag, httpStatus } = answer
        const why = httpStatus === undefined ? tag : `${tag}, HTTP ${httpStatus}`
        return failed(
          input,
          `search failed (${why})`,
          { tag, ...(httpStatus !== undefined && { httpStatus }) },
          { label },
        )
      }

      succeeded += 1
      const { text, shown } = renderHits(answer.hits, shownBefore + 1)
      shownBefore += shown.length
      return {
        outcome: {
          text: shown.length > 0 ? text : `No results for query: '${query}'`,
          isError: false,
          shown: { kind: 'web_search', query, sources: shown.map(source) },
        },
        label: answer.label,
        priceKeys: keysOf(search, answer.label),
        reportedCost: answer.reportedCost,
      }
    },
  }
}

const source = ({ url, title, date }: SearchHit) => ({ url, title, ...(date !== undefined && { date }) })

/** What to tell of a broker that gave no answer (S-38); anything but a refused query, its absence and slowness is a fault of ours. */
function unanswered(thrown: unknown, { signal }: CallContext) {
  const cause = Fault.from(thrown)
  // words of our own, that the model may write another query by
  if (!signal.aborted && cause.failure === 'invalid_request') return { status: 'refused', why: cause.message } as const
  if (signal.aborted || (cause.failure !== 'timeout' && cause.failure !== 'unavailable')) throw cause
  return { status: 'unanswered', tag: cause.failure === 'timeout' ? 'timeout' : 'network', cause } as const
}

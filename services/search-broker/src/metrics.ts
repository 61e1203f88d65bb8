import type { Failure, FailureTag, FetchFailure } from '@tollgate/contracts'
import { failures, failureTags, fetchFailure } from '@tollgate/contracts'
import { counter, histogram } from '@tollgate/telemetry'
import { fetchProviders } from './fetch/catalogue.ts'
import { mcpProviders } from './mcp/search.ts'
import { providers } from './providers/catalogue.ts'

export type SearchOutcome = 'ok' | FailureTag | 'cancelled' | 'internal'
export type FetchOutcome = 'ok' | 'refused' | FailureTag | 'cancelled' | 'internal'
export type PageOutcome = 'read' | FetchFailure | FailureTag | Failure

const searchOutcomes = ['ok', ...failureTags, 'cancelled', 'internal'] satisfies SearchOutcome[]
const fetchOutcomes = ['ok', 'refused', ...failureTags, 'cancelled', 'internal'] satisfies FetchOutcome[]
const pageOutcomes = [
  'read',
  ...fetchFailure.options,
  ...failureTags,
  ...(Object.keys(failures) as Failure[]),
] satisfies PageOutcome[]

const seconds = histogram('search_seconds', 'Searches, result pages included, by provider and outcome.', {
  provider: [...new Set([...providers, ...mcpProviders].map((provider) => provider.id))],
  outcome: searchOutcomes,
})
const fetchSeconds = histogram('fetch_instance_seconds', 'Pages fetched by fetch instances, by provider and outcome.', {
  provider: fetchProviders.map((provider) => provider.id),
  outcome: fetchOutcomes,
})
const pages = counter('search_pages_total', 'Result pages asked for to better a snippet, by outcome.', {
  outcome: [...new Set(pageOutcomes)],
})

export const countSearch = (provider: string, outcome: SearchOutcome, ms: number): void =>
  seconds.record(ms / 1_000, { provider, outcome })

export const countFetch = (provider: string, outcome: FetchOutcome, ms: number): void =>
  fetchSeconds.record(ms / 1_000, { provider, outcome })

export const countPage = (outcome: PageOutcome): void => pages.add(1, { outcome })

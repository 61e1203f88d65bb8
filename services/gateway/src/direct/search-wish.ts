import { checkSearchOptions, type DomainPolicy, Fault, type SearchOption } from '@tollgate/contracts'
import { readDomains } from '../tools/domains.ts'

/** What a direct search asks for, apart from which tool searches. */
export interface DirectSearch {
  query: string
  max_results: number
  search_domain_filter: string[]
  country?: string | undefined
  provider_options: Record<string, unknown>
}

/** D-19: what the provider does not take is refused. The country counts where the provider has an option for it (D-15). */
export function searchOptions(
  { country, provider_options }: DirectSearch,
  known: readonly SearchOption[],
): Record<string, unknown> {
  const { accepted, problems } = checkSearchOptions(known, provider_options)
  const [problem] = problems
  if (problem !== undefined) {
    throw new Fault('invalid_request', `provider_options: ${JSON.stringify(problem.name.slice(0, 64))} ${problem.why}`)
  }
  if (country === undefined) return accepted
  return { ...checkSearchOptions(known, { country: country.toUpperCase() }).accepted, ...accepted }
}

/** D-20: an entry with `-` before it leaves a domain out. */
export function searchPolicy({ search_domain_filter: filter }: DirectSearch): DomainPolicy {
  const excluded = filter.filter((entry) => entry.startsWith('-'))
  return readDomains({
    allowed_domains: filter.filter((entry) => !entry.startsWith('-')),
    blocked_domains: excluded.map((entry) => entry.slice(1)),
  })
}

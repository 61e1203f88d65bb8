import { z } from 'zod'
import { costDollars } from './exa-cost.ts'
import type { SearchProvider } from './provider.ts'
import { under } from './provider.ts'
import { hitList, text } from './replies.ts'

/** What of a page is asked for: a little more than is shown, so that a cut can be seen and marked. */
const TEXT_CHARACTERS = 2_000
/** Most domains in each of Exa's filters. */
const MOST_DOMAINS = 1_200
/** Categories Exa answers 400 for when a filter it does not support there is sent with them. */
const withoutExclusion: readonly unknown[] = ['company', 'people']
const withoutInclusion: readonly unknown[] = ['people']

const isoTime = String.raw`\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}:\d{2})?)?`

/**
 * Exa, `POST /search` with `x-api-key` (https://exa.ai/docs/reference/search). Page text is part of the search, and
 * `costDollars.total` is what it cost, zero included (SP-13, P-67); without that member the cost is unknown and a rate
 * applies (SP-14). Ten results are in the price of a search, each further one adds to it.
 */
export const exa: SearchProvider = {
  id: 'exa',
  docUrl: 'https://exa.ai/docs/reference/search',
  requiresApiKey: true,
  requiresApiBase: false,
  defaultApiBase: 'https://api.exa.ai',
  maxResults: 100,
  queryInUrl: false,
  keyInUrl: false,
  options: [
    {
      name: 'type',
      type: 'string',
      enum: ['auto', 'neural', 'fast', 'instant', 'deep-lite', 'deep', 'deep-reasoning'],
      default: 'auto',
      description: 'Kind of search; the deep ones cost more.',
    },
    {
      name: 'category',
      type: 'string',
      enum: ['company', 'people', 'research paper', 'news', 'personal site', 'financial report'],
      description: 'Kind of pages to look for.',
    },
    { name: 'user_location', type: 'string', pattern: '[A-Za-z]{2}', description: 'Country code of the user.' },
    { name: 'start_published_date', type: 'string', pattern: isoTime, description: 'Only pages published after it.' },
    { name: 'end_published_date', type: 'string', pattern: isoTime, description: 'Only pages published before it.' },
    { name: 'moderation', type: 'boolean', description: 'Leaves unsafe content out.' },
  ],

  request({ query, count, options, policy }, { apiBase, apiKey }) {
    const { type, category, moderation } = options
    const { allowedDomains, blockedDomains } = policy
    const include = isUsable(allowedDomains) && !withoutInclusion.includes(category) ? allowedDomains : undefined
    const exclude = isUsable(blockedDomains) && !withoutExclusion.includes(category) ? blockedDomains : undefined
    return {
      method: 'POST',
      url: under(apiBase, 'search'),
      headers: { 'x-api-key': apiKey ?? '' },
      body: {
        query,
        numResults: count,
        type,
        category,
        moderation,
        userLocation: options.user_location,
        startPublishedDate: options.start_published_date,
        endPublishedDate: options.end_published_date,
        includeDomains: include,
        excludeDomains: exclude,
        contents: { text: { maxCharacters: TEXT_CHARACTERS } },
      },
    }
  },

  answer: z
    .object({
      results: hitList(z.object({ title: text, url: text, text, publishedDate: text })),
      costDollars,
    })
    .transform(({ results, costDollars: cost }) => ({
      hits: results.map((hit) => ({
        title: hit.title,
        url: hit.url,
        snippet: '',
        pageText: hit.text,
        date: hit.publishedDate,
      })),
      cost,
    })),
}

const isUsable = (domains: string[] | null): domains is string[] =>
  domains !== null && domains.length > 0 && domains.length <= MOST_DOMAINS

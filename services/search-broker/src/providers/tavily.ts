import { z } from 'zod'
import type { SearchProvider } from './provider.ts'
import { under } from './provider.ts'
import { hitList, text } from './replies.ts'

/** Most domains Tavily takes in each of its filters; a longer list is left to our own judgement of the hits. */
const MOST_INCLUDED = 300
const MOST_EXCLUDED = 150

const isoDay = String.raw`\d{4}-\d{2}-\d{2}`

/**
 * Tavily, `POST /search` with a bearer key (https://docs.tavily.com/documentation/api-reference/endpoint/search). It
 * counts credits and reports no dollars. `raw_content` is the page's text, `published_date` (news) an RFC 1123 date.
 */
export const tavily: SearchProvider = {
  id: 'tavily',
  docUrl: 'https://docs.tavily.com/documentation/api-reference/endpoint/search',
  requiresApiKey: true,
  requiresApiBase: false,
  defaultApiBase: 'https://api.tavily.com',
  maxResults: 20,
  queryInUrl: false,
  keyInUrl: false,
  options: [
    {
      name: 'search_depth',
      type: 'string',
      enum: ['basic', 'advanced', 'fast', 'ultra-fast'],
      default: 'basic',
      description: 'How thoroughly Tavily searches; advanced costs two credits instead of one.',
    },
    { name: 'topic', type: 'string', enum: ['general', 'news', 'finance'], description: 'Kind of sources.' },
    {
      name: 'time_range',
      type: 'string',
      enum: ['day', 'week', 'month', 'year', 'd', 'w', 'm', 'y'],
      description: 'How old a result may be.',
    },
    { name: 'start_date', type: 'string', pattern: isoDay, description: 'Only results after this day, YYYY-MM-DD.' },
    { name: 'end_date', type: 'string', pattern: isoDay, description: 'Only results before this day, YYYY-MM-DD.' },
    {
      name: 'include_answer',
      type: 'boolean',
      description: 'Has Tavily write an answer too; only the results are shown.',
    },
    {
      name: 'include_raw_content',
      type: 'boolean',
      description: 'Page text from Tavily instead of pages read by the gateway; on unless set to false.',
    },
  ],

  request({ query, count, options, policy, wantsPageText }, { apiBase, apiKey }) {
    const { allowedDomains, blockedDomains } = policy
    const included = allowedDomains?.length && allowedDomains.length <= MOST_INCLUDED ? allowedDomains : undefined
    const excluded = blockedDomains.length > 0 && blockedDomains.length <= MOST_EXCLUDED ? blockedDomains : undefined
    return {
      method: 'POST',
      url: under(apiBase, 'search'),
      headers: { authorization: `Bearer ${apiKey}` },
      body: {
        include_raw_content: wantsPageText,
        ...options,
        query,
        max_results: count,
        ...(included && { include_domains: included }),
        ...(excluded && { exclude_domains: excluded }),
      },
    }
  },

  answer: z
    .object({
      results: hitList(z.object({ title: text, url: text, content: text, raw_content: text, published_date: text })),
    })
    .transform(({ results }) => ({
      hits: results.map((hit) => ({
        title: hit.title,
        url: hit.url,
        snippet: hit.content,
        pageText: hit.raw_content,
        date: hit.published_date,
      })),
    })),

  /** 432: the key's or plan's limit is used up; 433: the pay-as-you-go limit is. */
  failure: (httpStatus) => (httpStatus === 432 || httpStatus === 433 ? 'quota' : undefined),
}

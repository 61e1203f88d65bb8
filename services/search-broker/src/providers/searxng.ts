import { z } from 'zod'
import type { SearchProvider } from './provider.ts'
import { under } from './provider.ts'
import { hitList, text } from './replies.ts'

/**
 * A self-hosted SearXNG, or any service with its `GET /search?format=json`
 * (https://docs.searxng.org/dev/search_api.html; value ranges from its searx/webadapter.py). No key and no cost. It takes
 * no number of hits: a page holds what its engines found. `extracted_content` is no SearXNG member: services of the same
 * shape send page text in it (S-75).
 */
export const searxng: SearchProvider = {
  id: 'searxng',
  docUrl: 'https://docs.searxng.org/dev/search_api.html',
  requiresApiKey: false,
  requiresApiBase: true,
  queryInUrl: true,
  keyInUrl: false,
  options: [
    { name: 'engines', type: 'string', description: 'Engines to ask, separated by commas.', operatorOnly: true },
    { name: 'categories', type: 'string', description: 'Categories to search in, separated by commas.' },
    {
      name: 'language',
      type: 'string',
      pattern: 'auto|all|[a-z]{2,3}(-[a-zA-Z]{2})?',
      description: 'Language of the results, such as en or pt-BR.',
    },
    {
      name: 'time_range',
      type: 'string',
      enum: ['day', 'week', 'month', 'year'],
      description: 'How old a result may be, for engines that know.',
    },
    { name: 'safesearch', type: 'integer', minimum: 0, maximum: 2, description: '0 off, 1 moderate, 2 strict.' },
  ],

  request({ query, options }, { apiBase }) {
    const url = under(apiBase, 'search')
    url.search = new URLSearchParams({
      ...Object.fromEntries(Object.entries(options).map(([name, value]) => [name, String(value)])),
      q: query,
      format: 'json',
    }).toString()
    return { method: 'GET', url, headers: {} }
  },

  answer: z
    .object({
      results: hitList(
        z.object({
          title: text,
          url: text,
          content: text,
          publishedDate: text,
          pubdate: text,
          extracted_content: text,
        }),
      ),
    })
    .transform(({ results }) => ({
      hits: results.map((hit) => ({
        title: hit.title,
        url: hit.url,
        snippet: hit.content,
        pageText: hit.extracted_content,
        date: hit.publishedDate || hit.pubdate,
      })),
    })),
}

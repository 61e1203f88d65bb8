import { z } from 'zod'
import { openSearchFake, type SearchFake } from './search-server.ts'

export interface SearxngResult {
  url: string
  title: string
  content?: string
  /** ISO without a zone, as SearXNG writes it. */
  publishedDate?: string | null
  /** What services of SearXNG's shape may add. */
  extracted_content?: string
}

const parameters = z.strictObject({
  q: z.string().min(1),
  format: z.literal('json'),
  engines: z.string().min(1).optional(),
  categories: z.string().min(1).optional(),
  language: z
    .string()
    .regex(/^(auto|[a-z]{2,3}(-[a-zA-Z]{2})?)$/)
    .optional(),
  pageno: z.coerce.number().int().min(1).optional(),
  time_range: z.enum(['day', 'week', 'month', 'year']).optional(),
  safesearch: z.coerce.number().int().min(0).max(2).optional(),
})

/** SearXNG's search API (docs/dev/search_api.rst, searx/webadapter.py), with JSON switched on in its settings. */
export const fakeSearxng = (): Promise<SearchFake<SearxngResult>> =>
  openSearchFake(({ method, path, query, body }, results) => {
    if (method !== 'GET' || path !== '/search' || body !== undefined) {
      return { refused: `${method} ${path} is not the search API`, status: 404, body: {} }
    }
    const read = parameters.safeParse(query)
    if (!read.success) return { refused: z.prettifyError(read.error), status: 400, body: { error: 'Invalid value' } }
    return {
      body: {
        query: read.data.q,
        number_of_results: results.length,
        results: results.map((result) => ({ engine: 'mojeek', score: 1, category: 'general', ...result })),
        answers: [],
        corrections: [],
        infoboxes: [],
        suggestions: [],
        unresponsive_engines: [],
      },
    }
  })

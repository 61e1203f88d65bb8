import { z } from 'zod'
import { openSearchFake, type SearchFake } from './search-server.ts'

export interface TavilyResult {
  title: string
  url: string
  content: string
  /** Sent only when the request asked for it. */
  raw_content?: string
  published_date?: string
}

const day = z.string().regex(/^\d{4}-\d{2}-\d{2}$/)

const searchBody = z.strictObject({
  query: z.string().min(1).max(400),
  auto_parameters: z.boolean().optional(),
  topic: z.enum(['general', 'news', 'finance']).optional(),
  search_depth: z.enum(['basic', 'advanced', 'fast', 'ultra-fast']).optional(),
  chunks_per_source: z.int().min(1).max(3).optional(),
  max_results: z.int().min(0).max(20).optional(),
  time_range: z.enum(['day', 'week', 'month', 'year', 'd', 'w', 'm', 'y']).optional(),
  start_date: day.optional(),
  end_date: day.optional(),
  include_answer: z.union([z.boolean(), z.enum(['basic', 'advanced'])]).optional(),
  include_raw_content: z.union([z.boolean(), z.enum(['markdown', 'text'])]).optional(),
  include_images: z.boolean().optional(),
  include_domains: z.array(z.string()).max(300).optional(),
  exclude_domains: z.array(z.string()).max(150).optional(),
  country: z.string().optional(),
  include_usage: z.boolean().optional(),
})

/**
 * Tavily's search endpoint (docs.tavily.com, API reference, Search). `usage` is what it reports to those who ask; null: as
 * an account for which it reports nothing.
 */
export const fakeTavily = ({
  apiKey,
  usage = { credits: 1 },
}: {
  apiKey: string
  usage?: object | null
}): Promise<SearchFake<TavilyResult>> =>
  openSearchFake(({ method, path, headers, body }, results) => {
    if (method !== 'POST' || path !== '/search') return refuse(404, `${method} ${path} is not an endpoint`)
    if (headers.authorization !== `Bearer ${apiKey}`) return refuse(401, 'Unauthorized: missing or invalid API key.')
    if (headers['content-type'] !== 'application/json') return refuse(415, 'the body must be JSON')
    const read = searchBody.safeParse(body)
    if (!read.success) return refuse(400, z.prettifyError(read.error))
    const { query, max_results = 5, include_answer, include_raw_content, include_usage } = read.data
    return {
      body: {
        query,
        answer: include_answer ? 'A short answer.' : null,
        images: [],
        results: results.slice(0, max_results).map(({ raw_content, ...result }) => ({
          ...result,
          score: 0.8,
          raw_content: include_raw_content ? (raw_content ?? null) : null,
        })),
        response_time: 0.4,
        ...(include_usage && usage !== null && { usage }),
        request_id: '123e4567-e89b-12d3-a456-426614174111',
      },
    }
  })

const refuse = (status: number, error: string) => ({ refused: error, status, body: { detail: { error } } })

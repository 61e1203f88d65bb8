import { z } from 'zod'
import { openSearchFake, type SearchFake, type Vendor } from './search-server.ts'

export interface BraveResult {
  title: string
  url: string
  /** With HTML entities, as Brave sends it. */
  description?: string
  /** ISO without a zone. */
  page_age?: string
  /** Sent only when the request asked for them. */
  extra_snippets?: string[]
}

const flag = z.enum(['true', 'false', '1', '0'])
const countries =
  'ALL AR AU AT BE BR CA CL DK FI FR DE HK IN ID IT JP KR MY MX NL NZ NO CN PL PT PH RU SA ZA ES SE CH TW TR GB US'

const parameters = z.strictObject({
  q: z
    .string()
    .min(1)
    .max(400)
    .refine((query) => query.split(/\s+/).length <= 50, 'at most 50 words'),
  country: z.enum(countries.split(' ') as [string, ...string[]]).optional(),
  search_lang: z
    .string()
    .regex(/^[a-z]{2}(-[a-z]{2,4})?$/)
    .optional(),
  count: z.coerce.number().int().min(1).max(20).optional(),
  offset: z.coerce.number().int().min(0).max(9).optional(),
  safesearch: z.enum(['off', 'moderate', 'strict']).optional(),
  freshness: z
    .string()
    .regex(/^(p[dwmy]|\d{4}-\d{2}-\d{2}to\d{4}-\d{2}-\d{2})$/)
    .optional(),
  text_decorations: flag.optional(),
  spellcheck: flag.optional(),
  result_filter: z.string().optional(),
  extra_snippets: flag.optional(),
})

const newsParameters = parameters
  .omit({ count: true, result_filter: true, text_decorations: true })
  .extend({ count: z.coerce.number().int().min(1).max(50).optional() })

/** Brave's web and news search endpoints (api-dashboard.search.brave.com, API reference). A wrong token is a 422, not a 401. */
export const fakeBrave = ({ apiKey }: { apiKey: string }): Promise<SearchFake<BraveResult>> =>
  openSearchFake(({ method, path, headers, query, body }, results) => {
    const isNews = path === '/res/v1/news/search'
    if (method !== 'GET' || (path !== '/res/v1/web/search' && !isNews) || body !== undefined) {
      return refuse(404, 'NOT_FOUND', `${method} ${path} is not an endpoint`)
    }
    const token = headers['x-subscription-token']
    if (token === undefined) return refuse(422, 'VALIDATION', 'x-subscription-token is required')
    if (token !== apiKey)
      return refuse(422, 'SUBSCRIPTION_TOKEN_INVALID', 'The provided subscription token is invalid.')
    if (isNews) return news(query, results)
    const read = parameters.safeParse(query)
    if (!read.success) return refuse(422, 'VALIDATION', z.prettifyError(read.error))
    const { q, count = 20, text_decorations, extra_snippets } = read.data
    const decorated = text_decorations !== 'false' && text_decorations !== '0'
    const web = {
      type: 'search',
      family_friendly: true,
      results: results.slice(0, count).map(({ extra_snippets: extras, ...result }) => ({
        type: 'search_result',
        subtype: 'generic',
        is_live: false,
        language: 'en',
        family_friendly: true,
        ...result,
        description: decorated ? `<strong>${result.description ?? ''}</strong>` : result.description,
        ...(extra_snippets === 'true' && extras && { extra_snippets: extras }),
      })),
    }
    return { body: { type: 'search', query: { original: q }, ...(results.length > 0 && { web }) } }
  })

function news(query: unknown, results: BraveResult[]): ReturnType<Vendor<BraveResult>> {
  const read = newsParameters.safeParse(query)
  if (!read.success) return refuse(422, 'VALIDATION', z.prettifyError(read.error))
  const { q, count = 20 } = read.data
  const found = results.slice(0, count).map((result) => ({ type: 'news_result', age: '2 hours ago', ...result }))
  return { body: { type: 'news', query: { original: q }, results: found } }
}

const refuse = (status: number, code: string, detail: string) => ({
  refused: detail,
  status,
  body: {
    type: 'ErrorResponse',
    error: { id: '5d832250-9396-4f6e-b84a-2a1fe524cd7d', status, code, detail, meta: {} },
    time: 1_663_072_993,
  },
})

import { z } from 'zod'
import { openSearchFake, type SearchFake } from './search-server.ts'

export interface ExaResult {
  title: string | null
  url: string
  publishedDate?: string
  /** Cut to the `maxCharacters` of the request. */
  text?: string
}

export interface ExaFake extends SearchFake<ExaResult> {
  /** What a search costs from now on; undefined leaves the member out. */
  costs(total: number | undefined): void
}

const moment = z.string().refine((text) => !Number.isNaN(Date.parse(text)), 'must be ISO 8601')
const domains = z.array(z.string()).max(1_200).optional()

const searchBody = z
  .strictObject({
    query: z.string().min(1),
    type: z.enum(['neural', 'fast', 'auto', 'deep-lite', 'deep', 'deep-reasoning', 'instant']).optional(),
    category: z.enum(['company', 'people', 'research paper', 'news', 'personal site', 'financial report']).optional(),
    userLocation: z.string().length(2).optional(),
    numResults: z.int().min(1).max(100).optional(),
    includeDomains: domains,
    excludeDomains: domains,
    startPublishedDate: moment.optional(),
    endPublishedDate: moment.optional(),
    moderation: z.boolean().optional(),
    contents: z
      .strictObject({
        text: z.union([z.boolean(), z.strictObject({ maxCharacters: z.int().positive().optional() })]).optional(),
      })
      .optional(),
  })
  .refine(
    ({ category, excludeDomains }) => !excludeDomains || (category !== 'company' && category !== 'people'),
    'excludeDomains is not supported for this category',
  )

/** Exa's search endpoint (exa.ai/docs/reference/search). */
export async function fakeExa({ apiKey }: { apiKey: string }): Promise<ExaFake> {
  let total: number | undefined = 0.007
  const fake = await openSearchFake<ExaResult>(({ method, path, headers, body }, results) => {
    if (method !== 'POST' || path !== '/search') return refuse(404, 'NOT_FOUND', `${method} ${path} is not an endpoint`)
    if (headers['x-api-key'] !== apiKey) return refuse(401, 'INVALID_API_KEY', 'Invalid API key')
    if (headers['content-type'] !== 'application/json') return refuse(400, 'INVALID_REQUEST_BODY', 'not JSON')
    const read = searchBody.safeParse(body)
    if (!read.success) return refuse(400, 'INVALID_REQUEST_BODY', z.prettifyError(read.error))
    const { numResults = 10, contents, type = 'auto' } = read.data
    const wanted = contents?.text
    const most =
      typeof wanted === 'object' ? (wanted.maxCharacters ?? Number.POSITIVE_INFINITY) : Number.POSITIVE_INFINITY
    return {
      body: {
        requestId: 'b5947044c4b78efa9552a7c89b306d95',
        resolvedSearchType: type,
        results: results.slice(0, numResults).map(({ text, ...result }) => ({
          id: result.url,
          author: null,
          ...result,
          ...(wanted && text !== undefined && { text: text.slice(0, most) }),
        })),
        ...(total !== undefined && { costDollars: { total } }),
      },
    }
  })
  return Object.assign(fake, {
    costs: (dollars: number | undefined) => {
      total = dollars
    },
  })
}

const refuse = (status: number, tag: string, error: string) => ({
  refused: error,
  status,
  body: { requestId: 'b5947044c4b78efa9552a7c89b306d95', error, tag },
})

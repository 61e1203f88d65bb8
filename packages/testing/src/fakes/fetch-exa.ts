import { z } from 'zod'
import { type FakePage, isFetchable } from './fetch-pages.ts'
import { openSearchFake, type SearchFake } from './search-server.ts'

export interface ExaContentsFake extends SearchFake<FakePage> {
  /** What a page costs from now on; undefined leaves the member out. */
  costs(total: number | undefined): void
  /** What `statuses` says of an address instead of what is so; with a page, the page is there all the same. */
  says(url: string, error: { tag: string; httpStatusCode?: number | null }): void
}

const contentsBody = z.strictObject({
  urls: z.array(z.string().refine(isFetchable, 'must be a URL')).min(1).max(100),
  text: z.union([z.boolean(), z.strictObject({ maxCharacters: z.int().positive().optional() })]).optional(),
  maxAgeHours: z.int().min(-1).max(720).optional(),
})

/** Exa's contents endpoint (exa.ai/docs/reference/get-contents): what became of each URL stands in `statuses`. */
export async function fakeExaContents({ apiKey }: { apiKey: string }): Promise<ExaContentsFake> {
  let total: number | undefined = 0.001
  const errors = new Map<string, object>()
  const fake = await openSearchFake<FakePage>(({ method, path, headers, body }, pages) => {
    if (method !== 'POST' || path !== '/contents') return refuse(404, 'NOT_FOUND', `${method} ${path} is no endpoint`)
    if (headers['x-api-key'] !== apiKey) return refuse(401, 'INVALID_API_KEY', 'Invalid API key')
    if (headers['content-type'] !== 'application/json') return refuse(400, 'INVALID_REQUEST_BODY', 'not JSON')
    const read = contentsBody.safeParse(body)
    if (!read.success) return refuse(400, 'INVALID_REQUEST_BODY', z.prettifyError(read.error))
    const { urls, text: wanted } = read.data
    const most = typeof wanted === 'object' ? (wanted.maxCharacters ?? Infinity) : Infinity
    const found = urls.flatMap((url) => pages.filter((page) => page.url === url && !errors.has(url)))
    return {
      body: {
        requestId: REQUEST,
        results: found.map(({ url, text, title = null }) => ({
          id: url,
          url,
          title,
          author: null,
          ...(wanted && text !== '' && { text: text.slice(0, most) }),
        })),
        statuses: urls.map((url) => {
          const error = errors.get(url) ?? (found.some((page) => page.url === url) ? undefined : notFound)
          return error ? { id: url, status: 'error', error } : { id: url, status: 'success', source: 'cached' }
        }),
        ...(total !== undefined && { costDollars: { total, contents: { text: total } } }),
      },
    }
  })
  return Object.assign(fake, {
    costs: (dollars: number | undefined) => {
      total = dollars
    },
    says: (url: string, error: object) => void errors.set(url, error),
  })
}

const REQUEST = 'e492118ccdedcba5088bfc4357a8a125'
const notFound = { tag: 'CRAWL_NOT_FOUND', httpStatusCode: 404 }

const refuse = (status: number, tag: string, error: string) => ({
  refused: error,
  status,
  body: { requestId: REQUEST, error, tag },
})

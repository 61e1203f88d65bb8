import { z } from 'zod'
import { openSearchFake, type SearchFake } from './search-server.ts'

export interface MojeekResult {
  title: string
  url: string
  desc?: string
  /** Seconds. */
  pdate?: number
}

const day = z.string().regex(/^(day|month|year|\d{8})$/)

const parameters = z.strictObject({
  api_key: z.string(),
  q: z.string().min(1),
  fmt: z.enum(['json', 'xml']).default('xml'),
  t: z.coerce.number().int().min(1).max(10).default(10),
  s: z.coerce.number().int().min(1).optional(),
  since: day.optional(),
  before: day.optional(),
  safe: z.enum(['0', '1']).optional(),
})

/** Mojeek's Search API (www.mojeek.com/support/api/search): a wrong key is a 200 that says so, no key at all a 403. */
export const fakeMojeek = ({ apiKey }: { apiKey: string }): Promise<SearchFake<MojeekResult>> =>
  openSearchFake(({ method, path, query, body }, results) => {
    if (method !== 'GET' || path !== '/search' || body !== undefined)
      return { refused: `${method} ${path} is no endpoint`, status: 404, body: {} }
    if (!query.api_key) return { refused: 'no api_key', status: 403, body: {} }
    const read = parameters.safeParse(query)
    if (!read.success) return { refused: z.prettifyError(read.error), status: 503, body: {} }
    const { q, t, fmt, api_key } = read.data
    if (fmt !== 'json') return { refused: 'XML, which nobody asked for', status: 503, body: {} }
    const found = api_key === apiKey ? results.slice(0, t) : []
    return {
      body: {
        response: {
          status: api_key === apiKey ? 'OK' : 'Access Denied: invalid key/password',
          head: { query: q, nword: 1, timer: 0.61, start: 1, return: found.length, exact: true, results: found.length },
          results: found.map((result) => ({ mres: 1, score: 20.36, cfs: 5, ...result })),
        },
      },
    }
  })

import { z } from 'zod'
import { openSearchFake, type SearchFake } from './search-server.ts'

export interface SerperResult {
  title?: string
  link?: string
  snippet?: string
}

const searchBody = z.strictObject({
  q: z.string().min(1),
  num: z.int().min(1).max(100).optional(),
  gl: z.string().optional(),
  hl: z.string().optional(),
  page: z.int().min(1).optional(),
  tbs: z.string().optional(),
})

/** Serper's web and news search (serper.dev, playground). A wrong key is a 403 with a message. */
export const fakeSerper = ({ apiKey }: { apiKey: string }): Promise<SearchFake<SerperResult>> =>
  openSearchFake(({ method, path, headers, body }, results) => {
    const type = path === '/news' ? 'news' : 'search'
    if (method !== 'POST' || (path !== '/search' && path !== '/news')) return refuse(404, `Cannot ${method} ${path}`)
    if (headers['x-api-key'] !== apiKey) return refuse(403, 'Unauthorized.')
    const read = searchBody.safeParse(body)
    if (!read.success) return refuse(400, z.prettifyError(read.error))
    const { q, num = 10 } = read.data
    const found = results.slice(0, num).map((result, at) => ({ ...result, position: at + 1 }))
    const searchParameters = { q, type, num, engine: 'google' }
    return { body: { searchParameters, ...(type === 'news' ? { news: found } : { organic: found }), credits: 1 } }
  })

const refuse = (status: number, message: string) => ({
  refused: message,
  status,
  body: { message, statusCode: status },
})

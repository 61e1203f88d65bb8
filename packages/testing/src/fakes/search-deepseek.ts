import { z } from 'zod'
import { openSearchFake, type SearchFake } from './search-server.ts'

export interface DeepseekResult {
  title: string
  url: string
  snippet?: string
  summary?: string
  /** Sent only when the request asked for it. */
  content?: string
  /** ISO 8601. */
  date?: string
}

const characters = (most: number) =>
  z.string().refine((text) => text.trim() !== '' && Array.from(text).length <= most, `1 to ${most} characters`)

const searchBody = z.strictObject({
  query: characters(128),
  count: z.int().min(1).max(50).default(10),
  need_content: z.boolean().default(false),
  ori_question: characters(128).nullish(),
  localization: z.union([z.ipv4(), z.ipv6(), z.literal('')]).default(''),
})

/** DeepSeek's search endpoint (api-docs.deepseek.com/guides/search). */
export const fakeDeepseekSearch = ({ apiKey }: { apiKey: string }): Promise<SearchFake<DeepseekResult>> =>
  openSearchFake<DeepseekResult>(({ method, path, headers, body }, results) => {
    if (method !== 'POST' || path !== '/v1/tools/search') return refuse(404, `${method} ${path} is no endpoint`)
    if (headers.authorization !== `Bearer ${apiKey}`) return refuse(401, 'Authentication Fails')
    if (headers['content-type'] !== 'application/json') return refuse(400, 'not JSON')
    const read = searchBody.safeParse(body)
    if (!read.success) return refuse(400, z.prettifyError(read.error))
    const { count, need_content } = read.data
    return {
      body: {
        results: results.slice(0, count).map(({ content = '', ...result }) => ({
          snippet: '',
          summary: '',
          rerank_score: 2.1,
          authority: 3,
          site_name: 'Site',
          site_icon: '',
          date: '',
          ...result,
          content: need_content ? content : '',
        })),
      },
    }
  })

const refuse = (status: number, message: string) => ({
  refused: message,
  status,
  body: { error: { message, type: 'invalid_request_error', param: null, code: 'invalid_request_error' } },
})

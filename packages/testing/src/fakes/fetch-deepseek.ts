import { z } from 'zod'
import { type FakePage, isFetchable } from './fetch-pages.ts'
import { openSearchFake, type SearchFake } from './search-server.ts'

const fetchBody = z.strictObject({ url: z.string() })

/** DeepSeek's fetch endpoint (api-docs.deepseek.com/guides/search): one page as Markdown, 404 for what it cannot turn into it. */
export const fakeDeepseekFetch = ({ apiKey }: { apiKey: string }): Promise<SearchFake<FakePage>> =>
  openSearchFake<FakePage>(({ method, path, headers, body }, pages) => {
    if (method !== 'POST' || path !== '/v1/tools/fetch') return refuse(404, `${method} ${path} is no endpoint`)
    if (headers.authorization !== `Bearer ${apiKey}`) return refuse(401, 'Authentication Fails')
    if (headers['content-type'] !== 'application/json') return refuse(400, 'not JSON')
    const read = fetchBody.safeParse(body)
    if (!read.success) return refuse(400, z.prettifyError(read.error))
    if (!isFetchable(read.data.url)) return refuse(400, "'url' must be a valid HTTP or HTTPS URL")
    const page = pages.find(({ url }) => url === read.data.url)
    if (!page) return refuse(404, 'failed to fetch URL')
    return { body: { title: page.title ?? '', content: page.text } }
  })

const refuse = (status: number, message: string) => ({
  refused: message,
  status,
  body: { error: { message, type: 'invalid_request_error', param: null, code: 'invalid_request_error' } },
})

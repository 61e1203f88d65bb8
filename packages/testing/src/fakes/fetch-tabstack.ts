import { z } from 'zod'
import { type FakePage, isFetchable } from './fetch-pages.ts'
import { openSearchFake, type SearchFake } from './search-server.ts'

const markdownBody = z.strictObject({
  url: z.string(),
  content: z.enum(['main', 'full']).optional(),
  effort: z.enum(['min', 'standard', 'max']).optional(),
  metadata: z.boolean().optional(),
  nocache: z.boolean().optional(),
})

/** Tabstack's Markdown endpoint (docs.tabstack.ai/api): a page's facts stand as YAML before its text unless asked for apart. */
export const fakeTabstack = ({ apiKey }: { apiKey: string }): Promise<SearchFake<FakePage>> =>
  openSearchFake<FakePage>(({ method, path, headers, body }, pages) => {
    if (method !== 'POST' || path !== '/v1/extract/markdown') return refuse(404, `${method} ${path} is no endpoint`)
    if (headers.authorization !== `Bearer ${apiKey}`) return refuse(401, 'Unauthorized - Invalid token')
    if (headers['content-type'] !== 'application/json') return refuse(400, 'not JSON')
    const read = markdownBody.safeParse(body)
    if (!read.success) return refuse(400, z.prettifyError(read.error))
    const { url, metadata } = read.data
    if (!isFetchable(url)) return refuse(400, 'url is invalid')
    const page = pages.find((known) => known.url === url)
    if (!page) return refuse(422, 'failed to fetch URL')
    const { text, title = '' } = page
    return {
      body: metadata
        ? { url, content: text, metadata: { title, type: 'article' } }
        : { url, content: `---\ntitle: ${title}\n---\n${text}` },
    }
  })

const refuse = (status: number, error: string) => ({ refused: error, status, body: { error } })

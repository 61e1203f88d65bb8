import { z } from 'zod'
import { plain } from '../providers/brave.ts'
import { under } from '../providers/provider.ts'
import { hitList, text } from '../providers/replies.ts'
import { type McpProvider, unreported } from './provider.ts'

const hits = hitList(z.object({ title: text, url: text, description: text }))

const replies = {
  // `web` is left out when nothing was found
  general: z
    .object({ type: z.literal('search'), web: z.object({ results: hits }).optional() })
    .transform(({ web }) => web?.results ?? []),
  news: z.object({ type: z.literal('news'), results: hits.default([]) }).transform(({ results }) => results),
}

/**
 * Brave, `GET /res/v1/web/search` or `/res/v1/news/search` with `X-Subscription-Token`
 * (https://api-dashboard.search.brave.com/api-reference); it knows no depth and reports no use (WM-68).
 */
export const brave: McpProvider = {
  id: 'brave',
  defaultApiBase: 'https://api.search.brave.com',

  request({ query, numResults, searchType }, { apiBase, apiKey }) {
    const url = under(apiBase, searchType === 'news' ? 'res/v1/news/search' : 'res/v1/web/search')
    url.search = new URLSearchParams({ q: query, count: String(numResults) }).toString()
    return { method: 'GET', url, headers: { 'x-subscription-token': apiKey ?? '' } }
  },

  read(body, { searchType }) {
    const read = replies[searchType].safeParse(body)
    if (!read.success) return undefined
    return {
      hits: read.data.map(({ title, url, description }) => ({ title: plain(title), url, snippet: plain(description) })),
      usage: unreported,
    }
  },
}

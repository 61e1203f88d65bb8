import { z } from 'zod'
import { under } from '../providers/provider.ts'
import { hitList, text } from '../providers/replies.ts'
import { type McpProvider, unreported } from './provider.ts'

const hits = hitList(z.object({ title: text, link: text, snippet: text }))

const replies = {
  general: z.object({ organic: hits.default([]) }).transform(({ organic }) => organic),
  news: z.object({ news: hits.default([]) }).transform(({ news }) => news),
}

/** Serper (https://serper.dev), `POST /search` or `/news` with `X-API-KEY`; it knows no depth and reports no use (WM-67). */
export const serper: McpProvider = {
  id: 'serper',
  defaultApiBase: 'https://google.serper.dev',

  request: ({ query, numResults, searchType }, { apiBase, apiKey }) => ({
    method: 'POST',
    url: under(apiBase, searchType === 'news' ? 'news' : 'search'),
    headers: { 'x-api-key': apiKey ?? '' },
    body: { q: query, num: numResults },
  }),

  read(body, { searchType }) {
    const read = replies[searchType].safeParse(body)
    if (!read.success) return undefined
    return { hits: read.data.map(({ title, link, snippet }) => ({ title, url: link, snippet })), usage: unreported }
  },
}

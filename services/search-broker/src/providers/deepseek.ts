import { z } from 'zod'
import type { SearchProvider } from './provider.ts'
import { under } from './provider.ts'
import { hitList, text } from './replies.ts'

const MOST_CHARACTERS = 128

const daysOf: Readonly<Record<string, number>> = { day: 1, week: 7, month: 30, year: 365 }
const DAY_MS = 24 * 60 * 60 * 1000

/** DeepSeek has no member for it, but takes `after:` in the query, which counts among its characters (SP-10). */
function after(range: unknown): string {
  const days = daysOf[String(range)]
  return days === undefined ? '' : ` after:${new Date(Date.now() - days * DAY_MS).toISOString().slice(0, 10)}`
}

/**
 * DeepSeek, `POST /v1/tools/search` with a bearer key, which is the one its models take
 * (https://api-docs.deepseek.com/guides/search). It reports no cost, and sends page text when asked to; `date` is ISO.
 */
export const deepseek: SearchProvider = {
  id: 'deepseek',
  docUrl: 'https://api-docs.deepseek.com/guides/search',
  requiresApiKey: true,
  requiresApiBase: false,
  defaultApiBase: 'https://api.deepseek.com',
  maxResults: 50,
  queryInUrl: false,
  keyInUrl: false,
  options: [
    {
      name: 'need_content',
      type: 'boolean',
      description: 'Page text from DeepSeek instead of pages read by the gateway.',
    },
    { name: 'time_range', type: 'string', enum: Object.keys(daysOf), description: 'How old a result may be.' },
  ],
  mostQueryCharacters: ({ time_range }) => MOST_CHARACTERS - after(time_range).length,

  request: ({ query, count, options: { time_range, need_content } }, { apiBase, apiKey }) => ({
    method: 'POST',
    url: under(apiBase, 'v1/tools/search'),
    headers: { authorization: `Bearer ${apiKey}` },
    body: { query: `${query}${after(time_range)}`, count, need_content: need_content === true },
  }),

  answer: z
    .object({
      results: hitList(z.object({ title: text, url: text, snippet: text, summary: text, content: text, date: text })),
    })
    .transform(({ results }) => ({
      hits: results.map(({ title, url, snippet, summary, content, date }) => ({
        title,
        url,
        snippet: snippet || summary,
        pageText: content,
        date,
      })),
    })),
}

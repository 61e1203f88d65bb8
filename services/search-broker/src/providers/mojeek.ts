import { z } from 'zod'
import type { SearchProvider } from './provider.ts'
import { under } from './provider.ts'
import { hitList, text } from './replies.ts'

const day = String.raw`day|month|year|\d{8}`

const seconds = z.number().positive().max(253_402_300_799).optional().catch(undefined)

/** What a reply that is no result says of it: any text but `OK`. */
const refused = z.object({ response: z.object({ status: z.string() }) })

/**
 * Mojeek, `GET /search` with key and query in the URL (https://www.mojeek.com/support/api/search/request_parameters.html).
 * No cost is reported and no page text sent. A wrong key and a used-up plan are answered 200, with the trouble in
 * `response.status` (https://www.mojeek.com/support/api/search/json_response.html); a missing key is a 403.
 */
export const mojeek: SearchProvider = {
  id: 'mojeek',
  docUrl: 'https://www.mojeek.com/support/api/search/request_parameters.html',
  requiresApiKey: true,
  requiresApiBase: false,
  defaultApiBase: 'https://api.mojeek.com',
  maxResults: 10,
  queryInUrl: true,
  keyInUrl: true,
  options: [
    {
      name: 'since',
      type: 'string',
      pattern: day,
      description: 'Only results since then: day, month, year, YYYYMMDD.',
    },
    { name: 'before', type: 'string', pattern: day, description: 'Only results before then, in the same forms.' },
    { name: 'safe', type: 'boolean', description: 'Leaves adult content out.' },
  ],

  request({ query, count, options: { safe, ...others } }, { apiBase, apiKey }) {
    const url = under(apiBase, 'search')
    url.search = new URLSearchParams({
      ...Object.fromEntries(Object.entries(others).map(([name, value]) => [name, String(value)])),
      ...(safe !== undefined && { safe: safe ? '1' : '0' }),
      api_key: apiKey ?? '',
      q: query,
      t: String(count),
      fmt: 'json',
    }).toString()
    return { method: 'GET', url, headers: {} }
  },

  answer: z
    .object({
      response: z.object({
        status: z.literal('OK'),
        results: hitList(z.object({ title: text, url: text, desc: text, pdate: seconds })).default([]),
      }),
    })
    .transform(({ response: { results } }) => ({
      hits: results.map(({ title, url, desc, pdate }) => ({
        title,
        url,
        snippet: desc,
        date: pdate === undefined ? undefined : new Date(pdate * 1_000).toISOString(),
      })),
    })),

  failure(httpStatus, body) {
    const reply = refused.safeParse(body)
    if (httpStatus !== 200 || !reply.success) return undefined
    const { status } = reply.data.response
    if (/\bkey\b/i.test(status)) return 'authentication'
    return /\blimit\b/i.test(status) ? 'quota' : undefined
  },
}

import { z } from 'zod'
import type { SearchProvider } from './provider.ts'
import { under } from './provider.ts'
import { hitList, text } from './replies.ts'

const freshness: Record<string, string> = {
  d: 'pd',
  day: 'pd',
  w: 'pw',
  week: 'pw',
  m: 'pm',
  month: 'pm',
  y: 'py',
  year: 'py',
}

const countries =
  'ALL AR AU AT BE BR CA CL DK FI FR DE HK IN ID IT JP KR MY MX NL NZ NO CN PL PT PH RU SA ZA ES SE CH TW TR GB US'.split(
    ' ',
  )

const errorReply = z.object({ error: z.object({ code: z.string() }) })

/**
 * Brave, `GET /res/v1/web/search` with `X-Subscription-Token`
 * (https://api-dashboard.search.brave.com/api-reference/web/search/get). No cost is reported. Titles and descriptions come
 * with HTML entities, and with highlighting tags unless `text_decorations` is off; `page_age` is ISO without a zone. A
 * wrong key is answered 422, told from a wrong request by the code `SUBSCRIPTION_TOKEN_INVALID`.
 */
export const brave: SearchProvider = {
  id: 'brave',
  docUrl: 'https://api-dashboard.search.brave.com/api-reference/web/search/get',
  requiresApiKey: true,
  requiresApiBase: false,
  defaultApiBase: 'https://api.search.brave.com',
  maxResults: 20,
  queryInUrl: true,
  keyInUrl: false,
  options: [
    {
      name: 'freshness',
      type: 'string',
      enum: [...Object.keys(freshness), ...new Set(Object.values(freshness))],
      description: 'How long ago a result was found: day, week, month or year.',
    },
    { name: 'country', type: 'string', enum: countries, description: 'Country the results come from.' },
    {
      name: 'search_lang',
      type: 'string',
      pattern: '[a-z]{2}(-[a-z]{2,4})?',
      description: 'Language of the results, such as en or pt-br.',
    },
    { name: 'safesearch', type: 'string', enum: ['off', 'moderate', 'strict'], description: 'Adult content filter.' },
    { name: 'spellcheck', type: 'boolean', description: 'Whether Brave may correct the query.' },
    {
      name: 'extra_snippets',
      type: 'boolean',
      description: 'Up to five more excerpts a result, on plans that have them.',
    },
  ],

  request({ query, count, options }, { apiBase, apiKey }) {
    const { freshness: age, ...others } = options
    const url = under(apiBase, 'res/v1/web/search')
    url.search = new URLSearchParams({
      ...Object.fromEntries(Object.entries(others).map(([name, value]) => [name, String(value)])),
      ...(age !== undefined && { freshness: freshness[String(age)] ?? String(age) }),
      q: query,
      count: String(count),
      result_filter: 'web',
      text_decorations: 'false',
    }).toString()
    return { method: 'GET', url, headers: { 'x-subscription-token': apiKey ?? '' } }
  },

  answer: z
    .object({
      type: z.literal('search'),
      // Left out when nothing was found.
      web: z
        .object({
          results: hitList(
            z.object({
              title: text,
              url: text,
              description: text,
              page_age: text,
              extra_snippets: z.array(text).optional().catch(undefined),
            }),
          ),
        })
        .optional(),
    })
    .transform(({ web }) => ({
      hits: (web?.results ?? []).map((hit) => ({
        title: plain(hit.title),
        url: hit.url,
        snippet: plain([hit.description, ...(hit.extra_snippets ?? [])].filter(Boolean).join('\n')),
        date: hit.page_age,
      })),
    })),

  failure(httpStatus, body) {
    const reply = errorReply.safeParse(body)
    const refused = httpStatus === 422 && reply.success && reply.data.error.code === 'SUBSCRIPTION_TOKEN_INVALID'
    return refused ? 'authentication' : undefined
  },
}

const entities: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ' }

/** Brave's display text without its highlighting and with its entities spelled out, each once. */
export const plain = (html: string): string =>
  html
    .replace(/<\/?(?:strong|b|em)>/g, '')
    .replace(
      /&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|([a-z]{2,4}));/gi,
      (whole, hex?: string, decimal?: string, name?: string) => {
        if (name !== undefined) return entities[name.toLowerCase()] ?? whole
        const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16)
        return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : whole
      },
    )

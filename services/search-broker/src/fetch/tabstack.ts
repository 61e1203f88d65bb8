import { z } from 'zod'
import { under } from '../providers/provider.ts'
import { text } from '../providers/replies.ts'
import type { FetchProvider } from './provider.ts'

const metadata = z.object({ title: text }).nullish().catch(undefined)

/**
 * Tabstack, `POST /extract/markdown` with a bearer key (https://docs.tabstack.ai/api). Without `metadata` the page's facts
 * stand as YAML in front of its text. It reports no cost, and may hand out a site's error page as the page; a page takes
 * up to 15 seconds, with `effort: max` up to 60 (FP-06).
 */
export const tabstack: FetchProvider = {
  id: 'tabstack',
  docUrl: 'https://docs.tabstack.ai/api',
  requiresApiKey: true,
  defaultApiBase: 'https://api.tabstack.ai/v1',
  reportsFinalUrl: false,
  options: [
    {
      name: 'effort',
      type: 'string',
      enum: ['min', 'standard', 'max'],
      description: 'How hard a page is tried: min is fastest, max shows it in a browser.',
    },
    { name: 'content', type: 'string', enum: ['main', 'full'], description: 'The main content, or the whole page.' },
    { name: 'nocache', type: 'boolean', description: 'Reads the page anew each time.' },
  ],

  request: ({ url, options }, { apiBase, apiKey }) => ({
    method: 'POST',
    url: under(apiBase, 'extract/markdown'),
    headers: { authorization: `Bearer ${apiKey ?? ''}` },
    body: { url, metadata: true, ...options },
  }),

  answer: z
    .object({ content: z.string(), metadata })
    .transform(({ content, metadata: facts }) => ({ status: 'ok', text: content, title: facts?.title })),
}

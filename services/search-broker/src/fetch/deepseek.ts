import { z } from 'zod'
import { under } from '../providers/provider.ts'
import { text } from '../providers/replies.ts'
import type { FetchProvider } from './provider.ts'

/**
 * DeepSeek, `POST /v1/tools/fetch` with a bearer key, which is the one its models take (https://api-docs.deepseek.com/guides/search).
 * It cannot be told how much text is wanted, and reports no cost; a page it cannot turn into Markdown, a missing one or a
 * PDF, is a 404 (FP-03).
 */
export const deepseek: FetchProvider = {
  id: 'deepseek',
  docUrl: 'https://api-docs.deepseek.com/guides/search',
  requiresApiKey: true,
  defaultApiBase: 'https://api.deepseek.com',
  reportsFinalUrl: false,
  options: [],

  request: ({ url }, { apiBase, apiKey }) => ({
    method: 'POST',
    url: under(apiBase, 'v1/tools/fetch'),
    headers: { authorization: `Bearer ${apiKey ?? ''}` },
    body: { url },
  }),

  answer: z
    .object({ title: text, content: z.string() })
    .transform(({ title, content }) => ({ status: 'ok', text: content, title })),
}

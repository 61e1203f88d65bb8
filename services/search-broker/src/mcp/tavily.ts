import { z } from 'zod'
import { under } from '../providers/provider.ts'
import { hitList, text } from '../providers/replies.ts'
import type { McpProvider, McpSearch, McpUsage } from './provider.ts'

/** Credits of a search by its depth, for when Tavily does not say (WM-65). */
const credits: Record<McpSearch['searchDepth'], number> = { basic: 1, advanced: 2, fast: 1, 'ultra-fast': 1 }

const reply = z.object({
  results: hitList(z.object({ title: text, url: text, content: text })),
  usage: z.record(z.string(), z.unknown()).optional().catch(undefined),
  request_id: z.string().optional().catch(undefined),
  response_time: z.union([z.number(), z.string()]).optional().catch(undefined),
})

/**
 * Tavily, `POST /search` (https://docs.tavily.com/documentation/api-reference/endpoint/search). News is a topic and leaves
 * the depth alone; `include_usage` has it report the credits it took.
 */
export const tavily: McpProvider = {
  id: 'tavily',
  defaultApiBase: 'https://api.tavily.com',

  request: ({ query, numResults, searchType, searchDepth }, { apiBase, apiKey }) => ({
    method: 'POST',
    url: under(apiBase, 'search'),
    headers: { authorization: `Bearer ${apiKey}` },
    body: { query, max_results: numResults, topic: searchType, search_depth: searchDepth, include_usage: true },
  }),

  read(body, search) {
    const read = reply.safeParse(body)
    if (!read.success) return undefined
    const { results, ...report } = read.data
    return {
      hits: results.map(({ title, url, content }) => ({ title, url, snippet: content })),
      usage: usageOf(report, search),
    }
  },
}

/** What was reported, or an estimate that says it is one (WM-65, WM-66). */
function usageOf(report: Omit<z.output<typeof reply>, 'results'>, { searchDepth }: McpSearch): McpUsage {
  const { usage = {}, request_id, response_time } = report
  const reported = Object.keys(usage).length > 0
  return {
    ...(reported ? usage : { estimated: true, estimated_credits: credits[searchDepth] }),
    search_depth: searchDepth,
    ...(request_id !== undefined && { request_id }),
    ...(response_time !== undefined && { response_time }),
    provider_reported: reported,
  }
}

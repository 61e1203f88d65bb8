import type { Bus } from '@tollgate/bus'
import { searchMcp } from '@tollgate/contracts'
import { z } from 'zod'
import { type CallAt, failed, type Outcome, unanswered } from './call.ts'
import { errorResult, jsonResult, type McpTool, mcpTool } from './tool.ts'

const MOST_RESULTS = 20
/** Over the 30 s that the broker gives a provider (WM-63). */
const SEARCH_MS = 40_000

const searchArguments = z.object({
  query: z.string().max(4_096).regex(/\S/, 'must not be blank').describe('What to search for'),
  num_results: z.int().min(1).default(5).describe(`Results wanted; more than ${MOST_RESULTS} means ${MOST_RESULTS}`),
  search_type: searchMcp.input.shape.searchType.default('general').describe('The web, or news'),
  search_depth: searchMcp.input.shape.searchDepth
    .default('basic')
    .describe('How thoroughly to search, where the provider knows a difference; advanced may cost more'),
})
type SearchArguments = z.output<typeof searchArguments>
type Found = Extract<z.output<typeof searchMcp.output>, { status: 'ok' }>

/** `web_search`: what the configured provider finds (WM-60). */
export const webSearch = (bus: Bus): McpTool =>
  mcpTool({
    name: 'web_search',
    description:
      'Search the web and return titles, URLs and snippets as a JSON object. Read a result with fetch_webpage; ' +
      'format_search_results turns the whole answer into numbered entries with references.',
    openWorld: true,
    arguments: searchArguments,
    async answer(wanted, run) {
      const outcome = await run('web_search', (at) => search(bus, wanted, at))
      if (!outcome.ok) return errorResult(`web_search failed: ${outcome.message}`)
      const { provider, results, usage } = outcome.value
      return jsonResult({ provider, query: wanted.query, results, usage })
    },
  })

async function search(bus: Bus, wanted: SearchArguments, at: CallAt): Promise<Outcome<Found>> {
  const input = {
    tenancy: at.tenancy,
    query: wanted.query,
    // WA-22: a wish for more is lowered, not refused
    numResults: Math.min(wanted.num_results, MOST_RESULTS),
    searchType: wanted.search_type,
    searchDepth: wanted.search_depth,
  }
  const deadline = Math.min(at.deadline, Date.now() + SEARCH_MS)
  try {
    const found = await bus.call(searchMcp, input, { deadline, signal: at.signal })
    if (found.status === 'ok') return { ok: true, value: found, label: found.label }
    return failed('upstream', found.message, found.label === undefined ? {} : { label: found.label })
  } catch (thrown) {
    return unanswered(thrown, 'the search', at)
  }
}

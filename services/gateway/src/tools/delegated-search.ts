import { clipBytes, Fault, TOOL_RESULT_BYTES, toolError } from '@tollgate/contracts'
import type { ToolOutcome } from '../conversation/events.ts'
import { UpstreamFault } from '../models/upstream-fault.ts'
import type { NestedSearch, Tool, ToolResult } from './tool.ts'

const NAME = 'nsed_delegated_search'
const MOST_QUERY_CHARACTERS = 8_192
const CUT = '\n[Text truncated at the 50 KiB limit of a tool result.]'

/**
 * A backend's search for a model whose backend takes that tool only alone: each call is one more completion at the same
 * seat (PE-35..PE-41). Its name is its own so that no backend and no caller means another tool by it (PE-36).
 */
export const delegatedSearch: Tool = {
  name: NAME,
  description: 'Search the web and return what was found as text.',
  parameters: {
    type: 'object',
    properties: { query: { type: 'string', description: 'What to search for' } },
    required: ['query'],
    additionalProperties: false,
  },
  // what its backend asks is recorded by the nested completion, under the backend's own label
  priceKeys: () => [],
  shownInput: () => ({}),
  shownFailure: (_input, failure) => ({ kind: 'provider_tool', name: NAME, search: true, failure }),
  async open() {
    return {
      async run({ query }, { nested, signal }) {
        if (nested === undefined) throw new Error(`${NAME} was called at a seat that has no such search`)
        const wanted = typeof query === 'string' ? query.trim().slice(0, MOST_QUERY_CHARACTERS) : ''
        if (wanted === '') return ran(`${nested.name}: no query given`, nested)
        try {
          const found = (await nested.search(wanted)).trim()
          const text = found === '' ? `${nested.name}: no results for "${wanted}"` : found
          return ran(clipBytes(text, TOOL_RESULT_BYTES, CUT), nested)
        } catch (thrown) {
          if (signal.aborted) throw thrown
          return failed(Fault.from(thrown), nested)
        }
      },
    }
  },
}

const ran = (text: string, nested: NestedSearch): ToolResult => result(nested, { text, isError: false })

/** The backend's own text stays here (PE-40). */
function failed(fault: Fault, nested: NestedSearch): ToolResult {
  const httpStatus = fault instanceof UpstreamFault ? fault.upstreamStatus : undefined
  const status = httpStatus === undefined ? '' : ` with HTTP status ${httpStatus}`
  const text = toolError(`search failed (${fault.failure})${status}`)
  const failure = { tag: fault.failure, ...(httpStatus !== undefined && { httpStatus }) }
  return { ...result(nested, { text, isError: true }, failure), cause: fault }
}

function result(
  { name }: NestedSearch,
  outcome: Pick<ToolOutcome, 'text' | 'isError'>,
  failure?: { tag: string; httpStatus?: number },
): ToolResult {
  const shown = { kind: 'provider_tool' as const, name, search: true, ...(failure && { failure }) }
  return { outcome: { ...outcome, shown }, label: `otari:${NAME}`, priceKeys: [], reportedCost: '0' }
}

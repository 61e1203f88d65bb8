import { otariLabel, toolError } from '@tollgate/contracts'
import type { JsonObject } from '../conversation/turn.ts'
import type { Tool, ToolResult } from './tool.ts'
import { patternSearch, type Search, type SearchedTool, SearchFailure, wordSearch } from './tool-search-index.ts'

const MOST_DESCRIPTION = 200

/**
 * The search for tools that a request declares but does not show its model at once, on a model whose provider has none
 * (BR-064). What it finds is offered from the next round on.
 */
function toolSearch(
  name: string,
  description: string,
  queryDescription: string,
  open: (tools: readonly SearchedTool[]) => Search,
): Tool {
  const query = ({ query: given }: JsonObject): string => (typeof given === 'string' ? given.trim() : '')
  const free = { label: otariLabel(name), priceKeys: [], reportedCost: '0' }

  return {
    name,
    description,
    parameters: {
      type: 'object',
      properties: { query: { type: 'string', description: queryDescription } },
      required: ['query'],
      additionalProperties: false,
    },
    priceKeys: () => [],
    shownInput: (input) => ({ query: query(input) }),
    shownFailure: () => ({ kind: 'tool_search', found: [], failure: { tag: 'unavailable' } }),
    async open() {
      /** As long as the same tools are searched. */
      let opened: { tools: readonly SearchedTool[]; search: Search } | undefined
      return {
        async run(input, { deferred = [] }): Promise<ToolResult> {
          if (opened?.tools !== deferred) opened = { tools: deferred, search: open(deferred) }
          try {
            if (query(input) === '') throw new SearchFailure('invalid_tool_input', "'query' must say what to look for.")
            const names = await opened.search(query(input))
            const found = names.flatMap((one) => deferred.find((tool) => tool.name === one) ?? [])
            return {
              outcome: { text: told(found), isError: false, shown: { kind: 'tool_search', found: names } },
              ...free,
            }
          } catch (thrown) {
            if (!(thrown instanceof SearchFailure)) throw thrown
            const shown = { kind: 'tool_search' as const, found: [], failure: { tag: thrown.code } }
            return { outcome: { text: toolError(thrown.message), isError: true, shown }, ...free }
          }
        },
      }
    },
  }
}

function told(found: readonly SearchedTool[]): string {
  if (found.length === 0) return 'No tool was found. Try other words, or fewer of them.'
  const lines = found.map(({ name, description = '' }) => `- ${name}: ${description.slice(0, MOST_DESCRIPTION)}`)
  return `These tools were found, and can be called now:\n${lines.join('\n')}`.toWellFormed()
}

const PURPOSE =
  'Searches for further tools that are not listed, by their names, descriptions and arguments. Search whenever none of ' +
  'the listed tools does what is needed; what is found can be called afterwards.'

/** By the names under which the vendor knows them. */
export const toolSearches = {
  regex: toolSearch(
    'tool_search_tool_regex',
    PURPOSE,
    'A regular expression, such as "weather" or "get_.*_data"',
    patternSearch,
  ),
  bm25: toolSearch('tool_search_tool_bm25', PURPOSE, 'What the tool should do, in a few words', wordSearch),
} as const

/** The search that a type of the vendor's declares. */
export function toolSearchOfType(type: string): Tool | undefined {
  const [, kind] = /^tool_search_tool_(regex|bm25)(?:_\d{8})?$/.exec(type) ?? []
  return kind === undefined ? undefined : toolSearches[kind as keyof typeof toolSearches]
}

import { randomBytes } from 'node:crypto'
import { clipBytes } from '@tollgate/contracts'
import type { ShownFailure, ToolActivity, ToolOutcome } from '../../conversation/events.ts'
import type { JsonObject, Turn } from '../../conversation/turn.ts'
import { SERVER_TOOL_ID } from './echo.ts'
import { mcpBlocks } from './mcp-blocks.ts'

/** The vendor's own keywords for what a tool of ours stands in for. */
const KEYWORDS: Record<string, RegExp> = {
  web_search: /^web_search(_\d{8})?$/,
  web_fetch: /^web_fetch_\d{8}$/,
  code_execution: /^code_execution(_\d{8})?$/,
  tool_search_tool_regex: /^tool_search_tool_regex(_\d{8})?$/,
  tool_search_tool_bm25: /^tool_search_tool_bm25(_\d{8})?$/,
}
const MOST_TITLE_BYTES = 512
const MOST_AGE_CHARACTERS = 128
const MOST_BLOCK_BYTES = 50 * 1024

/**
 * Shows a call of ours as the pair of blocks in which the vendor shows its own: only to callers who declared the vendor's
 * keyword, since only they know these blocks.
 */
export function toolBlocks(tools: Turn['tools'], headers?: Turn['headers']): (activity: ToolActivity) => JsonObject[] {
  const ofServers = mcpBlocks(headers)
  const native = new Set(
    Object.entries(KEYWORDS).flatMap(([name, pattern]) =>
      tools.some((entry) => entry.kind === 'typed' && pattern.test(entry.type)) ? [name] : [],
    ),
  )
  return (activity) => {
    const { phase, call, outcome } = activity
    if (call.server !== undefined) return ofServers(activity)
    if (phase !== 'finished' || outcome === undefined || !native.has(call.tool)) return []
    const result = resultOf(outcome)
    if (result === undefined) return []
    const id = SERVER_TOOL_ID + randomBytes(16).toString('hex')
    const input = Object.fromEntries(Object.entries(call.input).filter(([, value]) => value !== null))
    return [
      { type: 'server_tool_use', id, name: call.tool, input },
      { type: resultType(call.tool), tool_use_id: id, content: result },
    ]
  }
}

/** Both searches for tools have the one kind of result. */
const resultType = (tool: string): string => `${tool.replace(/^(tool_search)_tool_.*/, '$1')}_tool_result`

/** Undefined: the client is shown nothing of it. */
function resultOf({ shown }: ToolOutcome): JsonObject | JsonObject[] | undefined {
  switch (shown.kind) {
    case 'web_search':
      return shown.failure ? searchError(shown.failure) : searchResults(shown.sources)
    case 'web_fetch':
      return shown.failure ? fetchError(shown.failure) : fetched(shown)
    case 'code_execution':
      return ran(shown)
    case 'tool_search':
      return toolsFound(shown)
    case 'mcp':
    // its results never reach us, and none are made up (PE-63)
    case 'provider_tool':
      return undefined
    default:
      return shown satisfies never
  }
}

type Shown<K extends ToolOutcome['shown']['kind']> = ToolOutcome['shown'] & { kind: K }

/** whole results, as many as fit. */
function searchResults(sources: Shown<'web_search'>['sources']): JsonObject[] {
  const results: JsonObject[] = []
  let bytes = 0
  for (const { url, title, date } of sources) {
    const result: JsonObject = {
      type: 'web_search_result',
      url,
      title: clipBytes(title, MOST_TITLE_BYTES, '…'),
      ...(date !== undefined && {
        page_age: date.replace(/\s+/g, ' ').trim().slice(0, MOST_AGE_CHARACTERS).toWellFormed(),
      }),
      encrypted_content: '',
    }
    bytes += Buffer.byteLength(JSON.stringify(result)) + 1
    if (bytes > MOST_BLOCK_BYTES - 256) break
    results.push(result)
  }
  return results
}

/** only its own `max_uses` is a failure the vendor's clients know what to do about. */
const searchError = ({ overMaxUses }: ShownFailure): JsonObject | undefined =>
  overMaxUses ? { type: 'web_search_tool_result_error', error_code: 'max_uses_exceeded' } : undefined

function fetched({ url, document }: Shown<'web_fetch'>): JsonObject {
  return {
    type: 'web_fetch_result',
    url: url ?? '',
    ...(document && { retrieved_at: document.retrievedAt }),
    content: {
      type: 'document',
      source: { type: 'text', media_type: 'text/plain', data: document?.text ?? '' },
      ...(document?.title && { title: clipBytes(document.title, MOST_TITLE_BYTES, '…') }),
    },
  }
}

function toolsFound({ found, failure }: Shown<'tool_search'>): JsonObject {
  if (failure) return { type: 'tool_search_tool_result_error', error_code: failure.tag, error_message: null }
  const references = found.map((name) => ({ type: 'tool_reference', tool_name: name }))
  return { type: 'tool_search_tool_search_result', tool_references: references }
}

/** R-27, by the tags of a fetch that failed. */
const FETCH_ERRORS: Record<string, string> = {
  invalid_url: 'url_not_allowed',
  blocked: 'url_not_allowed',
  redirect: 'url_not_allowed',
  timeout: 'url_not_accessible',
  network: 'url_not_accessible',
  http_error: 'url_not_accessible',
  unsupported_content_type: 'unsupported_content_type',
}

function fetchError({ tag, overMaxUses }: ShownFailure): JsonObject {
  const known = Object.hasOwn(FETCH_ERRORS, tag) ? FETCH_ERRORS[tag] : undefined
  const code = overMaxUses ? 'max_uses_exceeded' : (known ?? 'unavailable')
  return { type: 'web_fetch_tool_result_error', error_code: code }
}

/** a program that failed has a result all the same; only stored files are announced. */
function ran({ stdout, stderr, returnCode, files = [] }: Shown<'code_execution'>): JsonObject {
  if (returnCode === undefined) return { type: 'code_execution_tool_result_error', error_code: 'unavailable' }
  return {
    type: 'code_execution_result',
    stdout,
    stderr,
    return_code: returnCode,
    content: files.flatMap(({ id }) => (id === undefined ? [] : [{ type: 'code_execution_output', file_id: id }])),
  }
}

import { type FailureTag, otariLabel, type searchMcp } from '@tollgate/contracts'
import { httpFailure, openDeadline, type TrustedClient } from '@tollgate/http'
import type { z } from 'zod'
import { type AskOptions, sendRequest } from '../ask.ts'
import { baseProblem } from '../entries.ts'
import type { ProviderAccess } from '../providers/provider.ts'
import type { McpSearchSettings, SearchBounds } from '../settings.ts'
import { openSlots } from '../slots.ts'
import { clip, oneLine } from '../text.ts'
import { brave } from './brave.ts'
import type { McpProvider, McpSearch } from './provider.ts'
import { scrub } from './scrub.ts'
import { serper } from './serper.ts'
import { tavily } from './tavily.ts'

export type McpReply = z.input<typeof searchMcp.output>

/** What became of a search, for counting and for the log: the reply's words are for the client. */
export interface McpSearched {
  reply: McpReply
  provider?: McpProvider['id']
  outcome: 'ok' | 'unconfigured' | FailureTag
  httpStatus?: number
}

export const mcpProviders: readonly McpProvider[] = [tavily, serper, brave]

/** Fixed, whatever is set for pages (WM-63). */
export const PROVIDER_TIMEOUT_MS = 30_000
/** Kept back of the caller's deadline, so that a failure still reaches it. */
const REPLY_MS = 500
/** A longer error is not shown at all: where it is cut, half of a key could stand. */
const MOST_ERROR_BYTES = 64 * 1024
const MOST_SHOWN_CHARACTERS = 500
const names = 'tavily, serper or brave'
const label = otariLabel('web_search')

/** The search of the web MCP server on the one provider it is set up with (WM-60). */
export function openMcpSearch(settings: McpSearchSettings, client: TrustedClient, bounds: SearchBounds) {
  const { provider: id, apiKey, apiBase, timeoutMs = PROVIDER_TIMEOUT_MS } = settings
  const provider = mcpProviders.find((known) => known.id === id)
  const baseWrong = apiBase === undefined ? undefined : baseProblem(apiBase, apiKey !== undefined)
  if (baseWrong) throw new Error(`mcp_web_search_api_base ${baseWrong}`)
  const slots = openSlots({ places: bounds.searches, waiting: bounds.waitingSearches })

  return async (
    search: McpSearch,
    { deadline, signal }: { deadline: number; signal: AbortSignal },
  ): Promise<McpSearched> => {
    if (id === undefined) return unconfigured(`set DPTTOOLS_WEB_SEARCH_PROVIDER to ${names}`)
    if (provider === undefined) return unconfigured(`DPTTOOLS_WEB_SEARCH_PROVIDER must be ${names}`)
    if (apiKey === undefined) return unconfigured(`set DPTTOOLS_WEB_SEARCH_API_KEY to the API key of ${provider.id}`)
    const access = { apiBase: apiBase ?? provider.defaultApiBase, apiKey }
    const end = Math.min(deadline - REPLY_MS, Date.now() + timeoutMs)
    const limit = openDeadline(end, signal)
    try {
      const asked = await slots.run(limit.signal, () =>
        ask(client, provider, access, search, { deadline: end, signal }),
      )
      if (asked !== 'full') return asked
      return failed(provider, 'rate_limited', 'too many searches are under way; try again later')
    } catch (thrown) {
      signal.throwIfAborted()
      if (!limit.expired) throw thrown
      return failed(
        provider,
        'timeout',
        `${provider.id} did not answer within ${Math.round(timeoutMs / 1_000)} seconds`,
      )
    } finally {
      limit.end()
    }
  }
}

async function ask(
  client: TrustedClient,
  provider: McpProvider,
  access: ProviderAccess & { apiKey: string },
  search: McpSearch,
  limits: AskOptions,
): Promise<McpSearched> {
  const request = provider.request(search, access)
  const reply = await sendRequest(client, request, limits)
  const { id } = provider
  if (reply.status === 'failed') {
    return failed(provider, reply.tag, `${id} ${unreadable[reply.tag] ?? 'could not be reached'}`, reply.httpStatus)
  }
  const { httpStatus, bytes } = reply
  const tag = httpFailure(httpStatus)
  if (tag !== undefined) {
    const words = wordsOf(bytes, { origin: request.url.origin, key: access.apiKey })
    return failed(provider, tag, `${id} answered with status ${httpStatus}${words}`, httpStatus)
  }
  const answer = provider.read(parsed(bytes), search)
  if (answer === undefined) {
    return failed(provider, 'invalid_response', `${id} answered with something that is no search result`, httpStatus)
  }
  const results = answer.hits
    .filter((hit) => hit.url !== '')
    .slice(0, search.numResults)
    .map((hit) => ({
      title: hit.title.toWellFormed(),
      url: hit.url.toWellFormed(),
      snippet: hit.snippet.toWellFormed(),
    }))
  return {
    outcome: 'ok',
    provider: id,
    reply: { status: 'ok', provider: id, results, usage: answer.usage, label },
  }
}

const unreadable: Partial<Record<FailureTag, string>> = {
  timeout: 'did not answer in time',
  invalid_response: 'gave an answer that is too long or malformed',
}

function wordsOf(bytes: Uint8Array, secrets: { origin: string; key: string }): string {
  if (bytes.length > MOST_ERROR_BYTES) return ''
  const words = oneLine(scrub(new TextDecoder().decode(bytes), secrets))
  return words === '' ? '' : `: ${clip(words, MOST_SHOWN_CHARACTERS)}`
}

/** Undefined when it is no JSON, which no provider's form is. */
function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return undefined
  }
}

const unconfigured = (message: string): McpSearched => ({
  outcome: 'unconfigured',
  reply: { status: 'failed', message: `web search is not set up: ${message}` },
})

const failed = (provider: McpProvider, tag: FailureTag, message: string, httpStatus?: number): McpSearched => ({
  outcome: tag,
  provider: provider.id,
  ...(httpStatus !== undefined && { httpStatus }),
  reply: { status: 'failed', message, label },
})

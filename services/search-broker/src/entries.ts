import { BUILTIN_FETCH, parseUrl } from '@tollgate/contracts'
import { fetchProviders, findFetchProvider } from './fetch/catalogue.ts'
import { findProvider, providers } from './providers/catalogue.ts'
import type { SearchSettings, SearchToolSettings, ToolEntry } from './settings.ts'

/** What is the matter with the configured instances, one line an entry and problem; any stops the start (CFG-56, FP-01). */
export function entryProblems({ searchTools, fetchTools = {} }: SearchSettings): string[] {
  return [
    ...linesOf('search_tools', searchTools, (name, tool) => searchProblems(name, tool)),
    ...linesOf('fetch_tools', fetchTools, (name, tool) => [
      ...providerProblems(name, tool, findFetchProvider, fetchProviders),
      ...(Object.hasOwn(searchTools, name) ? ['search_tools has an entry of this name as well'] : []),
    ]),
  ]
}

const linesOf = <T>(map: string, tools: Record<string, T>, check: (name: string, tool: T) => string[]): string[] =>
  Object.entries(tools).flatMap(([name, tool]) => check(name, tool).map((why) => `${map}.${name}: ${why}`))

function searchProblems(name: string, tool: SearchToolSettings): string[] {
  const isEmpty = tool.fetchTool !== undefined && tool.fetchTool.trim() === ''
  return [
    ...providerProblems(name, tool, findProvider, providers),
    ...(isEmpty ? ['fetch_tool must not be empty'] : []),
  ]
}

interface Known {
  id: string
  requiresApiKey: boolean
}

const reservedNames = new Set([BUILTIN_FETCH, 'none'])

function providerProblems(
  name: string,
  tool: ToolEntry,
  find: (id: string) => Known | undefined,
  all: readonly Known[],
): string[] {
  const id = tool.provider ?? name
  const provider = find(id)
  const checks: [boolean, string][] = [
    [name.trim() === '' || /[/:]/.test(name), 'a name must not be empty or contain / or :'],
    [reservedNames.has(name.toLowerCase()), `${name} is a reserved name`],
    [!provider, `unknown provider ${id}; there is ${all.map((known) => known.id).join(', ')}`],
    [provider?.requiresApiKey === true && !tool.apiKey, `${id} needs an api_key`],
    [tool.timeoutMs !== undefined && !(tool.timeoutMs > 0), 'timeout must be more than 0'],
    [tool.options !== undefined && !isMapping(tool.options), 'options must be a mapping'],
  ]
  const base = tool.apiBase === undefined ? undefined : baseProblem(tool.apiBase, Boolean(tool.apiKey))
  return [...checks.flatMap(([wrong, why]) => (wrong ? [why] : [])), ...(base ? [`api_base ${base}`] : [])]
}

const isMapping = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value)

/** What a base URL must be and is not; its text is not repeated, since it may hold a password. */
export function baseProblem(apiBase: string, withKey: boolean): string | undefined {
  const url = parseUrl(apiBase)
  if (!url) return 'must be a URL'
  if (!/^https?:$/.test(url.protocol)) return 'must be an http or https URL'
  if (url.username || url.password || url.search || url.hash) return 'must have no user, query or fragment'
  const isPlain = url.protocol === 'http:' && !isLoopback(url.hostname)
  return withKey && isPlain ? 'must be https when there is an api_key' : undefined
}

/** The one place a key may go without TLS: it does not leave the machine. */
const isLoopback = (host: string): boolean => host === 'localhost' || host === '[::1]' || /^127(\.\d+){3}$/.test(host)

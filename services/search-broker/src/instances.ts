import { BUILTIN_FETCH, checkSearchOptions, instanceLabel } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import type { Backend } from './backend.ts'
import { deploymentOptions } from './options.ts'
import { findProvider, providers } from './providers/catalogue.ts'
import type { SearchProvider } from './providers/provider.ts'
import { INSTANCE_TIMEOUT_MS, type SearchBounds, type SearchSettings, type SearchToolSettings } from './settings.ts'
import { openSlots } from './slots.ts'

/** The named instances as they are now. Entries of the config file today; stored ones will join them behind this. */
export interface Instances {
  find(name: string): Backend | undefined
  all(): Backend[]
}

/**
 * Instances of the configuration (CFG-25). What cannot work stops the start with one line an entry and problem (CFG-56);
 * what can work in part is said in the log.
 */
export function configuredInstances(settings: SearchSettings, bounds: SearchBounds, log: Log): Instances {
  const entries = Object.entries(settings.searchTools)
  const problems = entries.flatMap(([name, tool]) =>
    problemsOf(name, tool).map((why) => `search_tools.${name}: ${why}`),
  )
  if (problems.length > 0) throw new Error(problems.join('\n'))
  const backends = new Map(entries.map(([name, tool]) => [name, openInstance(name, tool, settings, bounds, log)]))
  return { find: (name) => backends.get(name), all: () => [...backends.values()] }
}

const reservedNames = new Set([BUILTIN_FETCH, 'none'])

function problemsOf(name: string, tool: SearchToolSettings): string[] {
  const id = tool.provider ?? name
  const provider = findProvider(id)
  const checks: [boolean, string][] = [
    [name.trim() === '' || /[/:]/.test(name), 'a name must not be empty or contain / or :'],
    [reservedNames.has(name.toLowerCase()), `${name} is a reserved name`],
    [!provider, `unknown provider ${id}; there is ${providers.map((known) => known.id).join(', ')}`],
    [provider?.requiresApiKey === true && !tool.apiKey, `${id} needs an api_key`],
    [tool.timeoutMs !== undefined && !(tool.timeoutMs > 0), 'timeout must be more than 0'],
    [tool.options !== undefined && !isMapping(tool.options), 'options must be a mapping'],
    [tool.fetchTool !== undefined && tool.fetchTool.trim() === '', 'fetch_tool must not be empty'],
  ]
  const base = tool.apiBase === undefined ? undefined : baseProblem(tool.apiBase, Boolean(tool.apiKey))
  return [...checks.flatMap(([wrong, why]) => (wrong ? [why] : [])), ...(base ? [`api_base ${base}`] : [])]
}

const isMapping = (value: unknown): boolean => typeof value === 'object' && value !== null && !Array.isArray(value)

/** What a base URL must be and is not; its text is not repeated, since it may hold a password. */
export function baseProblem(apiBase: string, withKey: boolean): string | undefined {
  if (!URL.canParse(apiBase)) return 'must be a URL'
  const url = new URL(apiBase)
  if (!/^https?:$/.test(url.protocol)) return 'must be an http or https URL'
  if (url.username || url.password || url.search || url.hash) return 'must have no user, query or fragment'
  const isPlain = url.protocol === 'http:' && !isLoopback(url.hostname)
  return withKey && isPlain ? 'must be https when there is an api_key' : undefined
}

/** The one place a key may go without TLS: it does not leave the machine. */
const isLoopback = (host: string): boolean => host === 'localhost' || host === '[::1]' || /^127(\.\d+){3}$/.test(host)

function openInstance(
  name: string,
  tool: SearchToolSettings,
  { legacy }: SearchSettings,
  bounds: SearchBounds,
  log: Log,
): Backend {
  const provider = findProvider(tool.provider ?? name) as SearchProvider
  const { accepted, problems } = checkSearchOptions(provider.options, tool.options ?? {})
  for (const problem of problems) log.warn({ tool: name, option: problem.name }, `option left out: ${problem.why}`)
  if (tool.fetchTool !== undefined && tool.fetchTool !== BUILTIN_FETCH) {
    log.warn({ tool: name }, 'fetch_tool names no fetch instance; the built-in fetcher reads the pages')
  }
  const apiBase = tool.apiBase ?? provider.defaultApiBase ?? (provider.id === 'searxng' ? legacy.url : undefined)
  if (apiBase === undefined) {
    log.warn({ tool: name }, 'the tool has no api_base and no web_search_url to inherit; its searches are refused')
  }
  return {
    label: instanceLabel(provider.id, name),
    instance: name,
    provider,
    apiKey: tool.apiKey,
    apiBase,
    timeoutMs: tool.timeoutMs ?? INSTANCE_TIMEOUT_MS,
    options: deploymentOptions(provider, accepted),
    mostResults: provider.maxResults,
    pages: { read: true, allowPrivateHosts: false },
    slots: openSlots({ places: bounds.searches, waiting: bounds.waitingSearches }),
  }
}

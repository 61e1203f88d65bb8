/** A `fetch_tools` entry as configured (FP-01), and what one of `search_tools` has as well. */
export interface ToolEntry {
  /** Defaults to the entry's name. */
  provider?: string | undefined
  apiKey?: string | undefined
  apiBase?: string | undefined
  timeoutMs?: number | undefined
  options?: Record<string, unknown> | undefined
}

/** A `search_tools` entry as configured (CFG-25). */
export interface SearchToolSettings extends ToolEntry {
  /** The fetch instance that reads its hits' pages (S-55). */
  fetchTool?: string | undefined
}

/** The search settings from before there were instances (S-70..S-80). */
export interface LegacySettings {
  /** `tavily` or `brave`; counts only together with `apiKey` (S-71). */
  provider?: string | undefined
  apiKey?: string | undefined
  /** Where the provider is reached instead of at its public address. */
  apiBase?: string | undefined
  /** Any service with SearXNG's `GET /search?format=json`. */
  url?: string | undefined
  engines?: string | undefined
  /** Whether result pages are read; on unless false. */
  extract?: boolean | undefined
  /** Lets result pages lie on private hosts (S-77). */
  allowPrivateHosts?: boolean | undefined
}

/** What `web_search` of the web MCP server runs on (WM-10). Nothing here is checked at the start: it is told when it is used. */
export interface McpSearchSettings {
  provider?: string | undefined
  apiKey?: string | undefined
  /** Where the provider is reached instead of at its public address. */
  apiBase?: string | undefined
  timeoutMs?: number | undefined
}

export interface SearchSettings {
  searchTools: Record<string, SearchToolSettings>
  fetchTools?: Record<string, ToolEntry> | undefined
  /** An instance's name, or `none`. */
  webSearchDefaultTool?: string | undefined
  /** A fetch instance's name, or `builtin_fetch`. */
  webFetchDefaultTool?: string | undefined
  /** Hits asked for when a request does not say (S-33). */
  webSearchMaxResults?: number | undefined
  legacy: LegacySettings
  mcp?: McpSearchSettings | undefined
  bounds?: Partial<SearchBounds> | undefined
}

/** How much is under way at once in one process, and how much may wait for it. */
export interface SearchBounds {
  /** Searches at one instance. */
  searches: number
  /** Searches waiting for one of those places; a further one is `rate_limited`. */
  waitingSearches: number
  /** Pages being fetched by one fetch instance, for models and for searches together. */
  fetches: number
  /** Pages waiting for one of those places; a further one is `rate_limited`. */
  waitingFetches: number
  /** Result pages being read, over all searches. */
  pages: number
  /** Pages waiting for one of those places; a further one is not read, and its hit shows its snippet. */
  waitingPages: number
}

export const defaultBounds: SearchBounds = {
  searches: 16,
  waitingSearches: 64,
  fetches: 16,
  waitingFetches: 128,
  pages: 40,
  waitingPages: 400,
}

/** Hits when neither request nor `web_search_max_results` says. */
export const DEFAULT_RESULTS = 5
/** An instance's `timeout` when it has none (D-12). */
export const INSTANCE_TIMEOUT_MS = 30_000
export const LEGACY_TIMEOUT_MS = 15_000
export const LEGACY_MOST_RESULTS = 20
export const LEGACY_ENGINES = 'duckduckgo,mojeek,qwant,wikipedia'

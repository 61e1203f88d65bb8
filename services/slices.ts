import type { ConfiguredPrice } from '@tollgate/billing'
import type { Config } from '@tollgate/config'
import { formatDecimal, numberText, parseDecimal } from '@tollgate/contracts'
import type { FetchWorkerSettings } from '@tollgate/fetch-worker'
import type { GatewaySettings, ProviderSettings, RoutingSettings } from '@tollgate/gateway'
import type { ProxyVariables } from '@tollgate/http'
import type { WebSettings } from '@tollgate/mcp-web'
import type { RenderWorkerSettings } from '@tollgate/render-worker'
import type { SandboxSettings } from '@tollgate/sandbox'
import type { SandboxBrokerSettings } from '@tollgate/sandbox-broker'
import type { SearchSettings, ToolEntry } from '@tollgate/search-broker'
import type { SandboxAt } from './open.ts'

// Each service is handed its own part of the configuration, in its own words, and sees nothing else of it.

export const gatewaySettings = (config: Config): GatewaySettings => ({
  sandboxUrl: config.sandbox_url,
  sandboxPurposeHint: config.sandbox_purpose_hint,
  sandboxSessionImage: config.sandbox_session_image,
  sandboxAllowedSessionImages: config.sandbox_allowed_session_images,
  codeExecutionExecutor: config.code_execution_executor,
  codeExecutionWorkspaceDefault: config.code_execution_workspace_default,
  webSearchIntercept: config.web_search_intercept,
  webSearchDefaultTool: config.web_search_default_tool,
  webSearchProvider: config.web_search_provider,
  webSearchUrl: config.web_search_url,
  webSearchEngines: config.web_search_engines,
  webSearchExtract: config.web_search_extract,
  webSearchMaxResults: config.web_search_max_results,
  webSearchPurposeHint: config.web_search_purpose_hint,
  webSearchAllowPrivateHosts: config.web_search_allow_private_hosts,
  webSearchMaxCalls: config.web_search_max_calls,
  webSearchWorkspaceDefault: config.web_search_workspace_default,
  webFetchEnabled: config.web_fetch_enabled,
  webFetchDefaultTool: config.web_fetch_default_tool,
  brokersHave: {
    searchTools: Object.keys(config.search_tools),
    hostedSandbox: config.sandbox_provider !== 'protocol',
  },
  mcpWeb: {
    enabled: config.mcp_web_enabled,
    allowedOrigins: config.mcp_web_allowed_origins,
    tools: webServerSettings(config),
  },
  mcpClient: { allowLoopback: config.mcp_allow_loopback, allowPrivateHosts: config.mcp_allow_private_hosts },
  toolsHeader: config.tools_header,
  requirePricing: config.require_pricing,
  defaultPricing: config.default_pricing,
  budgetEstimateDefaultOutputTokens: config.budget_estimate_default_output_tokens,
  streamMissingUsagePolicy: config.stream_missing_usage_policy,
  responsesRetentionDays: config.responses_retention_days,
  streamingKeepaliveIntervalMs: config.streaming_keepalive_interval_ms,
  rejectUserMismatch: config.reject_user_mismatch,
  publicBaseUrl: config.public_base_url,
  rateLimitRpm: config.rate_limit_rpm,
  filesMaxBytes: config.files_max_bytes,
  providerFilesTimeoutMs: 60_000,
  filesOutputMaxFiles: config.files_output_max_files,
  filesOutputMaxBytes: config.files_output_max_bytes,
  filesRetentionHours: config.files_retention_hours,
  filesSweepIntervalMs: config.files_sweep_interval_sec * 1_000,
  requestTimeoutMs: config.request_timeout_ms,
  unreadAnswerMs: config.unread_answer_timeout_sec * 1_000,
  modelDiscoveryIntervalMs: config.model_discovery_interval_sec * 1_000,
  bodyLimitBytes: config.body_limit_bytes,
})

/** Of the web MCP server, whichever way it is reached; its search key is the search-broker's alone. */
export const webServerSettings = (config: Config): WebSettings => ({
  operationTimeoutMs: Math.ceil(config.mcp_web_fetch_timeout_sec * 1_000),
  ceilingMs: config.mcp_web_fetch_ceiling_sec * 1_000,
  maxRedirects: config.mcp_web_fetch_max_redirects,
  allowedHosts: config.mcp_web_fetch_allow_hosts,
  maxPageBytes: config.mcp_web_fetch_max_bytes,
  maxImageBytes: config.mcp_fetch_image_max_bytes,
  maxEdgePx: config.mcp_image_max_edge_px,
  maxEncodedBytes: Math.round(config.mcp_image_max_mb * 1_000_000),
  rendererAvailable: config.mcp_browser_enabled,
})

export const providers = (config: Config): Record<string, ProviderSettings> =>
  Object.fromEntries(
    Object.entries(config.providers).map(([name, { type, api_key, api_base, wire, models }]) => [
      name,
      { type, apiKey: api_key, apiBase: api_base, wire, models },
    ]),
  )

/** Models by names of the deployment's own; the registry refuses what it cannot serve. */
export const seats = (config: Config): Config['models'] => config.models

const milliseconds = (seconds: number | undefined): number | undefined =>
  seconds === undefined ? undefined : Math.round(seconds * 1_000)

export const routing = (config: Config): RoutingSettings => ({
  policies: Object.fromEntries(
    Object.entries(config.routing).map(([name, { candidates, retry_on, cool_down_sec, attempt_timeout_sec }]) => [
      name,
      {
        candidates,
        retryOn: retry_on,
        coolDownMs: milliseconds(cool_down_sec),
        attemptTimeoutMs: milliseconds(attempt_timeout_sec),
      },
    ]),
  ),
  aliases: config.model_aliases,
})

const toolEntry = (tool: Config['fetch_tools'][string]): ToolEntry => ({
  provider: tool.provider,
  apiKey: tool.api_key,
  apiBase: tool.api_base,
  timeoutMs: tool.timeout === undefined ? undefined : Math.round(tool.timeout * 1_000),
  options: tool.options,
})

export const searchSettings = (config: Config): SearchSettings => ({
  searchTools: Object.fromEntries(
    Object.entries(config.search_tools).map(([name, tool]) => [
      name,
      { ...toolEntry(tool), fetchTool: tool.fetch_tool },
    ]),
  ),
  fetchTools: Object.fromEntries(Object.entries(config.fetch_tools).map(([name, tool]) => [name, toolEntry(tool)])),
  webSearchDefaultTool: config.web_search_default_tool,
  webFetchDefaultTool: config.web_fetch_default_tool,
  webSearchMaxResults: config.web_search_max_results,
  legacy: {
    provider: config.web_search_provider,
    apiKey: config.web_search_provider_api_key,
    url: config.web_search_url,
    engines: config.web_search_engines,
    extract: config.web_search_extract,
    allowPrivateHosts: config.web_search_allow_private_hosts,
  },
  mcp: {
    provider: config.mcp_web_search_provider?.toLowerCase(),
    apiKey: config.mcp_web_search_api_key,
    apiBase: config.mcp_web_search_api_base,
  },
})

/** `price_per_call` of search and fetch tools, dollars a call, as the dollars per million that price rows hold (P-05). */
export const configuredPrices = (config: Config): ConfiguredPrice[] => [
  ...pricesOf('search', config.search_tools),
  ...pricesOf('fetch', config.fetch_tools),
]

const pricesOf = (kind: 'search' | 'fetch', tools: Config['fetch_tools']): ConfiguredPrice[] =>
  Object.entries(tools).flatMap(([key, { price_per_call }]) =>
    price_per_call === undefined ? [] : [{ kind, key, inputPricePerMillion: perMillion(price_per_call) }],
  )

function perMillion(dollars: number | string): string {
  const text = typeof dollars === 'number' ? numberText(dollars) : dollars
  return formatDecimal(parseDecimal(text, 14) * 1_000_000n, 14)
}

export const sandboxBrokerSettings = (config: Config, { url, token, why }: SandboxAt): SandboxBrokerSettings => ({
  provider: config.sandbox_provider,
  e2b: {
    domain: config.sandbox_e2b_domain,
    template: config.sandbox_e2b_template,
    internet: config.sandbox_e2b_internet,
    ...(config.sandbox_e2b_api_url === undefined ? {} : { apiUrl: config.sandbox_e2b_api_url }),
    ...(config.sandbox_e2b_sandbox_url === undefined ? {} : { sandboxUrl: config.sandbox_e2b_sandbox_url }),
  },
  execTimeoutSeconds: config.sandbox_exec_timeout_sec,
  outputMaxFiles: config.files_output_max_files,
  outputMaxBytes: config.files_output_max_bytes,
  containerIdleSeconds: config.sandbox_container_idle_ttl_sec,
  containerLifetimeSeconds: config.sandbox_container_max_lifetime_sec,
  ...(url === undefined ? {} : { url }),
  ...(why === undefined ? {} : { unavailableReason: why }),
  ...(token === undefined ? {} : { token }),
  configuredToken: config.sandbox_token,
  ...(config.sandbox_session_image === undefined ? {} : { sessionImage: config.sandbox_session_image }),
})

/** What differs from the sandbox's own settings. */
export const sandboxSettings = (config: Config): Partial<SandboxSettings> => ({
  host: config.sandbox_host,
  port: config.sandbox_port,
  maxSessions: config.sandbox_max_sessions,
  unreadAnswerSeconds: config.unread_answer_timeout_sec,
  ...(config.sandbox_python === undefined ? {} : { python: config.sandbox_python }),
  ...(config.sandbox_min_isolation === undefined ? {} : { minIsolation: config.sandbox_min_isolation }),
})

/** The proxy variables of the environment, when the operator said to trust them (F-28); lower case where upper is not set. */
export function proxyVariables(config: Config, env: NodeJS.ProcessEnv): ProxyVariables | undefined {
  if (!config.web_retrieval_trust_env_proxy) return undefined
  const read = (name: string) => env[name] || env[name.toLowerCase()]
  const [httpProxy, httpsProxy, allProxy, noProxy] = ['HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY', 'NO_PROXY'].map(read)
  return {
    ...(httpProxy ? { httpProxy } : {}),
    ...(httpsProxy ? { httpsProxy } : {}),
    ...(allProxy ? { allProxy } : {}),
    ...(noProxy ? { noProxy } : {}),
  }
}

export function fetchSettings(config: Config, env: NodeJS.ProcessEnv): FetchWorkerSettings {
  const proxies = proxyVariables(config, env)
  return {
    slots: config.fetch_slots,
    threads: config.fetch_threads,
    pageCache: { ms: config.fetch_cache_sec * 1_000 },
    respectRobots: config.fetch_robots,
    rendered: config.mcp_browser_enabled,
    ...(proxies ? { proxies } : {}),
  }
}

export const renderSettings = (config: Config, executable: string): RenderWorkerSettings => ({
  executable,
  slots: config.render_slots,
  isSandboxed: config.render_sandbox,
})

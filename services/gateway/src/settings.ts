import { defaultWebSettings, type WebSettings } from '@tollgate/mcp-web'

/**
 * What the operator decides about the gateway. Members are read when they are needed, never copied at start, so that a
 * runtime change holds for the next request (CFG-52).
 */
export interface GatewaySettings {
  /** CFG-02: where the sandbox-broker runs code, for operators to see. */
  sandboxUrl: string | undefined
  /** CFG-03: what the model is told `code_execution` is for. */
  sandboxPurposeHint: string | undefined
  /** CFG-04: the image of sessions for which no workspace pins another. */
  sandboxSessionImage: string | undefined
  /** CFG-05: images that a workspace may pin beside it. */
  sandboxAllowedSessionImages: readonly string[]
  /** CFG-08: who runs a provider's code keyword. */
  codeExecutionExecutor: 'auto' | 'otari' | 'provider'
  /** CFG-09: whether a workspace without a policy may run code. */
  codeExecutionWorkspaceDefault: boolean
  /** CFG-10: every provider search keyword runs here. */
  webSearchIntercept: boolean
  /** CFG-19: the search tool of searches that name none; `none` is for those of a model alone (D-07). */
  webSearchDefaultTool: string | undefined
  /** CFG-11, CFG-13, CFG-14, CFG-16: what the search-broker has from before there were instances, to be seen. */
  webSearchProvider: 'tavily' | 'brave' | undefined
  webSearchUrl: string | undefined
  webSearchEngines: string | undefined
  webSearchExtract: boolean | undefined
  /** CFG-15: results of a search that names no number. */
  webSearchMaxResults: number | undefined
  /** CFG-17: what the model is told `web_search` is for. */
  webSearchPurposeHint: string | undefined
  /** CFG-18: pages of search results may lie on private hosts. */
  webSearchAllowPrivateHosts: boolean
  /** CFG-20: searches and fetches of one request together. */
  webSearchMaxCalls: number
  /** CFG-21: whether a workspace without a policy has web access. */
  webSearchWorkspaceDefault: boolean
  /** CFG-22 */
  webFetchEnabled: boolean
  /** CFG-23: the fetch instance; undefined is the built-in fetcher. */
  webFetchDefaultTool: string | undefined
  /** What the brokers alone act on, as far as it tells a tool that nobody configured from one not heard of yet. */
  brokersHave: { searchTools: readonly string[]; hostedSandbox: boolean }
  /** Ours: the web MCP server, and the sites that may call it from a browser. */
  mcpWeb: { enabled: boolean; allowedOrigins: readonly string[]; tools: WebSettings }
  /** CFG-35: which addresses of our own network MCP servers may have (M-10). */
  mcpClient: { allowLoopback: boolean; allowPrivateHosts: boolean }
  /** CFG-26: the line over the purpose hints. */
  toolsHeader: string | undefined
  /** CFG-27: what nothing prices is not run. */
  requirePricing: boolean
  /** CFG-28: list prices stand in where no row prices a model. */
  defaultPricing: boolean
  /** CFG-30: output tokens reserved when the request names no maximum. */
  budgetEstimateDefaultOutputTokens: number
  /** CFG-31: what a stream without reported usage costs. */
  streamMissingUsagePolicy: 'estimate' | 'fail' | 'allow_free'
  /** CFG-32: 0 sends none. */
  streamingKeepaliveIntervalMs: number
  /** CFG-37 */
  rejectUserMismatch: boolean
  /** CFG-37 */
  publicBaseUrl: string | undefined
  /** CFG-37: requests of a user in a minute. */
  rateLimitRpm: number | undefined
  /** CFG-33: the largest file that may be uploaded. */
  filesMaxBytes: number
  /** CFG-34: what of the files that code makes at a provider is kept for one answer. */
  filesOutputMaxFiles: number
  filesOutputMaxBytes: number
  /** FI-23, FI-24: how long files may be copied to a provider before it is asked, and from it once it has answered. */
  providerFilesTimeoutMs: number
  /** CFG-33: how long files are kept; undefined keeps them until they are deleted. */
  filesRetentionHours: number | undefined
  /** CFG-33: how often what nobody may have any more is removed. */
  filesSweepIntervalMs: number
  /** Ours: how long a response is kept that nobody goes on from; 0 keeps none. */
  responsesRetentionDays: number
  /** Ours: one deadline for a whole completion, every round and tool call of it. */
  requestTimeoutMs: number
  /** Ours: how long a client may take no byte of a finished answer before its connection is closed. */
  unreadAnswerMs: number
  /** Ours: how often providers are asked for their models; 0 never asks. */
  modelDiscoveryIntervalMs: number
  /** Ours: the largest request body. */
  bodyLimitBytes: number
}

export const defaultSettings: GatewaySettings = {
  sandboxUrl: undefined,
  sandboxPurposeHint: undefined,
  sandboxSessionImage: undefined,
  sandboxAllowedSessionImages: [],
  codeExecutionExecutor: 'auto',
  codeExecutionWorkspaceDefault: true,
  webSearchIntercept: false,
  webSearchDefaultTool: undefined,
  webSearchProvider: undefined,
  webSearchUrl: undefined,
  webSearchEngines: undefined,
  webSearchExtract: undefined,
  webSearchMaxResults: undefined,
  webSearchPurposeHint: undefined,
  webSearchAllowPrivateHosts: false,
  webSearchMaxCalls: 10,
  webSearchWorkspaceDefault: true,
  webFetchEnabled: false,
  webFetchDefaultTool: undefined,
  brokersHave: { searchTools: [], hostedSandbox: false },
  mcpWeb: { enabled: true, allowedOrigins: [], tools: defaultWebSettings },
  mcpClient: { allowLoopback: true, allowPrivateHosts: false },
  toolsHeader: undefined,
  requirePricing: true,
  defaultPricing: false,
  budgetEstimateDefaultOutputTokens: 1024,
  streamMissingUsagePolicy: 'estimate',
  streamingKeepaliveIntervalMs: 15_000,
  rejectUserMismatch: true,
  publicBaseUrl: undefined,
  rateLimitRpm: undefined,
  filesMaxBytes: 512 * 1024 * 1024,
  providerFilesTimeoutMs: 60_000,
  filesOutputMaxFiles: 20,
  filesOutputMaxBytes: 100 * 1024 * 1024,
  filesRetentionHours: undefined,
  filesSweepIntervalMs: 3_600_000,
  responsesRetentionDays: 30,
  requestTimeoutMs: 600_000,
  unreadAnswerMs: 60_000,
  modelDiscoveryIntervalMs: 3_600_000,
  bodyLimitBytes: 32 * 1024 * 1024,
}

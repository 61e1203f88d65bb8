/** What an operator may set about the gateway; the ids are the catalogue's. Read at each use, so that a runtime edit counts. */
export interface GatewaySettings {
  /** CFG-08 */
  codeExecutionExecutor: 'auto' | 'otari' | 'provider'
  /** CFG-03 */
  sandboxPurposeHint: string | undefined
  /** CFG-09 */
  codeExecutionWorkspaceDefault: boolean
  /** CFG-10 */
  webSearchIntercept: boolean
  /** CFG-15; undefined leaves the count to the provider. */
  webSearchMaxResults: number | undefined
  /** CFG-17 */
  webSearchPurposeHint: string | undefined
  /** CFG-18 */
  webSearchAllowPrivateHosts: boolean
  /** CFG-20: calls of search and fetch together. */
  webSearchMaxCalls: number
  /** CFG-21 */
  webSearchWorkspaceDefault: boolean
  /** CFG-22 */
  webFetchEnabled: boolean
  /** CFG-23 */
  webFetchDefaultTool: string
  /** CFG-26; undefined is the built-in header (T-29). */
  toolsHeader: string | undefined
  /** CFG-27 */
  requirePricing: boolean
  /** CFG-28 */
  defaultPricing: boolean
  /** CFG-30 */
  budgetEstimateDefaultOutputTokens: number
  /** CFG-31 */
  streamMissingUsagePolicy: 'estimate' | 'fail' | 'allow_free'
  /** CFG-32; 0 sends none. */
  streamingKeepaliveIntervalMs: number
  /** CFG-37 */
  rejectUserMismatch: boolean
  /** CFG-37; undefined: no limit. */
  rateLimitRpm: number | undefined
  /** Longest body read before 413. */
  maxBodyBytes: number
}

export const defaultSettings: GatewaySettings = {
  codeExecutionExecutor: 'auto',
  sandboxPurposeHint: undefined,
  codeExecutionWorkspaceDefault: true,
  webSearchIntercept: false,
  webSearchMaxResults: undefined,
  webSearchPurposeHint: undefined,
  webSearchAllowPrivateHosts: false,
  webSearchMaxCalls: 10,
  webSearchWorkspaceDefault: true,
  webFetchEnabled: false,
  webFetchDefaultTool: 'builtin_fetch',
  toolsHeader: undefined,
  requirePricing: true,
  defaultPricing: false,
  budgetEstimateDefaultOutputTokens: 1024,
  streamMissingUsagePolicy: 'estimate',
  streamingKeepaliveIntervalMs: 15_000,
  rejectUserMismatch: true,
  rateLimitRpm: undefined,
  maxBodyBytes: 32 * 1024 * 1024,
}

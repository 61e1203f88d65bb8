/** What the operator decides about the web MCP server (WM-10). The search provider and its key are the search-broker's. */
export interface WebSettings {
  /** For each network operation of both fetch tools; connecting has at most 10 s (WM-21). */
  operationTimeoutMs: number
  /** For a whole fetch, however its bytes drip (WM-21, WA-9). */
  ceilingMs: number
  maxRedirects: number
  /** Exact host names that may lead to addresses which are not public (WM-86). */
  allowedHosts: readonly string[]
  /** Decoded bytes of a page that are read; the rest is cut (WM-42). */
  maxPageBytes: number
  /** Bytes of an image; a larger one is refused (WM-53). */
  maxImageBytes: number
  /** Longest edge and most encoded bytes of an image as a model is shown it (WM-55). */
  maxEdgePx: number
  maxEncodedBytes: number
  /** Whether `fetch_webpage_rendered` can be had beside this server (WM-07). */
  rendererAvailable: boolean
}

export const defaultWebSettings: WebSettings = {
  operationTimeoutMs: 30_000,
  ceilingMs: 120_000,
  maxRedirects: 5,
  allowedHosts: [],
  maxPageBytes: 2_000_000,
  maxImageBytes: 10_000_000,
  maxEdgePx: 1_568,
  maxEncodedBytes: 3_000_000,
  rendererAvailable: false,
}

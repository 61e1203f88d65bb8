import type { Config } from './schema.ts'

/** The variables of the web MCP server under the names its deployments know, and the settings they are here (WM-10, WM-11). */
export const webServerVariables = {
  DPTTOOLS_WEB_SEARCH_PROVIDER: 'mcp_web_search_provider',
  DPTTOOLS_WEB_SEARCH_API_KEY: 'mcp_web_search_api_key',
  DPTTOOLS_WEB_FETCH_TIMEOUT: 'mcp_web_fetch_timeout_sec',
  DPTTOOLS_WEB_FETCH_MAX_BYTES: 'mcp_web_fetch_max_bytes',
  DPTTOOLS_WEB_FETCH_MAX_REDIRECTS: 'mcp_web_fetch_max_redirects',
  DPTTOOLS_WEB_FETCH_ALLOW_HOSTS: 'mcp_web_fetch_allow_hosts',
  DPTTOOLS_FETCH_IMAGE_MAX_BYTES: 'mcp_fetch_image_max_bytes',
  DPTTOOLS_IMAGE_MAX_EDGE_PX: 'mcp_image_max_edge_px',
  DPTTOOLS_IMAGE_MAX_MB: 'mcp_image_max_mb',
} as const satisfies Record<string, keyof Config>

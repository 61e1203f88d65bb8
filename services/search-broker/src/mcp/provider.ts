import type { searchMcp } from '@tollgate/contracts'
import type { z } from 'zod'
import type { ProviderAccess, ProviderRequest } from '../providers/provider.ts'

export type McpSearch = z.output<typeof searchMcp.input>
export type McpHit = { title: string; url: string; snippet: string }
export type McpUsage = Record<string, unknown>

/** What a vendor's answer holds, as the vendor sends it. */
export interface McpAnswer {
  hits: McpHit[]
  usage: McpUsage
}

/** How one search API is asked and read for the web MCP server, which shows a vendor's own report of its use (WM-60). */
export interface McpProvider {
  readonly id: 'tavily' | 'serper' | 'brave'
  readonly defaultApiBase: string
  request(search: McpSearch, access: ProviderAccess): ProviderRequest
  /** Reads a 2xx body; undefined when it is not of the vendor's form. */
  read(body: unknown, search: McpSearch): McpAnswer | undefined
}

/** WM-69: where a vendor reports nothing, nothing is made up. */
export const unreported: McpUsage = { provider_reported: false }

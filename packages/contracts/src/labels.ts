/**
 * Who served a tool call (P-20), as it stands in a usage row's breakdown. Also the names under which prices are looked up.
 */
export type ToolName = 'web_search' | 'web_fetch' | 'code_execution' | (string & {})

export const instanceLabel = (provider: string, instance: string): string => `${provider}:${instance}`
export const BUILTIN_FETCH = 'builtin_fetch'
export const builtinFetchLabel = `builtin:${BUILTIN_FETCH}`
export const organizationLabel = (provider: string): string => `org:${provider}`
export const otariLabel = (tool: ToolName): string => `otari:${tool}`

/** A price row: its kind and its key. A tool's row and a model's row never share one even when their names are equal (P-04). */
export interface PriceKey {
  kind: 'model' | 'search' | 'fetch'
  key: string
}

/** Rows that may price a call on an instance, first match wins (P-06); the provider's reported cost comes before them all. */
export const instancePriceKeys = (kind: 'search' | 'fetch', provider: string, instance: string): PriceKey[] => [
  { kind, key: instance },
  { kind: 'model', key: instanceLabel(provider, instance) },
  { kind: 'model', key: otariLabel(kind === 'search' ? 'web_search' : 'web_fetch') },
]

/** Code, MCP tools and legacy search have their `otari:` row only (P-07, P-08). */
export const otariPriceKeys = (tool: ToolName): PriceKey[] => [{ kind: 'model', key: otariLabel(tool) }]

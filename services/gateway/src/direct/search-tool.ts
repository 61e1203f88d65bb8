import { Fault, type SearchInstance } from '@tollgate/contracts'
import type { Identity } from '../auth/identity.ts'

/** The search instance that a direct search runs on: the named one, else the default, else the only one (D-05, D-07). */
export function chooseSearchTool(
  named: string | undefined,
  fallback: string | undefined,
  instances: readonly SearchInstance[],
): SearchInstance {
  const tools = instances.filter(({ kind }) => kind === 'search')
  const available = `Available: ${tools.map(({ name }) => name).join(', ')}.`
  const [only, ...others] = tools
  if (only === undefined) {
    throw new Fault('invalid_request', 'No search tool is configured on this gateway. Add one under search_tools.')
  }
  if (named !== undefined) {
    const tool = tools.find(({ name }) => name === named)
    if (tool) return tool
    throw new Fault('invalid_request', `Unknown search tool '${named}'. ${available}`)
  }
  const chosen = tools.find(({ name }) => name === fallback) ?? (others.length === 0 ? only : undefined)
  if (chosen) return chosen
  throw new Fault(
    'invalid_request',
    `Several search tools are configured; name one in 'search_tool_name' or use POST /api/v1/search/{tool}. ${available}`,
  )
}

/**
 * D-09: a key that is restricted must name the tool, among its tools or, as `provider:tool`, among its models. A pattern
 * names models alone: `deepseek:*` is no leave to search with DeepSeek.
 */
export function refuseSearchTool(
  { allowedModels, allowedTools }: Pick<Identity, 'allowedModels' | 'allowedTools'>,
  { name, provider }: SearchInstance,
): void {
  if (allowedModels === null && allowedTools === null) return
  const model = `${provider}:${name}`
  if (allowedTools?.includes(name) || allowedModels?.includes(model)) return
  throw new Fault('forbidden', `Model '${model}' is not permitted for this API key.`)
}

import type { Log } from '@tollgate/telemetry'
import type { Backend } from './backend.ts'
import type { Instances } from './instances.ts'

const OFF = 'none'

/**
 * What a model-initiated search runs on (S-30), asked anew each time since instances come and go. An instance without an
 * address is nothing to search with, so that no model is offered a search that could only be refused.
 */
export function inLoopDefault(
  defaultTool: string | undefined,
  legacy: Backend | undefined,
  instances: Instances,
): Backend | undefined {
  if (defaultTool?.toLowerCase() === OFF) return undefined
  const named = defaultTool === undefined ? undefined : instances.find(defaultTool)
  const [only, ...others] = instances.all()
  const chosen = named ?? legacy ?? (others.length === 0 ? only : undefined)
  return chosen?.apiBase === undefined ? undefined : chosen
}

/** A default that names no instance counts as unset, and is worth a word at the start (S-32). */
export function warnOfUnknownDefault(defaultTool: string | undefined, instances: Instances, log: Log): void {
  if (defaultTool === undefined || defaultTool.toLowerCase() === OFF || instances.find(defaultTool)) return
  log.warn({ web_search_default_tool: defaultTool }, 'the default search tool names no search tool; it counts as unset')
}

import { checkSearchOptions } from '@tollgate/contracts'
import type { Policies, WebPolicy } from '../policies/policy.ts'
import { refuseCode, refuseWebAccess } from '../policies/refusals.ts'
import type { GatewaySettings } from '../settings.ts'
import type { Capabilities } from '../tools/capabilities.ts'
import { codeExecution } from '../tools/code-execution.ts'
import { narrowDomains } from '../tools/domains.ts'
import type { BuiltIn, ToolOptions } from '../tools/tool.ts'
import { webFetch } from '../tools/web-fetch.ts'
import { DEFAULT_RESULTS, webSearch } from '../tools/web-search.ts'
import type { Owned } from './plan.ts'

interface Policing {
  policies: Policies
  settings: GatewaySettings
  capabilities: Capabilities
}

/**
 * The tools that run here as the workspace's policies leave them: narrowed, never widened (W-02, W-38). Throws the
 * refusal of one that the workspace may not use (W-20, W-41).
 */
export function policed(owned: ReadonlyMap<string, Owned<BuiltIn>>, policing: Policing): Map<string, Owned<BuiltIn>> {
  const { policies, settings } = policing
  if (owned.has(codeExecution.name)) refuseCode(policies.code, settings)
  if (owned.has(webFetch.name)) refuseWebAccess(policies.web, 'web access')
  else if (owned.has(webSearch.name)) refuseWebAccess(policies.web, 'web search')
  return new Map(Array.from(owned, ([name, entry]) => [name, { ...entry, options: narrowed(entry, policing) }]))
}

function narrowed({ tool, options }: Owned<BuiltIn>, policing: Policing): ToolOptions {
  const { code, web } = policing.policies
  switch (tool) {
    case codeExecution:
      return {
        ...options,
        hint: options.hint ?? code.hint ?? undefined,
        image: code.image ?? undefined,
        execSeconds: code.execTimeoutSeconds ?? undefined,
      }
    case webFetch:
      return { ...options, domains: narrowDomains(web.domains, options.domains) }
    case webSearch:
      return {
        ...options,
        hint: options.hint ?? web.hint ?? undefined,
        maxResults: mostResults(options, web, policing.settings),
        domains: narrowDomains(web.domains, options.domains),
        providerOptions: { ...usableOptions(web, policing.capabilities).accepted, ...options.providerOptions },
      }
    default:
      return options
  }
}

/** W-32: a policy lowers what a request gets, and is no wish of its own. */
function mostResults({ maxResults }: ToolOptions, web: WebPolicy, settings: GatewaySettings): number | undefined {
  if (web.maxResults === null) return maxResults
  return Math.min(maxResults ?? settings.webSearchMaxResults ?? DEFAULT_RESULTS, web.maxResults)
}

/** S-35: what the provider does not take of a workspace's options is left out; who asks for it may warn of it. */
export const usableOptions = ({ providerOptions }: WebPolicy, { search }: Capabilities) =>
  checkSearchOptions(search?.options ?? [], providerOptions)

import type { DomainPolicy } from '@tollgate/contracts'
import type { JsonObject } from '../conversation/turn.ts'
import type { Executor } from '../loop/executors.ts'
import type { GatewaySettings } from '../settings.ts'
import type { Tables } from '../tables.ts'
import { readDomains } from '../tools/domains.ts'

/** What a workspace's policy says of code (W-01); null narrows nothing. */
export interface CodePolicy {
  enabled: boolean
  maxIterations: number | null
  execTimeoutSeconds: number | null
  hint: string | null
  /** Kinds of calls that may be made (W-05). */
  tools: readonly string[] | null
  image: string | null
  /** The one that is a choice and no narrowing (W-03). */
  executor: Executor | null
}

/** What a workspace's policy says of the web (W-30); null narrows nothing. */
export interface WebPolicy {
  enabled: boolean
  maxResults: number | null
  domains: DomainPolicy
  hint: string | null
  providerOptions: JsonObject
}

/** What holds for the requests of one workspace. */
export interface Policies {
  code: CodePolicy
  web: WebPolicy
}

const anyCode: CodePolicy = {
  enabled: true,
  maxIterations: null,
  execTimeoutSeconds: null,
  hint: null,
  tools: null,
  image: null,
  executor: null,
}
const anyWeb: WebPolicy = {
  enabled: true,
  maxResults: null,
  domains: { allowedDomains: null, blockedDomains: [] },
  hint: null,
  providerOptions: {},
}

/** For a request that runs nothing here, whose workspace is not asked about (W-21). */
export const narrowsNothing: Policies = { code: anyCode, web: anyWeb }

/** Without a policy of its own a workspace may do what the deployment lets every one (W-07, W-40). */
export const defaultPolicies = (
  settings: Pick<GatewaySettings, 'codeExecutionWorkspaceDefault' | 'webSearchWorkspaceDefault'>,
): Policies => ({
  code: { ...anyCode, enabled: settings.codeExecutionWorkspaceDefault },
  web: { ...anyWeb, enabled: settings.webSearchWorkspaceDefault },
})

type CodeRow = Pick<
  Tables['gateway.code_execution_policies'],
  'enabled' | 'max_iterations' | 'exec_timeout_s' | 'default_purpose_hint' | 'tools' | 'image' | 'executor'
>
export const codePolicyOf = (row: CodeRow): CodePolicy => ({
  enabled: row.enabled,
  maxIterations: row.max_iterations,
  execTimeoutSeconds: row.exec_timeout_s,
  hint: row.default_purpose_hint,
  tools: row.tools,
  image: row.image,
  executor: row.executor,
})

export interface WebRow {
  enabled: boolean
  max_results: number | null
  allowed_domains: string[] | null
  blocked_domains: string[] | null
  purpose_hint: string | null
  provider_options: JsonObject | null
}
export const webPolicyOf = (row: WebRow): WebPolicy => ({
  enabled: row.enabled,
  maxResults: row.max_results,
  domains: readDomains({ allowed_domains: row.allowed_domains, blocked_domains: row.blocked_domains }),
  hint: row.purpose_hint,
  providerOptions: row.provider_options ?? {},
})

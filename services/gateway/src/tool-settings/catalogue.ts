import type { ToolSettingKey } from '@tollgate/contracts'
import type { GatewaySettings } from '../settings.ts'

export interface ToolSettingEntry {
  service: 'sandbox' | 'web_search' | 'web_fetch'
  type: 'bool' | 'enum' | 'int' | 'string' | 'url'
  description: string
  /** Where it is in force in this service. */
  member: keyof GatewaySettings
  /** Names infrastructure of the deployment's own, which is nothing a tenant acts on (CFG-50). */
  operatorOnly?: true
}

/** Every setting that can be changed while the services run (CFG-51), in the order in which they are listed. */
export const catalogue: Readonly<Record<ToolSettingKey, ToolSettingEntry>> = {
  code_execution_executor: {
    service: 'sandbox',
    type: 'enum',
    description: 'Who runs provider-named code declarations: auto, otari or provider',
    member: 'codeExecutionExecutor',
  },
  sandbox_url: {
    service: 'sandbox',
    type: 'url',
    description: 'Where the code-execution backend is',
    member: 'sandboxUrl',
    operatorOnly: true,
  },
  sandbox_purpose_hint: {
    service: 'sandbox',
    type: 'string',
    description: 'What a model is told code execution is for, where neither declaration nor workspace says',
    member: 'sandboxPurposeHint',
  },
  web_search_intercept: {
    service: 'web_search',
    type: 'bool',
    description: 'Run provider-named search declarations here',
    member: 'webSearchIntercept',
  },
  web_search_default_tool: {
    service: 'web_search',
    type: 'string',
    description: 'The search tool of searches that name none; none switches those of models off',
    member: 'webSearchDefaultTool',
  },
  web_search_provider: {
    service: 'web_search',
    type: 'enum',
    description: 'Search without a search tool: tavily or brave, with web_search_provider_api_key',
    member: 'webSearchProvider',
  },
  web_search_url: {
    service: 'web_search',
    type: 'url',
    description: 'Search without a search tool: a backend with the search API of SearXNG',
    member: 'webSearchUrl',
    operatorOnly: true,
  },
  web_search_engines: {
    service: 'web_search',
    type: 'string',
    description: 'Engines that web_search_url is to ask, with commas between them',
    member: 'webSearchEngines',
  },
  web_search_max_results: {
    service: 'web_search',
    type: 'int',
    description: 'Results of a search that names no number',
    member: 'webSearchMaxResults',
  },
  web_search_extract: {
    service: 'web_search',
    type: 'bool',
    description: 'Read the pages that web_search_provider and web_search_url find',
    member: 'webSearchExtract',
  },
  web_search_purpose_hint: {
    service: 'web_search',
    type: 'string',
    description: 'What a model is told web search is for, where neither declaration nor workspace says',
    member: 'webSearchPurposeHint',
  },
  web_search_allow_private_hosts: {
    service: 'web_search',
    type: 'bool',
    description: 'Let those pages lie on private hosts',
    member: 'webSearchAllowPrivateHosts',
  },
  web_search_max_calls: {
    service: 'web_search',
    type: 'int',
    description: 'Searches and fetches of one request together',
    member: 'webSearchMaxCalls',
  },
  web_fetch_default_tool: {
    service: 'web_fetch',
    type: 'string',
    description: 'The fetch tool that reads pages for models; builtin_fetch is this gateway’s own',
    member: 'webFetchDefaultTool',
  },
}

export const settingKeys = Object.keys(catalogue) as ToolSettingKey[]

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '@tollgate/config'
import { type ToolSettingKey, toolSettings } from '@tollgate/contracts'
import type { GatewaySettings } from '@tollgate/gateway'
import type { SearchSettings } from '@tollgate/search-broker'
import { afterAll, expect, test } from 'vitest'
import { gatewaySettings, sandboxBrokerSettings, searchSettings } from '../../services/slices.ts'

const folder = mkdtempSync(join(tmpdir(), 'tollgate-settings-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

type Value = string | number | boolean
interface Row {
  id: string
  file: Value
  environment: Value
  /** Undefined: unset. */
  otherwise: Value | undefined
  /** Where the gateway has it. */
  member: keyof GatewaySettings
  /** And the search-broker, where it acts on it. */
  search?: (settings: SearchSettings) => unknown
}
const rows: Record<ToolSettingKey, Row> = {
  code_execution_executor: {
    id: 'CFG-08',
    file: 'otari',
    environment: 'provider',
    otherwise: 'auto',
    member: 'codeExecutionExecutor',
  },
  sandbox_url: {
    id: 'CFG-02',
    file: 'http://file:1',
    environment: 'http://env:1',
    otherwise: undefined,
    member: 'sandboxUrl',
  },
  sandbox_purpose_hint: {
    id: 'CFG-03',
    file: 'file',
    environment: 'env',
    otherwise: undefined,
    member: 'sandboxPurposeHint',
  },
  web_search_intercept: {
    id: 'CFG-10',
    file: false,
    environment: true,
    otherwise: false,
    member: 'webSearchIntercept',
  },
  web_search_default_tool: {
    id: 'CFG-19',
    file: 'one',
    environment: 'none',
    otherwise: undefined,
    member: 'webSearchDefaultTool',
    search: (settings) => settings.webSearchDefaultTool,
  },
  web_search_provider: {
    id: 'CFG-11',
    file: 'brave',
    environment: 'tavily',
    otherwise: undefined,
    member: 'webSearchProvider',
    search: ({ legacy }) => legacy.provider,
  },
  web_search_url: {
    id: 'CFG-13',
    file: 'http://file:1',
    environment: 'http://env:1',
    otherwise: undefined,
    member: 'webSearchUrl',
    search: ({ legacy }) => legacy.url,
  },
  web_search_engines: {
    id: 'CFG-14',
    file: 'bing',
    environment: 'bing,qwant',
    otherwise: undefined,
    member: 'webSearchEngines',
    search: ({ legacy }) => legacy.engines,
  },
  web_search_max_results: {
    id: 'CFG-15',
    file: 3,
    environment: 4,
    otherwise: undefined,
    member: 'webSearchMaxResults',
    search: (settings) => settings.webSearchMaxResults,
  },
  web_search_extract: {
    id: 'CFG-16',
    file: true,
    environment: false,
    otherwise: undefined,
    member: 'webSearchExtract',
    search: ({ legacy }) => legacy.extract,
  },
  web_search_purpose_hint: {
    id: 'CFG-17',
    file: 'file',
    environment: 'env',
    otherwise: undefined,
    member: 'webSearchPurposeHint',
  },
  web_search_allow_private_hosts: {
    id: 'CFG-18',
    file: false,
    environment: true,
    otherwise: false,
    member: 'webSearchAllowPrivateHosts',
    search: ({ legacy }) => legacy.allowPrivateHosts,
  },
  web_search_max_calls: { id: 'CFG-20', file: 3, environment: 4, otherwise: 10, member: 'webSearchMaxCalls' },
  web_fetch_default_tool: {
    id: 'CFG-23',
    file: 'pages',
    environment: 'others',
    otherwise: 'builtin_fetch',
    member: 'webFetchDefaultTool',
    search: (settings) => settings.webFetchDefaultTool,
  },
}

function configOf(key: string, file: Value | undefined, environment: Value | undefined) {
  const path = join(folder, `${key}.yml`)
  writeFileSync(path, file === undefined ? '' : JSON.stringify({ [key]: file }))
  return loadConfig(path, environment === undefined ? {} : { [`OTARI_${key.toUpperCase()}`]: String(environment) })
    .config
}

test('every setting that can be changed at run time can be set before', () => {
  expect(Object.keys(rows).toSorted()).toEqual(Object.keys(toolSettings).toSorted())
})

test.each(Object.entries(rows).map(([key, row]) => ({ key, ...row })))(
  '$id $key of the file, the environment, and of both, where the environment wins, reaches who acts on it',
  ({ key, file, environment, otherwise, member, search }) => {
    const given = [
      [undefined, undefined, otherwise],
      [file, undefined, file],
      [undefined, environment, environment],
      [file, environment, environment],
    ] as const
    for (const [inFile, inEnvironment, expected] of given) {
      const config = configOf(key, inFile, inEnvironment)
      expect(gatewaySettings(config)[member]).toBe(expected)
      if (search) expect(search(searchSettings(config))).toBe(expected)
    }
  },
)

test('CP-22 the token of a sandbox that belongs to this process is for no other address', () => {
  const { config } = loadConfig(undefined, {})
  const own = { url: 'http://127.0.0.1:1', token: 'made-for-this-process' }
  expect(sandboxBrokerSettings(config, own)).toMatchObject({ ...own, configuredToken: undefined })
  const set = loadConfig(undefined, { OTARI_SANDBOX_TOKEN: 'set-by-the-operator' })
  expect(sandboxBrokerSettings(set.config, own)).toMatchObject({ configuredToken: 'set-by-the-operator' })
})

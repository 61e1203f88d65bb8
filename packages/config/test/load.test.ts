import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { effectiveConfig, loadConfig } from '../src/index.ts'

const folder = mkdtempSync(join(tmpdir(), 'config-'))
afterAll(() => rmSync(folder, { recursive: true }))

let files = 0
function file(text: string): string {
  const path = join(folder, `${files++}.yml`)
  writeFileSync(path, text)
  return path
}

describe('a setting', () => {
  test('CFG-37 has the documented defaults when nothing is said', () => {
    const { config } = loadConfig(undefined, {})
    expect(config).toMatchObject({ host: '0.0.0.0', port: 8000, reject_user_mismatch: true })
    expect(config.master_key).toBeUndefined()
  })

  test('CFG-22 comes from the file, and the environment wins over it', () => {
    const path = file('web_fetch_enabled: true\nport: 9000\n')
    expect(loadConfig(path, {}).config.web_fetch_enabled).toBe(true)
    const both = loadConfig(path, { OTARI_WEB_FETCH_ENABLED: 'false', OTARI_PORT: '9100' })
    expect(both.config).toMatchObject({ web_fetch_enabled: false, port: 9100 })
    expect(both.origins).toMatchObject({ web_fetch_enabled: 'environment', port: 'environment' })
  })

  test.each([
    ['true', true],
    ['1', true],
    ['ON', true],
    ['False', false],
    ['0', false],
    ['no', false],
  ])('reads %s as a boolean from the environment', (text, value) => {
    expect(loadConfig(undefined, { OTARI_REQUIRE_PRICING: text }).config.require_pricing).toBe(value)
  })

  test.each(['OTARI', ' otari ', 'Otari', 'otari'])('X-02 reads %j as an executor wherever it is set', (text) => {
    const written = file(`code_execution_executor: ${JSON.stringify(text)}`)
    expect(loadConfig(written, {}).config.code_execution_executor).toBe('otari')
    const { config, origins } = loadConfig(undefined, { OTARI_CODE_EXECUTION_EXECUTOR: text })
    expect([config.code_execution_executor, origins.code_execution_executor]).toEqual(['otari', 'environment'])
  })

  test.each(['gateway', '', 7, null])('X-02 %j is no executor', (value) => {
    expect(() => loadConfig(file(`code_execution_executor: ${JSON.stringify(value)}`), {})).toThrow(
      'code_execution_executor',
    )
  })

  test('that is blank in the environment counts as not set there', () => {
    expect(loadConfig(file('port: 9000'), { OTARI_PORT: ' ' }).config.port).toBe(9000)
  })

  test('may hold a part from the environment, and a missing one names itself', () => {
    const path = file('providers:\n  openai:\n    api_key: "${CANARY}"\n')
    expect(loadConfig(path, { CANARY: 'sk-1: x\ny: z' }).config.providers.openai?.api_key).toBe('sk-1: x\ny: z')
    expect(() => loadConfig(path, {})).toThrow('CANARY')
  })
})

describe('what is wrong stops the start and says where', () => {
  test.each([
    ['databse: x', 'databse'],
    ['port: 70000', 'port'],
    ['port: "8000"', 'port'],
    ['providers:\n  mine:\n    api_key: k', 'providers.mine.type: is needed'],
    ['providers:\n  mine:\n    type: openai-compatible', 'providers.mine.api_base: is needed'],
    ['web_search_provider: google', 'web_search_provider'],
    ['search_tools:\n  a:\n    timeout: 0', 'search_tools.a.timeout'],
    ['fetch_tools:\n  a:\n    timeout: 0', 'fetch_tools.a.timeout'],
    ['fetch_tools:\n  a:\n    price_per_call: -1', 'fetch_tools.a.price_per_call'],
    ['fetch_tools:\n  a:\n    fetch_tool: b', 'fetch_tools.a'],
    ['web_fetch_default_tool: ""', 'web_fetch_default_tool'],
    ['providers:\n  "a b": {}', 'providers'],
    ['- 1', 'settings'],
    ['a: [', 'yml'],
    ['sandbox_url: ftp://x', 'sandbox_url'],
  ])('%s', (text, word) => {
    expect(() => loadConfig(file(text), {})).toThrow(word)
  })

  test('an environment value is named by its variable', () => {
    expect(() => loadConfig(undefined, { OTARI_PORT: 'eighty' })).toThrow('OTARI_PORT')
    expect(() => loadConfig(undefined, { OTARI_WEB_FETCH_ENABLED: 'maybe' })).toThrow('OTARI_WEB_FETCH_ENABLED')
  })

  test('an unknown variable of our prefix is only worth a warning', () => {
    expect(loadConfig(undefined, { OTARI_PROT: '1', OTARI_API_KEY: 'gw-x' }).warnings).toEqual([
      'OTARI_PROT is not a setting and is ignored',
    ])
  })

  test('CFG-55 an unknown search provider fails and half a pair warns', () => {
    expect(() => loadConfig(undefined, { OTARI_WEB_SEARCH_PROVIDER: 'ask' })).toThrow('OTARI_WEB_SEARCH_PROVIDER')
    expect(loadConfig(undefined, { OTARI_WEB_SEARCH_PROVIDER: 'brave' }).warnings).toHaveLength(1)
    expect(loadConfig(undefined, { OTARI_WEB_SEARCH_PROVIDER_API_KEY: 'k' }).warnings).toHaveLength(1)
  })
})

test('the effective settings show where a value came from and no secret', () => {
  const path = file(
    'providers:\n  openai:\n    api_key: sk-canary\nsearch_tools:\n  exa:\n    api_key: exa-canary\nfetch_tools:\n  pages:\n    api_key: pages-canary\n',
  )
  const loaded = loadConfig(path, {
    OTARI_MASTER_KEY: 'master-canary-123456',
    OTARI_DATABASE_URL: 'postgres://u:canary@h/db',
    OTARI_NATS_URL: 'nats://canary@h:4222',
  })
  const shown = JSON.stringify(effectiveConfig(loaded))
  expect(shown).not.toContain('canary')
  expect(effectiveConfig(loaded).database_url).toEqual({ value: 'postgres://(set)@h/db', from: 'environment' })
})

describe('the web MCP server’s variables', () => {
  test('WM-10 WM-11 win over the file and over OTARI_ names', () => {
    const path = file('mcp_web_fetch_timeout_sec: 5\nmcp_web_fetch_allow_hosts: [a.corp]\nmcp_image_max_mb: 1\n')
    const otari = { OTARI_MCP_IMAGE_MAX_MB: '2', OTARI_MCP_WEB_FETCH_TIMEOUT_SEC: '6' }
    expect(loadConfig(path, otari).config).toMatchObject({ mcp_image_max_mb: 2, mcp_web_fetch_timeout_sec: 6 })
    const { config, origins } = loadConfig(path, {
      ...otari,
      DPTTOOLS_WEB_SEARCH_PROVIDER: 'bing',
      DPTTOOLS_WEB_SEARCH_API_KEY: ' key ',
      DPTTOOLS_WEB_FETCH_TIMEOUT: '2.5',
      DPTTOOLS_WEB_FETCH_MAX_BYTES: '1000',
      DPTTOOLS_WEB_FETCH_MAX_REDIRECTS: '0',
      DPTTOOLS_WEB_FETCH_ALLOW_HOSTS: 'wiki.corp, b.corp,',
      DPTTOOLS_FETCH_IMAGE_MAX_BYTES: '2000',
      DPTTOOLS_IMAGE_MAX_EDGE_PX: '800',
      DPTTOOLS_IMAGE_MAX_MB: '0.5',
    })
    expect(config).toMatchObject({
      mcp_web_search_provider: 'bing',
      mcp_web_search_api_key: 'key',
      mcp_web_fetch_timeout_sec: 2.5,
      mcp_web_fetch_max_bytes: 1_000,
      mcp_web_fetch_max_redirects: 0,
      mcp_web_fetch_allow_hosts: ['wiki.corp', 'b.corp'],
      mcp_fetch_image_max_bytes: 2_000,
      mcp_image_max_edge_px: 800,
      mcp_image_max_mb: 0.5,
    })
    expect(origins).toMatchObject({ mcp_web_fetch_timeout_sec: 'environment' })
  })

  test('WM-10 have their documented defaults, also when blank', () => {
    const { config } = loadConfig(undefined, { DPTTOOLS_WEB_FETCH_TIMEOUT: ' ', DPTTOOLS_WEB_SEARCH_API_KEY: '' })
    expect(config).toMatchObject({
      mcp_web_fetch_timeout_sec: 30,
      mcp_web_fetch_max_bytes: 2_000_000,
      mcp_web_fetch_max_redirects: 5,
      mcp_web_fetch_allow_hosts: [],
      mcp_fetch_image_max_bytes: 10_000_000,
      mcp_image_max_edge_px: 1_568,
      mcp_image_max_mb: 3,
    })
    expect([config.mcp_web_search_provider, config.mcp_web_search_api_key]).toEqual([undefined, undefined])
  })

  test.each([
    ['DPTTOOLS_WEB_FETCH_TIMEOUT', 'abc'],
    ['DPTTOOLS_WEB_FETCH_TIMEOUT', '0'],
    ['DPTTOOLS_WEB_FETCH_MAX_BYTES', '2e6'],
    ['DPTTOOLS_WEB_FETCH_MAX_REDIRECTS', '-1'],
    ['DPTTOOLS_FETCH_IMAGE_MAX_BYTES', '1.5'],
    ['DPTTOOLS_IMAGE_MAX_EDGE_PX', 'wide'],
    ['DPTTOOLS_IMAGE_MAX_MB', '-3'],
  ])('WM-12 %s=%s stops the start and is named', (variable, text) => {
    expect(() => loadConfig(undefined, { [variable]: text })).toThrow(new RegExp(`^${variable}: `))
  })

  test('WM-13 the key is not shown among the settings in force', () => {
    const loaded = loadConfig(undefined, { DPTTOOLS_WEB_SEARCH_API_KEY: 'canary' })
    expect(JSON.stringify(effectiveConfig(loaded))).not.toContain('canary')
  })
})

describe('a model with tools of its backend', () => {
  const seat = (more: string) =>
    loadConfig(file(`models:\n  COREPUNK23:\n    provider: router\n    model: m\n${more}`), {})

  test('PE-42 PE-43 PE-70 is refused with both settings, whatever they name', () => {
    for (const listed of ['web_search', '$other']) {
      const both = `    delegated_search: web_search\n    provider_executed_tools: ["${listed}"]\n`
      expect(() => seat(both)).toThrow(
        `agent "COREPUNK23" sets both \`delegated_search\` ("web_search") and \`provider_executed_tools\` (["${listed}"]); they are alternatives — `,
      )
      expect(() => seat(both)).toThrow('Clear `provider_executed_tools` to keep the delegated form')
    }
  })

  test('PE-02 PE-46 names no blank tool and none twice, and a name stays as it is written', () => {
    for (const wrong of ['provider_executed_tools: [""]', 'provider_executed_tools: [" "]', 'delegated_search: ""'])
      expect(() => seat(`    ${wrong}\n`)).toThrow('must name a tool of the backend')
    expect(() => seat('    provider_executed_tools: [a, a]\n')).toThrow('must name each tool once')
    const { config } = seat('    provider_executed_tools: ["$Some_Tool", " $x "]\n')
    expect(config.models.COREPUNK23).toMatchObject({
      provider_executed_tools: ['$Some_Tool', ' $x '],
      provider_tool_max_calls: 10,
      web_search_keyword: 'otari',
    })
    expect(seat('').config.models.COREPUNK23).toMatchObject({ provider_executed_tools: [] })
  })
})

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
  const path = file('providers:\n  openai:\n    api_key: sk-canary\nsearch_tools:\n  exa:\n    api_key: exa-canary\n')
  const loaded = loadConfig(path, {
    OTARI_MASTER_KEY: 'master-canary-123456',
    OTARI_DATABASE_URL: 'postgres://u:canary@h/db',
    OTARI_NATS_URL: 'nats://canary@h:4222',
  })
  const shown = JSON.stringify(effectiveConfig(loaded))
  expect(shown).not.toContain('canary')
  expect(effectiveConfig(loaded).database_url).toEqual({ value: 'postgres://(set)@h/db', from: 'environment' })
})

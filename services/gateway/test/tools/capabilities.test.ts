import { changedSettings, Fault } from '@tollgate/contracts'
import { describe, expect, test } from 'vitest'
import { defaultSettings, type GatewaySettings } from '../../src/settings.ts'
import { type Capabilities, openCapabilities } from '../../src/tools/capabilities.ts'
import { describeTools } from '../../src/tools/registry.ts'
import { exaInstance, openBrokers, silent } from '../brokers.ts'

const nothing: Capabilities = { search: null, fetch: false, sandbox: false, intercept: false, executor: 'auto' }
const accepted = (capabilities: Partial<Capabilities>) =>
  Object.fromEntries(
    describeTools({ ...nothing, ...capabilities }).map(({ id, accepted_types }) => [id, accepted_types]),
  )

describe('the list of tools', () => {
  test('T-05 of a bare deployment holds all three, none available', () => {
    expect(describeTools(nothing).map(({ id, available }) => [id, available])).toEqual([
      ['otari_web_search', false],
      ['otari_web_fetch', false],
      ['otari_code_execution', false],
    ])
  })

  test.each([
    ['otari_web_search', { search: exaInstance }],
    ['otari_web_fetch', { fetch: true }],
    ['otari_code_execution', { sandbox: true }],
  ])('T-02 makes %s alone available by %j', (id, capability) => {
    const available = describeTools({ ...nothing, ...capability }).filter((tool) => tool.available)
    expect(available.map((tool) => tool.id)).toEqual([id])
  })

  test('T-06 shows each with a ready entry and its schema, T-13 of exactly these arguments', () => {
    for (const { id, object, example, input_schema, description } of describeTools(nothing)) {
      expect(object).toBe('tool')
      expect(example).toEqual({ type: id })
      expect(description).not.toBe('')
      const [argument] =
        { otari_web_search: ['query'], otari_web_fetch: ['url'], otari_code_execution: ['code'] }[id] ?? []
      expect(input_schema).toMatchObject({
        properties: { [String(argument)]: { type: 'string' } },
        required: [argument],
      })
      expect(Object.keys(input_schema.properties as object)).toHaveLength(1)
    }
  })

  test('T-12 names the keywords that would be run here', () => {
    expect(accepted({ search: exaInstance, sandbox: true, fetch: true })).toEqual({
      otari_web_search: ['otari_web_search'],
      otari_web_fetch: ['otari_web_fetch'],
      otari_code_execution: ['otari_code_execution', 'code_execution', 'code_interpreter', 'code_execution_<date>'],
    })
    expect(accepted({ search: exaInstance, intercept: true }).otari_web_search).toEqual([
      'otari_web_search',
      'web_search',
      'web_search_<date>',
      'web_search_preview',
    ])
    expect(accepted({ sandbox: true, executor: 'provider' }).otari_code_execution).toEqual(['otari_code_execution'])
    expect(accepted({ intercept: true }).otari_web_search).toEqual(['otari_web_search'])
  })
})

describe('what the deployment can run', () => {
  test('is asked of the brokers once for all who want to know, and again after a change', async () => {
    const brokers = await openBrokers()
    const settings = { ...defaultSettings, webFetchEnabled: true }
    const capabilities = openCapabilities({ bus: brokers.bus, settings, log: silent })
    const [first] = await Promise.all([capabilities(), capabilities(), capabilities()])
    expect(first).toEqual({ search: exaInstance, fetch: true, sandbox: true, intercept: false, executor: 'auto' })
    expect(brokers.asked.describes).toBe(1)

    brokers.inLoop = null
    expect((await capabilities()).search).not.toBeNull()
    brokers.bus.announce(changedSettings, {})
    await expect.poll(async () => (await capabilities()).search).toBeNull()
    settings.webFetchEnabled = false
    expect((await capabilities()).fetch).toBe(false)
  })

  test('F-19 FP-02 fetches run on the instance that search-broker names, else on the built-in fetcher', async () => {
    const brokers = await openBrokers()
    const settings = { ...defaultSettings, webFetchEnabled: true, webFetchDefaultTool: 'pages' }
    const unknown = await openCapabilities({ bus: brokers.bus, settings, log: silent })()
    expect([unknown.fetch, unknown.fetchInstance]).toEqual([true, undefined])
    brokers.inLoopFetch = { label: 'exa:pages', instance: 'pages', provider: 'exa' }
    const known = await openCapabilities({ bus: brokers.bus, settings, log: silent })()
    expect([known.fetch, known.fetchInstance]).toEqual([true, brokers.inLoopFetch])
  })

  test.each([
    ['pages', false],
    ['builtin_fetch', true],
    [undefined, true],
  ])('with search-broker down a default fetch tool of %s is available: %s', async (webFetchDefaultTool, available) => {
    const brokers = await openBrokers()
    brokers.describeFails = new Fault('unavailable', 'starting')
    const settings = { ...defaultSettings, webFetchEnabled: true, webFetchDefaultTool }
    expect((await openCapabilities({ bus: brokers.bus, settings, log: silent })()).fetch).toBe(available)
  })

  test('a broker that is down takes its tool with it, and is asked again soon', async () => {
    const brokers = await openBrokers()
    brokers.describeFails = new Fault('unavailable', 'starting')
    const capabilities = openCapabilities({ bus: brokers.bus, settings: defaultSettings, log: silent })
    expect(await capabilities()).toMatchObject({ search: null, sandbox: true })
    brokers.describeFails = undefined
    await expect.poll(async () => (await capabilities()).search, { timeout: 5_000 }).toEqual(exaInstance)
  })

  test.each<[Partial<GatewaySettings>, string[]]>([
    [{}, []],
    [{ sandboxUrl: 'http://box.test' }, ['code_execution']],
    [{ brokersHave: { searchTools: [], hostedSandbox: true } }, ['code_execution']],
    [{ webSearchUrl: 'http://search.test' }, ['web_search']],
    [{ webSearchProvider: 'tavily' }, ['web_search']],
    [{ webSearchUrl: 'http://search.test', webSearchDefaultTool: 'NONE' }, []],
    [{ brokersHave: { searchTools: ['one'], hostedSandbox: false } }, ['web_search']],
    [{ brokersHave: { searchTools: ['one', 'two'], hostedSandbox: false } }, []],
    [
      { brokersHave: { searchTools: ['one', 'two'], hostedSandbox: false }, webSearchDefaultTool: 'two' },
      ['web_search'],
    ],
    [{ brokersHave: { searchTools: ['one', 'two'], hostedSandbox: false }, webSearchDefaultTool: 'ghost' }, []],
    [{ webFetchDefaultTool: 'pages' }, ['web_fetch']],
    [{ webFetchDefaultTool: 'pages', webFetchEnabled: false }, []],
    [{ webFetchDefaultTool: 'builtin_fetch' }, []],
  ])('T-02 S-30 of brokers that were never heard, %j has %j away and no more', async (given, expected) => {
    const brokers = await openBrokers()
    brokers.describeFails = brokers.sandboxDescribeFails = new Fault('unavailable', 'starting')
    const settings = { ...defaultSettings, webFetchEnabled: true, ...given }
    const capabilities = openCapabilities({ bus: brokers.bus, settings, log: silent })
    const { search, sandbox, away } = await capabilities()
    expect([search, sandbox, [...(away?.keys() ?? [])]]).toEqual([null, false, expected])
    brokers.describeFails = brokers.sandboxDescribeFails = undefined
    brokers.bus.announce(changedSettings, {})
    await expect.poll(async () => (await capabilities()).away).toBeUndefined()
  })

  test('X-29 a broker that falls silent is taken to have what it had: who needs it is told to come again', async () => {
    const brokers = await openBrokers()
    const capabilities = openCapabilities({ bus: brokers.bus, settings: defaultSettings, log: silent })
    expect((await capabilities()).search).toEqual(exaInstance)
    brokers.describeFails = new Fault('unavailable', 'starting')
    const before = brokers.asked.describes
    brokers.bus.announce(changedSettings, {})
    await expect
      .poll(async () => {
        expect((await capabilities()).search).toEqual(exaInstance)
        return brokers.asked.describes
      })
      .toBeGreaterThan(before)
    brokers.describeFails = undefined
    brokers.inLoop = null
    await expect.poll(async () => (await capabilities()).search, { timeout: 5_000 }).toBeNull()
  })
})

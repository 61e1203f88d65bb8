import { describe, expect, test } from 'vitest'
import type { Dialect } from '../../src/conversation/turn.ts'
import { type ExecutorChoice, readExecutors } from '../../src/loop/executors.ts'
import { runsNatively, type Target, toolForKeyword } from '../../src/loop/keywords.ts'
import { defaultSettings } from '../../src/settings.ts'
import { awayOf } from '../../src/tools/away.ts'
import type { Capabilities } from '../../src/tools/capabilities.ts'
import { chatFunction } from '../turns.ts'
import { anthropic, type Given, planOf, ran, refusal } from './planning.ts'

describe("providers' keywords", () => {
  test.each([
    ['web_search', 'web_search'],
    ['web_search_20250305', 'web_search'],
    ['web_search_preview', 'web_search'],
    ['web_search_preview_2025_03_11', 'web_search'],
    ['web_fetch_20250910', 'web_fetch'],
    ['code_execution', 'code_execution'],
    ['code_execution_20250825', 'code_execution'],
    ['code_interpreter', 'code_execution'],
    ['web_fetch', undefined],
    ['web_search_2025', undefined],
    ['web_search_202503055', undefined],
    ['WEB_SEARCH', undefined],
    ['code_execution_2025082', undefined],
    ['computer_use_preview', undefined],
    ['file_search', undefined],
    ['mcp', undefined],
    ['otari_web_serach', undefined],
  ])('T-31 %s is read as %s', (type, name) => {
    expect(toolForKeyword(type)?.name).toBe(name)
    const executors = { web_search: 'otari', web_fetch: 'otari', code_execution: 'otari' } as const
    expect(ran([{ type }], { executors })).toEqual(name === undefined ? [] : [name])
  })

  test.each<[string, Dialect, Target['vendor'], string, boolean]>([
    ['web_search_20250305', 'messages', 'anthropic', 'claude', true],
    ['web_search_20250305', 'chat', 'anthropic', 'claude', false],
    ['web_search', 'messages', 'anthropic', 'claude', false],
    ['web_search', 'responses', 'openai', 'gpt', true],
    ['web_search_preview', 'responses', 'openai', 'gpt', true],
    ['web_search', 'chat', 'openai', 'gpt', false],
    ['web_search_20250305', 'messages', 'deepseek', 'deepseek-flash', true],
    ['web_search', 'responses', 'deepseek', 'deepseek-v4-pro', true],
    ['web_search', 'responses', 'deepseek', 'deepseek-flash', false],
    ['web_search_preview', 'responses', 'deepseek', 'deepseek-v4-pro', false],
    ['web_fetch_20250910', 'messages', 'anthropic', 'claude', true],
    ['web_fetch_20250910', 'messages', 'openai', 'gpt', false],
    ['web_fetch_20250910', 'chat', 'anthropic', 'claude', false],
    ['code_execution_20250825', 'messages', 'anthropic', 'claude', true],
    ['code_execution_20250825', 'messages', 'other', 'claude', false],
    ['code_interpreter', 'responses', 'openai', 'gpt', true],
    ['code_interpreter', 'chat', 'openai', 'gpt', false],
    ['code_execution', 'chat', 'gemini', 'gemini', true],
    ['code_execution', 'messages', 'gemini', 'gemini', true],
    ['code_execution_20250825', 'messages', 'gemini', 'gemini', true],
    ['code_execution', 'messages', 'anthropic', 'claude', false],
  ])('S-05 F-03 X-15 %s in %s by %s %s is native: %s', (keyword, dialect, vendor, model, native) => {
    expect(runsNatively(keyword, dialect, { vendor, model, dialect })).toBe(native)
  })

  test('T-15 T-16 go to the provider as they came where nothing says otherwise', () => {
    const entries = [{ type: 'web_search_20250305', max_uses: 5.5 }, { type: 'web_fetch_20250910' }]
    const { tools, owned, messages } = planOf(entries, { turn: { dialect: 'messages' }, target: anthropic })
    expect(tools.map(({ raw }) => raw)).toEqual(entries)
    expect(owned.size).toBe(0)
    expect(messages).toHaveLength(1)
  })

  test.each([
    [{}, {}, 'forward'],
    [{ web_search: 'auto' }, {}, 'run'],
    [{ web_search: 'otari' }, {}, 'run'],
    [{ web_search: 'provider' }, {}, 'forward'],
    [{}, { intercept: true }, 'run'],
    [{ web_search: 'auto' }, { intercept: true }, 'run'],
    [{ web_search: 'otari' }, { intercept: true }, 'run'],
    [{ web_search: 'otari' }, { search: null }, 'forward'],
    [{}, { search: null, intercept: true }, 'forward'],
    [{ web_fetch: 'otari' }, {}, 'forward'],
  ] as [ExecutorChoice, Partial<Capabilities>, string][])(
    'S-02..S-11 a search keyword under %j and %j: %s',
    (executors, capabilities, action) => {
      expect(ran([{ type: 'web_search' }], { executors, capabilities })).toEqual(action === 'run' ? ['web_search'] : [])
    },
  )

  test('S-04 auto leaves a search to the model that runs it itself', () => {
    const given = {
      turn: { dialect: 'messages' as const },
      target: anthropic,
      executors: { web_search: 'auto' as const },
    }
    expect(ran([{ type: 'web_search_20250305' }], given)).toEqual([])
    expect(ran([{ type: 'web_search_20250305' }], { ...given, executors: { web_search: 'otari' } })).toEqual([
      'web_search',
    ])
  })

  test('S-10 interception cannot be sent away', () => {
    const given = { capabilities: { intercept: true }, executors: { web_search: 'provider' as const } }
    expect(refusal([{ type: 'web_search' }], given)).toEqual([
      403,
      'this deployment runs every web search on its own backend; the Otari-Web-Search header cannot hand it to the provider',
    ])
    expect(() => planOf([chatFunction('f')], given)).not.toThrow()
  })

  test.each([
    [{}, {}, false],
    [{ web_fetch: 'auto' }, {}, true],
    [{ web_fetch: 'otari' }, {}, true],
    [{ web_fetch: 'provider' }, {}, false],
    [{ web_fetch: 'otari' }, { fetch: false }, false],
    [{}, { intercept: true }, false],
    [{ web_search: 'otari' }, {}, false],
  ] as [ExecutorChoice, Partial<Capabilities>, boolean][])(
    'F-01..F-08 a fetch keyword under %j and %j runs here: %s',
    (executors, capabilities, runs) => {
      expect(ran([{ type: 'web_fetch_20250910' }], { executors, capabilities })).toEqual(runs ? ['web_fetch'] : [])
    },
  )

  test.each([
    [undefined, 'auto', true],
    [undefined, 'otari', true],
    [undefined, 'provider', false],
    ['provider', 'otari', false],
    ['otari', 'provider', true],
    ['auto', 'provider', true],
  ] as const)('X-06 code under the header %s and the default %s runs here: %s', (header, executor, runs) => {
    const executors = header === undefined ? {} : { code_execution: header }
    expect(ran([{ type: 'code_interpreter' }], { executors, capabilities: { executor } })).toEqual(
      runs ? ['code_execution'] : [],
    )
  })

  test('X-09 X-10 code without a sandbox goes to the provider, and asking for ours is refused', () => {
    const capabilities = { sandbox: false }
    expect(ran([{ type: 'code_interpreter' }], { capabilities })).toEqual([])
    const text =
      'code execution was asked to run on this gateway but no sandbox is configured. Set OTARI_SANDBOX_URL on the gateway, or let the provider run it.'
    const executors = { code_execution: 'otari' as const }
    expect(refusal([{ type: 'code_interpreter' }], { capabilities, executors })).toEqual([400, text])
    expect(refusal([{ type: 'code_interpreter' }], { capabilities: { ...capabilities, executor: 'otari' } })).toEqual([
      400,
      text,
    ])
    expect(() => planOf([chatFunction('f')], { capabilities, executors })).not.toThrow()
  })

  describe('for a tool that is away', () => {
    const settings = {
      ...defaultSettings,
      webFetchEnabled: true,
      sandboxUrl: 'http://box.test',
      webSearchUrl: 'http://search.test',
      webFetchDefaultTool: 'pages',
    }
    const away = awayOf(settings, { search: false, sandbox: false })
    const nothing = { search: null, fetch: false, sandbox: false, ...(away && { away }) }
    const legacy =
      "web_search backend unreachable. Check the search URL in the dashboard's Tools settings, or OTARI_WEB_SEARCH_URL, and that the backend is running."
    const later = (what: string) => [503, `${what} temporarily unavailable. Retry later.`]
    const code = later('code_execution sandbox')

    test.each<[string, unknown[], Given]>([
      ['otari_code_execution', code, {}],
      ['otari_web_search', [502, legacy], {}],
      ['otari_web_fetch', later('web_fetch backend'), {}],
      ['code_interpreter', code, {}],
      ['code_interpreter', code, { executors: { code_execution: 'otari' } }],
      ['code_execution', code, { policies: { code: { executor: 'otari' } } }],
      ['web_search', [502, legacy], { executors: { web_search: 'auto' } }],
      ['web_search', [502, legacy], { capabilities: { intercept: true } }],
      ['web_fetch_20250910', later('web_fetch backend'), { executors: { web_fetch: 'otari' } }],
    ])('X-29 S-39 %s is told to come again: %j where %j', (type, expected, given) => {
      expect(refusal([{ type }], { ...given, capabilities: { ...nothing, ...given.capabilities } })).toEqual(expected)
    })

    test.each<[string, Given]>([
      ['code_execution_20250825', {}],
      ['code_execution_20250825', { policies: { code: { executor: 'provider' } } }],
      ['code_execution_20250825', { executors: { code_execution: 'provider' } }],
      ['web_search_20250305', {}],
      ['web_search_20250305', { executors: { web_search: 'auto' } }],
      ['web_fetch_20250910', { executors: { web_fetch: 'auto' } }],
    ])('%s stays with the provider that runs it: %j', (type, given) => {
      const at = { turn: { dialect: 'messages' as const }, target: anthropic, capabilities: nothing }
      expect(ran([{ type }], { ...at, ...given })).toEqual([])
    })

    test('S-10 X-07 what cannot be chosen is refused as ever', () => {
      const pinned = { policies: { code: { executor: 'otari' as const } } }
      const chosen = { executors: { code_execution: 'provider' as const, web_search: 'provider' as const } }
      const capabilities = { ...nothing, intercept: true }
      expect(refusal([{ type: 'code_execution' }], { ...pinned, ...chosen, capabilities })[0]).toBe(403)
      expect(refusal([{ type: 'web_search' }], { ...chosen, capabilities })[0]).toBe(403)
    })

    test('X-10 T-10 T-11 T-09 a tool that is not configured is still none', () => {
      const capabilities = { search: null, fetch: false, sandbox: false }
      for (const type of ['otari_code_execution', 'otari_web_search', 'otari_web_fetch'])
        expect(refusal([{ type }], { capabilities })[0]).toBe(400)
    })
  })

  test('X-13 of code cannot stand beside ours when the provider runs it', () => {
    const [status, text] = refusal([{ type: 'otari_code_execution' }, { type: 'code_interpreter' }], {
      executors: { code_execution: 'provider' },
    })
    expect(status).toBe(400)
    expect(text).toMatch(
      /^otari_code_execution cannot be combined with a provider-native code-execution tool \(code_execution, code_interpreter, code_execution_<date>\) in the same request; pick one\./,
    )
  })

  test('T-21 twice claimed, or claimed beside ours, are one too many', () => {
    const executors = { web_search: 'otari' as const }
    for (const first of ['otari_web_search', 'web_search_preview']) {
      expect(refusal([{ type: first }, { type: 'web_search' }], { executors })[1]).toBe(
        'A managed web tool may be declared at most once',
      )
    }
    expect(() => planOf([{ type: 'otari_web_search' }, { type: 'web_search' }])).not.toThrow()
  })

  test('of another wire are refused by name, unless they run here', () => {
    const given = { turn: { dialect: 'messages' as const } }
    expect(refusal([{ type: 'web_search_20250305' }], given)).toEqual([
      400,
      "The tool type 'web_search_20250305' cannot be sent to the provider of this model",
    ])
    expect(ran([{ type: 'web_search_20250305' }], { ...given, executors: { web_search: 'auto' } })).toEqual([
      'web_search',
    ])
  })
})

describe('executor headers', () => {
  test.each([
    ['otari-web-search', 'Otari-Web-Search', 'yes'],
    ['otari-web-fetch', 'Otari-Web-Fetch', 'native'],
    ['otari-code-execution', 'Otari-Code-Execution', 'sandbox'],
  ])('X-08 S-03 F-02 %s takes its three words and no other', (header, name, wrong) => {
    expect(() => readExecutors({ [header]: wrong })).toThrow(`${name} must be one of auto, otari, provider`)
    expect(readExecutors({ [header]: '  ' })).toEqual({})
    expect(Object.values(readExecutors({ [header]: ' OTARI ' }))).toEqual(['otari'])
    expect(Object.values(readExecutors({ [header]: 'auto' }))).toEqual(['auto'])
  })
})

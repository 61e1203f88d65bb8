import { Fault } from '@tollgate/contracts'
import { describe, expect, test } from 'vitest'
import type { Dialect, JsonObject, Turn } from '../../src/conversation/turn.ts'
import { type ExecutorChoice, readExecutors } from '../../src/loop/executors.ts'
import { runsNatively, type Target, toolForKeyword } from '../../src/loop/keywords.ts'
import { mayRunHere, plan } from '../../src/loop/plan.ts'
import { defaultSettings, type GatewaySettings } from '../../src/settings.ts'
import type { Capabilities } from '../../src/tools/capabilities.ts'
import { exaInstance } from '../brokers.ts'
import { chatFunction, turnOf, userMessage } from '../turns.ts'

const everything: Capabilities = { search: exaInstance, fetch: true, sandbox: true, intercept: false, executor: 'auto' }
const chatTarget: Target = { vendor: 'other', model: 'm', dialect: 'chat' }
const anthropic: Target = { vendor: 'anthropic', model: 'claude', dialect: 'messages' }

interface Given {
  turn?: Partial<Turn>
  capabilities?: Partial<Capabilities>
  settings?: Partial<GatewaySettings>
  executors?: ExecutorChoice
  target?: Target
}

function planOf(
  tools: JsonObject[],
  { turn, capabilities, settings, executors = {}, target = chatTarget }: Given = {},
) {
  const made = turnOf(tools, turn)
  return plan({
    turn: made,
    bodyText: JSON.stringify(made.raw),
    settings: { ...defaultSettings, ...settings },
    capabilities: { ...everything, ...capabilities },
    executors,
    target,
  })
}

const refusal = (tools: JsonObject[], given?: Given): [number, string] => {
  try {
    planOf(tools, given)
  } catch (thrown) {
    const { status, message } = Fault.from(thrown)
    return [status, message]
  }
  throw new Error('nothing was refused')
}
const ran = (tools: JsonObject[], given?: Given) => [...planOf(tools, given).owned.keys()]

describe('declarations of ours', () => {
  test.each([
    ['otari_web_search', 'web_search'],
    ['otari_web_fetch', 'web_fetch'],
    ['otari_code_execution', 'code_execution'],
  ])('T-14 %s runs here whatever the headers and settings say', (type, name) => {
    const executors = { web_search: 'provider', web_fetch: 'provider', code_execution: 'provider' } as const
    for (const target of [chatTarget, anthropic]) {
      expect(ran([{ type }], { executors, target, capabilities: { executor: 'provider' } })).toEqual([name])
    }
  })

  test.each([
    [
      'otari_web_fetch',
      { fetch: false },
      'otari_web_fetch tool requested but web fetch is disabled on this gateway. Set OTARI_WEB_FETCH_ENABLED=true on the gateway, or remove otari_web_fetch from `tools`.',
    ],
    [
      'otari_web_search',
      { search: null },
      'otari_web_search tool requested but no search backend is configured on this gateway. Set OTARI_WEB_SEARCH_URL on the gateway, or remove otari_web_search from `tools`.',
    ],
    [
      'otari_code_execution',
      { sandbox: false },
      'otari_code_execution tool requested but no sandbox is configured on this gateway. Set OTARI_SANDBOX_URL on the gateway, or remove otari_code_execution from `tools`.',
    ],
  ])('T-09 T-10 T-11 %s is refused where it cannot run, and the others are not', (type, missing, text) => {
    expect(refusal([{ type }], { capabilities: missing })).toEqual([400, text])
    const others = ['otari_web_search', 'otari_web_fetch', 'otari_code_execution'].filter((other) => other !== type)
    expect(() =>
      planOf(
        others.map((other) => ({ type: other })),
        { capabilities: missing },
      ),
    ).not.toThrow()
  })

  test('T-13 T-26 become functions under their bare names, in their places; all else goes on as it came', () => {
    const weather = chatFunction('get_weather')
    const unknown = { type: 'image_generation', size: 'auto' }
    const { tools } = planOf([weather, { type: 'otari_web_search' }, unknown, { type: 'otari_web_fetch' }])
    expect(tools.map(({ raw }) => raw)).toEqual([
      weather,
      {
        type: 'function',
        function: {
          name: 'web_search',
          description: 'Search the web and return ranked results with page text.',
          parameters: { type: 'object', properties: { query: { type: 'string' } }, required: ['query'] },
        },
      },
      unknown,
      { type: 'function', function: expect.objectContaining({ name: 'web_fetch' }) },
    ])
    expect(tools[0]?.raw).toBe(weather)
  })

  test('T-26 take the form of functions in the client dialect', () => {
    const form = (dialect: Dialect) =>
      planOf([{ type: 'otari_code_execution' }], { turn: { dialect }, target: { ...chatTarget, dialect } }).tools[0]
        ?.raw
    expect(form('messages')).toMatchObject({ name: 'code_execution', input_schema: { required: ['code'] } })
    expect(form('responses')).toMatchObject({ type: 'function', name: 'code_execution', parameters: {} })
  })

  test('T-21 a web tool twice is refused; X-12 code twice is one function', () => {
    for (const type of ['otari_web_search', 'otari_web_fetch']) {
      expect(refusal([{ type }, { type }])).toEqual([400, 'A managed web tool may be declared at most once'])
    }
    expect(planOf([{ type: 'otari_code_execution' }, { type: 'code_execution' }]).tools).toHaveLength(1)
  })

  test('W-36 domain lists of the search hold for fetched pages too', () => {
    const { owned } = planOf([
      { type: 'otari_web_fetch' },
      { type: 'otari_web_search', blocked_domains: ['evil.test'], allowed_domains: ['good.test'] },
    ])
    expect(owned.get('web_fetch')?.options.domains).toEqual({
      allowedDomains: ['good.test'],
      blockedDomains: ['evil.test'],
    })
  })
})

describe('functions of the client', () => {
  test.each(['web_search', 'web_fetch', 'code_execution'])('T-19 named %s stay its own, intercepted or not', (name) => {
    const executors = readExecutors({
      'otari-web-search': 'otari',
      'otari-web-fetch': 'otari',
      'otari-code-execution': 'otari',
    })
    const { owned, tools } = planOf([chatFunction(name)], { executors, capabilities: { intercept: true } })
    expect(owned.size).toBe(0)
    expect(tools[0]?.raw).toEqual(chatFunction(name))
  })

  test('T-20 under the name of a web tool are refused beside one that runs here', () => {
    for (const name of ['web_search', 'web_fetch']) {
      for (const type of ['otari_web_search', 'otari_web_fetch']) {
        expect(refusal([chatFunction(name), { type }])).toEqual([
          400,
          'A caller-defined function uses a reserved managed web-tool name',
        ])
      }
      expect(() => planOf([chatFunction(name), { type: 'otari_code_execution' }])).not.toThrow()
    }
  })

  test('BR-057 named code_execution are refused beside ours, since a call could not be told apart', () => {
    expect(refusal([chatFunction('code_execution'), { type: 'otari_code_execution' }])[0]).toBe(400)
  })
})

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

describe('a choice of tool', () => {
  const search = { type: 'otari_web_search' }
  const typed = (name: string) => ({ type: 'typed', name, raw: { type: name } }) as const

  test('T-27 that names a declaration which runs here means its function', () => {
    const toolChoice = typed('otari_web_search')
    expect(planOf([search], { turn: { toolChoice } }).toolChoice).toEqual({ type: 'function', name: 'web_search' })
    const named = { type: 'function', name: 'otari_web_search' } as const
    expect(planOf([search], { turn: { toolChoice: named } }).toolChoice).toEqual({
      type: 'function',
      name: 'web_search',
    })
    const native = { turn: { toolChoice: typed('web_search_preview') }, executors: { web_search: 'otari' as const } }
    expect(planOf([{ type: 'web_search_preview' }], native).toolChoice).toEqual({
      type: 'function',
      name: 'web_search',
    })
  })

  test('T-27 that names what the provider runs is left alone, as is any other', () => {
    const toolChoice = typed('web_search_preview')
    expect(planOf([{ type: 'web_search_preview' }], { turn: { toolChoice } }).toolChoice).toBe(toolChoice)
    for (const choice of [{ type: 'required' }, { type: 'none' }, { type: 'function', name: 'f' }] as const) {
      expect(planOf([search], { turn: { toolChoice: choice } }).toolChoice).toBe(choice)
    }
  })
})

describe('purpose hints', () => {
  const code = { type: 'otari_code_execution' }
  const systemOf = (tools: JsonObject[], given: Given = {}) => planOf(tools, given).messages[0]

  test('T-29 T-30 are taken from the declaration, else the setting, else what is built in', () => {
    const settings = { webSearchPurposeHint: 'set search', sandboxPurposeHint: 'set code' }
    const text = (tools: JsonObject[], given?: Given) => systemOf(tools, given)?.parts[0]
    expect(text([{ type: 'otari_web_search' }])).toEqual({
      type: 'text',
      text: 'You have access to the following tools:\n- web_search: Use it for anything recent.',
    })
    expect(text([{ type: 'otari_web_search' }, code], { settings })).toMatchObject({
      text: 'You have access to the following tools:\n- web_search: set search\n- code_execution: set code',
    })
    expect(
      text(
        [
          { type: 'otari_web_search', purpose_hint: 'own search' },
          { ...code, purpose_hint: 'own code' },
        ],
        { settings },
      ),
    ).toMatchObject({
      text: 'You have access to the following tools:\n- web_search: own search\n- code_execution: own code',
    })
  })

  test('T-29 stand under the header of the request, else of the deployment', () => {
    const header = (given: Given) => JSON.stringify(systemOf([code], given)?.parts[0]).match(/"text":"(.*?)\\n/)?.[1]
    expect(header({ settings: { toolsHeader: 'Set:' } })).toBe('Set:')
    expect(header({ settings: { toolsHeader: 'Set:' }, turn: { toolsHeader: 'Asked:' } })).toBe('Asked:')
  })

  test('T-29 in Chat follow a first system message, whose other members stay', () => {
    const given = (content: string | JsonObject[]) => ({
      turn: {
        messages: [
          {
            role: 'system' as const,
            parts: [{ type: 'text' as const, text: 'Be brief.' }],
            raw: { dialect: 'chat' as const, value: { role: 'system', name: 'n', content } },
          },
          userMessage('Hi'),
        ],
      },
    })
    const block = expect.stringMatching(/^You have access/)
    expect(systemOf([code], given('Be brief.'))).toMatchObject({
      parts: [{ text: 'Be brief.' }, { text: block }],
      raw: { value: { name: 'n', content: expect.stringMatching(/^Be brief\.\n\nYou have access/) } },
    })
    const array = [{ type: 'text', text: 'Be brief.', cache_control: {} }]
    expect(systemOf([code], given(array))?.raw?.value.content).toEqual([...array, { type: 'text', text: block }])
    expect(planOf([code], given('Be brief.')).messages).toHaveLength(2)
  })

  test('T-29 in the other dialects come first', () => {
    const system = { role: 'system' as const, parts: [{ type: 'text' as const, text: 'Be brief.' }] }
    const messages = [system, userMessage('Hi')]
    const target = { ...chatTarget, dialect: 'messages' as const }
    expect(systemOf([code], { turn: { dialect: 'messages', messages }, target })?.parts).toMatchObject([
      { text: expect.stringMatching(/^You have access/) },
      { text: 'Be brief.' },
    ])
  })
})

describe('a container', () => {
  const code = { type: 'otari_code_execution' }
  test.each(['auto', ' AUTO ', { type: 'auto' }])(
    'C-03 wished for as %j is not kept, and the request is served',
    (container) => {
      const { turn } = planOf([{ ...code, container }], { turn: { raw: { container, session: 1 } } })
      expect(turn.raw).not.toHaveProperty('container')
      expect(turn.raw.session).toBe(1)
    },
  )

  test.each([
    ['otari_cntr_0123', 'otari_cntr_0123'],
    [{ id: 'abc' }, 'abc'],
    [`x\n\u0007${'y'.repeat(500)}`, `x${'y'.repeat(63)}…`],
  ])('C-13 C-14 named by the id %j is gone', (container, shown) => {
    expect(refusal([{ ...code, container }])).toEqual([400, `Container '${shown}' has expired or does not exist.`])
  })

  test('C-07 wished for in two ways at once is a mistake', () => {
    expect(refusal([{ ...code, container: 'auto' }], { turn: { raw: { container: 'otari_cntr_1' } } })[0]).toBe(400)
  })

  test('C-22 C-23 of the provider passes where the provider runs the code, one of ours does not', () => {
    const native = { type: 'code_interpreter' }
    const given = (container: string | JsonObject): Given => ({
      turn: { raw: { container } },
      executors: { code_execution: 'provider' },
    })
    expect(planOf([native], given('container_abc')).turn.raw.container).toBe('container_abc')
    expect(planOf([native], given({ type: 'auto' })).turn.raw.container).toEqual({ type: 'auto' })
    for (const ours of ['auto', 'otari_cntr_1']) {
      expect(refusal([native], given(ours))[1]).toMatch(/^container names a sandbox this gateway holds/)
    }
  })

  test('C-24 of ours pins the code here, where nothing else decides', () => {
    const target = { vendor: 'openai', model: 'gpt', dialect: 'responses' } as const
    const turn = { dialect: 'responses' as const }
    const native = { type: 'code_interpreter', container: 'otari_cntr_1' }
    expect(ran([{ type: 'code_interpreter' }], { turn, target })).toEqual([])
    expect(refusal([native], { turn, target })[1]).toMatch(/has expired or does not exist/)
  })
})

test('T-33 a request without a tool of ours is left as it is', () => {
  const turn = turnOf([chatFunction('f'), { type: 'image_generation' }])
  expect(mayRunHere(turn)).toBe(false)
  expect(mayRunHere(turnOf([{ type: 'web_search' }]))).toBe(true)
  const made = planOf([chatFunction('f')])
  expect(made.messages).toBe(made.turn.messages)
  expect(made.tools[0]).toBe(made.turn.tools[0])
})

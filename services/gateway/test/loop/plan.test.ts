import { describe, expect, test } from 'vitest'
import type { Dialect, JsonObject } from '../../src/conversation/turn.ts'
import { readExecutors } from '../../src/loop/executors.ts'
import { mayRunHere } from '../../src/loop/plan.ts'
import { chatFunction, turnOf } from '../turns.ts'
import { anthropic, chatTarget, type Given, planOf, ran, refusal } from './planning.ts'

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

describe('a container', () => {
  const code = { type: 'otari_code_execution' }
  const ours = `otari_cntr_${'0'.repeat(32)}`
  test.each([
    ['auto', { kind: 'auto' }],
    [' AUTO ', { kind: 'auto' }],
    [{ type: 'auto' }, { kind: 'auto' }],
    [{ id: ours }, { kind: 'id', id: ours }],
  ])('C-03 C-07 wished for as %j is asked for here, and goes no further', (container, wish) => {
    const { turn, owned } = planOf([{ ...code, container }], { turn: { raw: { container, session: 1 } } })
    expect(owned.get('code_execution')?.options.container).toEqual(wish)
    expect(turn.raw).not.toHaveProperty('container')
    expect(turn.raw.session).toBe(1)
  })

  test.each([
    [10, 2_460],
    [1, 300],
    [25, 3_600],
  ])('CP-24 the sandbox of a request with %i rounds may be needed for %i s', (maxToolIterations, seconds) => {
    const { owned } = planOf([code], { turn: { maxToolIterations } })
    expect(owned.get('code_execution')?.options).toMatchObject({ container: undefined, leaseSeconds: seconds })
  })

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
    const native = { type: 'code_interpreter', container: ours }
    expect(ran([{ type: 'code_interpreter' }], { turn, target })).toEqual([])
    expect(ran([native], { turn, target })).toEqual(['code_execution'])
    expect(refusal([{ ...native, container: 'otari_cntr_1' }], { turn, target })[1]).toMatch(/has expired or does not/)
    // the word names no sandbox, so that the code stays with the provider, which does not know it
    expect(refusal([{ ...native, container: 'auto' }], { turn, target })[1]).toMatch(/^container names a sandbox/)
  })

  test('C-25 of ours is refused where what outranks it has the provider run the code', () => {
    const target = { vendor: 'openai', model: 'gpt', dialect: 'responses' } as const
    const native = { type: 'code_interpreter', container: ours }
    const turn = { dialect: 'responses' as const }
    const refused = [400, expect.stringMatching(/^container names a sandbox this gateway holds/)]
    expect(refusal([native], { turn, target, executors: { code_execution: 'provider' } })).toEqual(refused)
    expect(refusal([native], { turn, target, policies: { code: { executor: 'provider' } } })).toEqual(refused)
    expect(refusal([native], { turn, target, capabilities: { executor: 'provider' } })).toEqual(refused)
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

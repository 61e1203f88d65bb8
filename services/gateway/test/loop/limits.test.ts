import { describe, expect, test } from 'vitest'
import type { ModelRequest, Turn } from '../../src/conversation/turn.ts'
import { legacySearch } from '../brokers.ts'
import { chatFunction, turnOf } from '../turns.ts'
import { answers, callBlock, calls, round, scripted } from './scripted-provider.ts'
import { gather, openLoop } from './serving.ts'

const search = { type: 'otari_web_search' }
const fetch = { type: 'otari_web_fetch' }
const weather = chatFunction('get_weather')
const asks = (n: number) => calls([`c${n}`, 'web_search', { query: `q${n}` }])
const fetches = (n: number) => calls([`c${n}`, 'web_fetch', { url: `https://a.test/${n}` }])
const rounds = (count: number, make: (n: number) => ReturnType<typeof asks>) =>
  Array.from({ length: count }, (_, n) => make(n))
const names = ({ tools }: ModelRequest) => tools.map((tool) => (tool.kind === 'function' ? tool.name : tool.type))
const lastWords = ({ messages }: ModelRequest) => messages.at(-1)

describe('the last round', () => {
  const instruction = {
    role: 'system',
    parts: [{ type: 'text', text: 'No more tool calls are available. Answer now from the results you already have.' }],
  }

  test('L-05 L-06 offers nothing of ours and asks for an answer, so that a model that searches forever gives one', async () => {
    const { serve } = await openLoop()
    const model = scripted([...rounds(2, asks), answers('What I know.')])
    const seen = await gather(serve(turnOf([search], { maxToolIterations: 3 }), [model]))
    expect(model.requests.map(names)).toEqual([['web_search'], ['web_search'], []])
    expect(model.requests.map(lastWords).map((message) => message?.role)).toEqual(['user', 'tool', 'system'])
    expect(lastWords(model.requests[2] as ModelRequest)).toEqual(instruction)
    expect(model.requests[2]).toMatchObject({ toolChoice: undefined, parallelToolCalls: undefined })
    expect(seen.text).toBe('What I know.')
  })

  test('L-10 is the only one where one is allowed', async () => {
    const { serve, brokers } = await openLoop()
    const model = scripted([answers('A')])
    await gather(serve(turnOf([search, weather], { maxToolIterations: 1 }), [model]))
    expect(model.requests.map(names)).toEqual([['get_weather']])
    expect(brokers.asked.search).toEqual([])
  })

  test('L-08 leaves the tools of the client, and a choice of ours becomes automatic', async () => {
    const { serve } = await openLoop()
    const toolChoice = { type: 'typed', name: 'otari_web_search', raw: {} } as const
    const model = scripted([answers('A')])
    await gather(
      serve(turnOf([search, weather], { maxToolIterations: 1, toolChoice, parallelToolCalls: true }), [model]),
    )
    expect(model.requests[0]).toMatchObject({ toolChoice: { type: 'auto' }, parallelToolCalls: true })
    expect(names(model.requests[0] as ModelRequest)).toEqual(['get_weather'])
  })

  test('L-08 leaves a choice of the client’s own tool', async () => {
    const { serve } = await openLoop()
    const toolChoice = { type: 'function', name: 'get_weather' } as const
    const model = scripted([answers('A')])
    await gather(serve(turnOf([search, weather], { maxToolIterations: 1, toolChoice }), [model]))
    expect(model.requests[0]?.toolChoice).toEqual(toolChoice)
  })

  test('L-08 keeps the definitions, forbidden, where the wire needs them beside tool blocks', async () => {
    const { serve } = await openLoop()
    const turn: Partial<Turn> = { dialect: 'messages', maxToolIterations: 2 }
    const model = scripted([asks(0), answers('A')], { name: 'anthropic', wire: 'anthropic' })
    await gather(serve(turnOf([search], turn), [model]))
    expect(model.requests[1]).toMatchObject({ toolChoice: { type: 'none' } })
    expect(names(model.requests[1] as ModelRequest)).toEqual(['web_search'])

    const bare = scripted([answers('A')], { name: 'anthropic', wire: 'anthropic' })
    await gather(serve(turnOf([search], { ...turn, maxToolIterations: 1 }), [bare]))
    expect(bare.requests.map(names)).toEqual([[]])
  })

  test('L-09 with a call of ours all the same is a 422', async () => {
    const { serve, brokers } = await openLoop()
    const serving = gather(serve(turnOf([search], { maxToolIterations: 3 }), rounds(3, asks)))
    await expect(serving).rejects.toMatchObject({ status: 422, message: 'Exceeded max_tool_iterations=3' })
    expect(brokers.asked.search).toHaveLength(2)
  })

  test('BR-053 with a call of the client beside it hands on that call alone', async () => {
    const { serve, brokers } = await openLoop()
    const mixed = round(
      [callBlock(0, 'c1', 'web_search', { query: 'q' }), callBlock(1, 'c2', 'get_weather', {})],
      'tool_calls',
    )
    const seen = await gather(serve(turnOf([search, weather], { maxToolIterations: 1 }), [mixed]))
    expect(seen.calls.map(({ id }) => id)).toEqual(['c2'])
    expect(brokers.asked.search).toEqual([])
  })
})

describe('the allowance of searches and fetches', () => {
  const turn = turnOf([search, fetch], { maxToolIterations: 25 })
  const resultTexts = ({ messages }: ModelRequest) =>
    messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'result' ? [part.text] : [])))

  test('L-20 L-21 is shared, counts what fails too, and past it the model is told', async () => {
    const { serve, brokers } = await openLoop({ webSearchMaxCalls: 4 })
    const model = scripted([
      calls(
        ['a', 'web_search', { query: 'q' }],
        ['b', 'web_search', {}],
        ['c', 'web_fetch', { url: 'https://a.test/' }],
      ),
      calls(
        ['d', 'web_fetch', { nonsense: 1 }],
        ['e', 'web_search', { query: 'r' }],
        ['f', 'web_fetch', { url: 'https://b.test/' }],
      ),
      answers('A'),
    ])
    const seen = await gather(serve(turn, [model]))
    expect(resultTexts(model.requests[2] as ModelRequest).slice(4)).toEqual([
      '[tool error] web search call limit reached for this request',
      '[tool error] web fetch call limit reached for this request',
    ])
    expect([brokers.asked.search.length, brokers.asked.fetch.length]).toEqual([1, 1])
    expect(seen.tools.slice(4).map(({ outcome }) => outcome?.shown)).toMatchObject([
      { query: 'r', failure: { tag: 'call_limit' } },
      { url: 'https://b.test/', failure: { tag: 'call_limit' } },
    ])
    expect(seen.text).toBe('A')
  })

  test('L-23 is 10 where nothing is set, and a fetch beside a search on an instance shares it', async () => {
    const { serve, brokers } = await openLoop()
    const model = scripted([...rounds(11, fetches), answers('A')])
    await gather(serve(turn, [model]))
    expect(brokers.asked.fetch).toHaveLength(10)
    expect(resultTexts(model.requests[11] as ModelRequest).at(-1)).toBe(
      '[tool error] web fetch call limit reached for this request',
    )
  })

  test.each([
    ['a search on the legacy settings', [search], asks],
    ['a fetch beside it', [search, fetch], fetches],
    ['fetch alone', [fetch], fetches],
  ])(
    'L-22 L-25 of %s is 10 whatever is set, the 11th ends the request, and 10 are billed',
    async (_what, tools, make) => {
      const { serve, brokers } = await openLoop({ webSearchMaxCalls: 20 })
      brokers.inLoop = legacySearch
      const serving = gather(serve(turnOf(tools, { maxToolIterations: 25 }), rounds(11, make)))
      await expect(serving).rejects.toMatchObject({
        status: 422,
        message: 'Web Retrieval is limited to 10 calls per request',
      })
      expect(brokers.asked.search.length + brokers.asked.fetch.length).toBe(10)
      expect(brokers.settled).toMatchObject([
        { status: 'error', lines: { length: 10 }, tokens: { input: 110, output: 55 } },
      ])
    },
  )

  test('L-24 is not used by searches that max_uses refuses, and L-03 those stop nothing else', async () => {
    const { serve, brokers } = await openLoop()
    const both = (n: number) =>
      calls([`s${n}`, 'web_search', { query: 'q' }], [`x${n}`, 'code_execution', { code: 'x' }])
    const model = scripted([...rounds(15, both), answers('A')])
    await gather(
      serve(turnOf([{ ...search, max_uses: 0 }, { type: 'otari_code_execution' }], { maxToolIterations: 25 }), [model]),
    )
    const searches = resultTexts(model.requests[15] as ModelRequest).filter((_, at) => at % 2 === 0)
    expect(new Set(searches)).toEqual(new Set(['[tool error] max_uses_exceeded']))
    expect([brokers.asked.search.length, brokers.asked.exec.length]).toEqual([0, 15])
  })
})

test('a request whose model calls without end runs 250 calls, and is settled with each', async () => {
  const { serve, brokers } = await openLoop()
  const many = calls(
    ...Array.from({ length: 300 }, (_, n): [string, string, unknown] => [`c${n}`, 'code_execution', { code: 'x' }]),
  )
  const model = scripted([many, answers('A')])
  const seen = await gather(serve(turnOf([{ type: 'otari_code_execution' }]), [model]))
  expect(brokers.asked.exec).toHaveLength(250)
  expect(seen.tools.at(-1)?.outcome?.text).toBe('[tool error] tool call limit reached for this request')
  expect(brokers.settled[0]?.lines).toHaveLength(250)
})

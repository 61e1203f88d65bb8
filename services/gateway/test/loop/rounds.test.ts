import { Fault } from '@tollgate/contracts'
import { describe, expect, test } from 'vitest'
import type { ModelEvent } from '../../src/conversation/events.ts'
import type { Message, ModelRequest } from '../../src/conversation/turn.ts'
import { hit, tenancy } from '../brokers.ts'
import { chatFunction, turnOf, userMessage } from '../turns.ts'
import { answers, callBlock, calls, round, scripted, textBlock } from './scripted-provider.ts'
import { gather, openLoop } from './serving.ts'

const search = { type: 'otari_web_search' }
const fetch = { type: 'otari_web_fetch' }
const code = { type: 'otari_code_execution' }
const weather = chatFunction('get_weather')

const offered = ({ tools }: ModelRequest) => tools.map((tool) => (tool.kind === 'function' ? tool.name : tool.type))
const resultsOf = (messages: Message[]) =>
  messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'result' ? [[part.callId, part.text]] : [])))

describe('the loop', () => {
  test('L-01 R-01 R-03 offers every tool from round 1, dispatches by name, and gives one answer', async () => {
    const { serve, brokers } = await openLoop()
    const model = scripted([
      calls(['c1', 'web_search', { query: 'q' }]),
      calls(['c2', 'web_fetch', { url: 'https://a.test/' }]),
      calls(['c3', 'code_execution', { code: 'print(1)' }]),
      answers('Done.'),
    ])
    const seen = await gather(serve(turnOf([search, fetch, code]), [model]))
    expect(model.requests.map(offered)).toEqual(Array(4).fill(['web_search', 'web_fetch', 'code_execution']))
    expect(seen.text).toBe('Done.')
    expect(seen.calls).toEqual([])
    expect([seen.count('start'), seen.count('usage'), seen.count('finish')]).toEqual([1, 1, 1])
    expect(seen.last).toMatchObject({ type: 'finish', reason: 'stop' })
    expect(seen.tools.map(({ call }) => [call.id, call.tool])).toEqual([
      ['c1', 'web_search'],
      ['c2', 'web_fetch'],
      ['c3', 'code_execution'],
    ])
    expect(brokers.asked.opened).toHaveLength(1)
    await expect.poll(() => brokers.asked.closed).toEqual(['s1'])
  })

  test('P-48 R-31 shows usage once, as the sum of all rounds', async () => {
    const { serve, brokers } = await openLoop()
    const script = [
      calls(['c1', 'web_search', { query: 'q' }]),
      calls(['c2', 'web_search', { query: 'r' }]),
      answers('A'),
    ]
    const seen = await gather(serve(turnOf([search]), script))
    expect(seen.all.at(-2)).toMatchObject({
      type: 'usage',
      tokens: { input: 30, output: 15 },
      raw: { value: { prompt_tokens: 30, completion_tokens: 15, details: { cached: 3 } } },
    })
    expect(brokers.settled).toMatchObject([{ tokens: { input: 30, output: 15 }, estimated: false }])
  })

  test('R-30 numbers the blocks of all rounds without a gap, whatever stays hidden between them', async () => {
    const { serve } = await openLoop()
    const seen = await gather(
      serve(turnOf([search, weather]), [
        round([textBlock(0, 'Let me look.'), callBlock(1, 'c1', 'web_search', { query: 'q' })], 'tool_calls'),
        round([callBlock(0, 'c2', 'web_search', { query: 'r' }), textBlock(1, 'More.')], 'tool_calls'),
        round([textBlock(0, 'So.'), callBlock(1, 'c3', 'get_weather', { city: 'Oslo' })], 'tool_calls'),
      ]),
    )
    const opened = seen.all.flatMap((event) => (event.type === 'open' ? [event.index] : []))
    const closed = seen.all.flatMap((event) => (event.type === 'close' ? [event.index] : []))
    expect(opened).toEqual([0, 1, 2, 3])
    expect(closed).toEqual([0, 1, 2, 3])
    expect(seen.text).toBe('Let me look.|More.|So.')
    expect(seen.calls).toMatchObject([{ id: 'c3', name: 'get_weather' }])
  })

  test('L-18 L-17 replays what the model said, thinking and signature included, and then every result', async () => {
    const { serve } = await openLoop()
    const thinking: ModelEvent[] = [
      { type: 'open', index: 0, block: { kind: 'thinking' } },
      { type: 'delta', index: 0, text: 'pl' },
      { type: 'delta', index: 0, text: 'an' },
      { type: 'signature', index: 0, signature: 'sig==' },
      { type: 'close', index: 0 },
    ]
    const opaque: ModelEvent[] = [{ type: 'open', index: 1, block: { kind: 'redacted_thinking', data: 'xyz' } }]
    const model = scripted([
      round(
        [thinking, opaque, textBlock(2, 'Searching.'), callBlock(3, 'c1', 'web_search', { query: 'q' })],
        'tool_calls',
      ),
      answers('A'),
    ])
    await gather(serve(turnOf([search]), [model]))
    const [, second] = model.requests
    expect(second?.messages.slice(-2)).toEqual([
      {
        role: 'assistant',
        parts: [
          { type: 'thinking', text: 'plan', signature: 'sig==' },
          { type: 'redacted_thinking', data: 'xyz' },
          { type: 'text', text: 'Searching.' },
          { type: 'call', id: 'c1', name: 'web_search', arguments: '{"query":"q"}' },
        ],
      },
      { role: 'tool', parts: [expect.objectContaining({ type: 'result', callId: 'c1', isError: false })] },
    ])
  })

  test('S-45 S-24 L-24 counts over all rounds of the request', async () => {
    const { serve, brokers } = await openLoop()
    brokers.search = async () => ({ status: 'ok', label: 'exa:main', hits: [1, 2, 3, 4, 5].map(hit) })
    const asks = ['a', 'b', 'c'].map((query, n) => calls([`c${n}`, 'web_search', { query }]))
    const model = scripted([...asks, answers('A')])
    await gather(serve(turnOf([{ ...search, max_uses: 2 }]), [model]))
    const results = resultsOf(model.requests[3]?.messages ?? [])
    expect(results.map(([, text]) => text?.slice(0, 11))).toEqual(['[1] Title 1', '[6] Title 1', '[tool error'])
    expect(results[2]).toEqual(['c2', '[tool error] max_uses_exceeded'])
    expect(brokers.asked.search).toHaveLength(2)
  })

  test('T-28 holds a forced choice for the first round alone', async () => {
    const { serve } = await openLoop()
    const toolChoice = { type: 'typed', name: 'otari_web_search', raw: { type: 'otari_web_search' } } as const
    const model = scripted([calls(['c1', 'web_search', { query: 'q' }]), answers('A')])
    const seen = await gather(serve(turnOf([search], { toolChoice }), [model]))
    expect(model.requests.map((request) => request.toolChoice)).toEqual([
      { type: 'function', name: 'web_search' },
      { type: 'auto' },
    ])
    expect(seen.text).toBe('A')
  })

  test.each([undefined, { type: 'auto' }, { type: 'none' }] as const)(
    'leaves the choice %j as it is in every round',
    async (toolChoice) => {
      const { serve } = await openLoop()
      const model = scripted([calls(['c1', 'web_search', { query: 'q' }]), answers('A')])
      await gather(serve(turnOf([search], { toolChoice }), [model]))
      expect(model.requests.map((request) => request.toolChoice)).toEqual([toolChoice, toolChoice])
    },
  )
})

describe('several calls in one turn', () => {
  test('L-13 BR-062 BR-066 run in order, each under its own id, and one that fails stops none', async () => {
    const { serve, brokers } = await openLoop()
    brokers.search = async ({ query }) =>
      query === 'blue'
        ? { status: 'failed', label: 'exa:main', tag: 'timeout' }
        : { status: 'ok', label: 'exa:main', hits: [{ ...hit(1), title: query }] }
    const model = scripted([
      calls(
        ['c1', 'web_search', { query: 'red' }],
        ['c2', 'web_search', { query: 'blue' }],
        ['c3', 'web_search', { query: 'red' }],
      ),
      calls(['c4', 'web_search', { query: 'green' }]),
      answers('A'),
    ])
    const seen = await gather(serve(turnOf([search]), [model]))
    expect(brokers.asked.search.map(({ query }) => query)).toEqual(['red', 'blue', 'red', 'green'])
    expect(resultsOf(model.requests[1]?.messages ?? []).map(([id, text]) => [id, text?.split('\n')[0]])).toEqual([
      ['c1', '[1] red'],
      ['c2', '[tool error] search failed (timeout)'],
      ['c3', '[2] red'],
    ])
    expect(resultsOf(model.requests[2]?.messages ?? []).map(([id]) => id)).toEqual(['c1', 'c2', 'c3', 'c4'])
    expect(seen.tools.map(({ call }) => call.id)).toEqual(['c1', 'c2', 'c3', 'c4'])
  })

  test('BR-066 calls of the client for one tool twice reach it as two', async () => {
    const { serve } = await openLoop()
    const script = [calls(['c1', 'get_weather', { city: 'Oslo' }], ['c2', 'get_weather', { city: 'Oslo' }])]
    const seen = await gather(serve(turnOf([search, weather]), script))
    expect(seen.calls.map(({ id, text }) => [id, text])).toEqual([
      ['c1', '{"city":"Oslo"}'],
      ['c2', '{"city":"Oslo"}'],
    ])
  })
})

describe('a turn with calls of ours and of the client', () => {
  const mixed = round(
    [
      callBlock(0, 'call_a', 'web_search', { query: 'x' }),
      callBlock(1, 'call_b', 'get_weather', '{"city":  "Oslo"}'),
      callBlock(2, 'call_c', 'web_search', { query: 'y' }),
    ],
    'tool_calls',
  )

  test('L-12 R-02 R-46 BR-060 runs ours, hands on exactly the client’s, and ends', async () => {
    const { serve, brokers } = await openLoop()
    const seen = await gather(serve(turnOf([search, weather]), [mixed]))
    expect(seen.calls).toEqual([{ kind: 'call', id: 'call_b', name: 'get_weather', text: '{"city":  "Oslo"}' }])
    expect(seen.all.find((event) => event.type === 'open')).toMatchObject({ index: 0 })
    expect(seen.last).toMatchObject({ type: 'finish', reason: 'tool_calls' })
    expect(brokers.asked.search.map(({ query }) => query)).toEqual(['x', 'y'])
    expect(brokers.settled[0]?.lines).toHaveLength(2)
    const order = seen.all.map(({ type }) => type)
    expect(order.lastIndexOf('close')).toBeLessThan(order.indexOf('tool'))
    expect(order.slice(-2)).toEqual(['usage', 'finish'])
  })

  test('BR-055 shows the model the whole turn again when the client answers its call, without another search', async () => {
    const { serve, brokers } = await openLoop()
    const turn = turnOf([search, weather])
    await gather(serve(turn, [mixed]))

    const echoed: Message = {
      role: 'assistant',
      parts: [{ type: 'call', id: 'call_b', name: 'get_weather', arguments: '{"city":"Oslo"}' }],
      raw: { dialect: 'chat', value: { role: 'assistant' } },
    }
    const theirs: Message = {
      role: 'tool',
      parts: [{ type: 'result', callId: 'call_b', text: '7 degrees', isError: false }],
    }
    const next = { ...turn, messages: [userMessage('Hello'), echoed, theirs] }
    const model = scripted([answers('7 degrees.')])
    await gather(serve(next, [model], { tenancy: { ...tenancy, request: 'r2' } }))
    const { messages = [] } = model.requests[0] ?? {}
    expect(messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'tool', 'tool', 'tool'])
    expect(messages[2]?.parts.map((part) => (part.type === 'call' ? part.id : part.type))).toEqual([
      'call_a',
      'call_b',
      'call_c',
    ])
    expect(resultsOf(messages).map(([id]) => id)).toEqual(['call_a', 'call_c', 'call_b'])
    expect(brokers.asked.search).toHaveLength(2)
  })

  test('BR-055 shows it the rounds before as well, by the words of all that the client saw', async () => {
    const { serve } = await openLoop()
    const turn = turnOf([search, weather])
    const script = [
      round([textBlock(0, 'First. '), callBlock(1, 'call_a', 'web_search', { query: 'x' })], 'tool_calls'),
      round([textBlock(0, 'Then.'), callBlock(1, 'call_b', 'get_weather', {})], 'tool_calls'),
    ]
    await gather(serve(turn, script))
    const echoed: Message = {
      role: 'assistant',
      parts: [
        { type: 'text', text: 'First. Then.' },
        { type: 'call', id: 'call_b', name: 'get_weather', arguments: '{}' },
      ],
    }
    const model = scripted([answers('A')])
    const next = { ...turn, messages: [userMessage('Hello'), echoed] }
    await gather(serve(next, [model], { tenancy: { ...tenancy, request: 'r2' } }))
    const shapes = model.requests[0]?.messages.map(({ role, parts }) => [role, ...parts.map(({ type }) => type)])
    expect(shapes?.slice(2)).toEqual([
      ['assistant', 'text', 'call'],
      ['tool', 'result'],
      ['assistant', 'text', 'call'],
    ])
  })

  test.each([
    ['another user', { user: 'eve' }, {}],
    ['another workspace', { workspace: 'other' }, {}],
    ['other arguments', {}, { arguments: '{"city":"Rome"}' }],
    ['another id', {}, { id: 'call_z' }],
  ])('BR-055 gives nothing of it to %s', async (_who, whose, changed) => {
    const { serve } = await openLoop()
    const turn = turnOf([search, weather])
    await gather(serve(turn, [mixed]))
    const echoed: Message = {
      role: 'assistant',
      parts: [{ type: 'call', id: 'call_b', name: 'get_weather', arguments: '{"city":"Oslo"}', ...changed }],
    }
    const model = scripted([answers('A')])
    const next = { ...turn, messages: [userMessage('Hello'), echoed] }
    await gather(serve(next, [model], { tenancy: { ...tenancy, ...whose, request: 'r2' } }))
    expect(model.requests[0]?.messages.at(-1)).toEqual(echoed)
  })
})

describe('a round that did not stop for tools', () => {
  test.each(['length', 'stop', 'content_filter'] as const)(
    'L-11 but for %s runs no call of ours and shows none',
    async (reason) => {
      const { serve, brokers } = await openLoop()
      const half = round([textBlock(0, 'Let me'), callBlock(1, 'c1', 'web_search', '{"query":')], reason)
      const seen = await gather(serve(turnOf([search]), [half]))
      expect(seen.text).toBe('Let me')
      expect(seen.calls).toEqual([])
      expect(seen.last).toMatchObject({ type: 'finish', reason })
      expect(brokers.asked.search).toEqual([])
    },
  )

  test('L-16 a call of a tool that does not run here is the client’s', async () => {
    const { serve, brokers } = await openLoop()
    const seen = await gather(serve(turnOf([search]), [calls(['c1', 'web_fetch', { url: 'https://a.test/' }])]))
    expect(seen.calls).toMatchObject([{ id: 'c1', name: 'web_fetch' }])
    expect(brokers.asked.fetch).toEqual([])
  })

  test('BR-056 but paused is asked to go on, and the client sees one answer', async () => {
    const { serve } = await openLoop()
    const block = { type: 'server_tool_use', id: 's1' }
    const own: ModelEvent[] = [{ type: 'open', index: 1, block: { kind: 'other', dialect: 'messages', value: block } }]
    const model = scripted([round([textBlock(0, 'Half'), own], 'pause'), answers('whole.')])
    const seen = await gather(serve(turnOf([search]), [model]))
    expect(model.requests[1]?.messages.at(-1)?.parts.at(-1)).toEqual({
      type: 'other',
      dialect: 'messages',
      kind: 'server_tool_use',
      raw: block,
    })
    expect(seen.text).toBe('Half|whole.')
    expect(seen.last).toMatchObject({ reason: 'stop' })
  })

  test('BR-056 but paused again and again ends as paused', async () => {
    const { serve } = await openLoop()
    const paused = round([textBlock(0, 'Half')], 'pause')
    const seen = await gather(serve(turnOf([search], { maxToolIterations: 2 }), [paused, paused]))
    expect(seen.last).toMatchObject({ reason: 'pause' })
  })

  test('BR-018 but just ended is a failure of the upstream', async () => {
    const { serve } = await openLoop()
    const cut = answers('Half').slice(0, 3)
    await expect(gather(serve(turnOf([search]), [cut]))).rejects.toMatchObject({ failure: 'upstream' })
  })
})

describe('arguments', () => {
  test.each(['{"query":', '[1,2]', '"q"', 'null', '', '{"query":"a\nb"}'])(
    'L-15 BR-019 written as %j are run as none at all, never mended',
    async (text) => {
      const { serve, brokers } = await openLoop()
      const model = scripted([calls(['c1', 'web_search', text], ['c2', 'code_execution', text]), answers('A')])
      const seen = await gather(serve(turnOf([search, code]), [model]))
      expect(resultsOf(model.requests[1]?.messages ?? [])).toEqual([
        ['c1', '[tool error] empty query'],
        ['c2', '[tool error] code_execution needs "code", a string'],
      ])
      expect([brokers.asked.search, brokers.asked.exec]).toEqual([[], []])
      expect(seen.text).toBe('A')
    },
  )
})

describe('a tool that throws', () => {
  test('L-14 reads as a fixed text, and nothing of what it said is seen anywhere', async () => {
    const { serve, brokers } = await openLoop()
    brokers.search = async () => {
      throw new Fault('conflict', 'secret-10.0.0.7')
    }
    const model = scripted([calls(['c1', 'web_search', { query: 'q' }]), answers('A')])
    const seen = await gather(serve(turnOf([search]), [model]))
    expect(resultsOf(model.requests[1]?.messages ?? [])).toEqual([['c1', '[tool error] Gateway tool execution failed']])
    expect(JSON.stringify([seen.all, model.requests, brokers.settled])).not.toContain('secret')
    expect(brokers.settled[0]?.lines).toMatchObject([{ outcome: 'error' }])
  })
})

test('BR-057 fifty requests at once see their own tools and results only', async () => {
  const { serve, brokers } = await openLoop()
  brokers.search = async ({ query }) => ({ status: 'ok', label: 'exa:main', hits: [{ ...hit(1), title: query }] })
  const all = Array.from({ length: 50 }, async (_, n) => {
    const lookup = { type: 'function', function: { name: 'lookup', parameters: { title: `schema ${n}` } } }
    const model = scripted([calls(['c1', 'web_search', { query: `query ${n}` }]), calls(['c2', 'lookup', { n }])])
    const turn = turnOf(n % 2 ? [search, lookup] : [lookup, search])
    const seen = await gather(serve(turn, [model], { tenancy: { ...tenancy, request: `r${n}` } }))
    for (const request of model.requests) expect(JSON.stringify(request.tools)).toContain(`"schema ${n}"`)
    expect(resultsOf(model.requests[1]?.messages ?? [])[0]?.[1]).toContain(`query ${n}\n`)
    expect(seen.calls).toMatchObject([{ name: 'lookup', text: `{"n":${n}}` }])
  })
  await Promise.all(all)
})

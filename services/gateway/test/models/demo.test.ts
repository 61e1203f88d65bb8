import { describe, expect, test } from 'vitest'
import { collectAnswer } from '../../src/conversation/collect.ts'
import type { ModelEvent } from '../../src/conversation/events.ts'
import type { JsonObject, Message, ModelRequest } from '../../src/conversation/turn.ts'
import { wishesIn } from '../../src/models/demo/wishes.ts'
import { openModels } from '../../src/models/registry.ts'
import { toldBy } from '../told.ts'
import { chatRequest, faultOf, saidIn, silent, soon } from './asking.ts'

const models = openModels({ providers: {}, demo: true, log: silent })
const ask = (model: string, body: JsonObject, changes: Partial<ModelRequest> = {}) => {
  const found = models.resolve(`demo:${model}`)
  const request = chatRequest(body, { model: found.model, ...changes })
  return collectAnswer((tell) => found.provider.ask(request, soon(), tell))
}
const user = (content: string) => ({ role: 'user', content }) as JsonObject
const offered = (...names: string[]) => names.map((name) => ({ type: 'function', function: { name } }) as JsonObject)
const TOOLS = offered('web_search', 'web_fetch', 'code_execution')

test('demo:echo says what the user said last, in small pieces that join to it, and counts alike every time', async () => {
  const text = `${'x'.repeat(23)}😀 tail 漢字 ${'y'.repeat(5_000)}`
  const found = models.resolve('demo:echo')
  const request = chatRequest(
    { stream: true, messages: [user('first'), { role: 'assistant', content: 'a' }, user(text)] },
    { model: 'echo' },
  )
  const events = await toldBy<ModelEvent>((tell) => found.provider.ask(request, soon(), tell))
  const deltas = events.flatMap((event) => (event.type === 'delta' ? [event.text] : []))
  expect(deltas.join('')).toBe(text)
  expect(deltas.length).toBeGreaterThan(100)
  for (const delta of deltas) expect(delta.isWellFormed()).toBe(true)
  expect(events[0]).toMatchObject({ type: 'start', model: 'echo' })
  expect(events.at(-1)).toMatchObject({ type: 'finish', reason: 'stop' })
  expect(events.at(-2)).toMatchObject({
    type: 'usage',
    tokens: { input: Math.ceil(`firsta${text}[]`.length / 4) },
  })
  expect(saidIn(await ask('echo', { messages: [user(text)] }))).toEqual([{ kind: 'text', text }])
  expect(saidIn(await ask('echo', { messages: [user('')] }))).toEqual([])
})

test('a cancelled demo stops, and an unknown demo model is a 404 that names the two', async () => {
  const { provider } = models.resolve('demo:echo')
  const gone = AbortSignal.abort()
  const request = chatRequest({ stream: true, messages: [user('x'.repeat(9_999))] }, { model: 'echo' })
  const reading = toldBy<ModelEvent>((tell) => provider.ask(request, { ...soon(), signal: gone }, tell))
  expect(await faultOf(reading)).toMatchObject({ failure: 'cancelled' })
  const fault = await faultOf(ask('magic', {}))
  expect(fault).toMatchObject({ failure: 'not_found', message: 'the demo models are demo:echo and demo:tools' })
})

describe('what a message asks of the tools', () => {
  test.each<[string, [string, JsonObject][]]>([
    ['search latest stable python', [['web_search', { query: 'latest stable python' }]]],
    ['Please search the web for "red pandas", thanks.', [['web_search', { query: 'red pandas' }]]],
    [
      'Search for cats and then read https://example.com/a?b=1.',
      [
        ['web_search', { query: 'cats' }],
        ['web_fetch', { url: 'https://example.com/a?b=1' }],
      ],
    ],
    [
      'Summarise https://a.example and https://b.example/x',
      [
        ['web_fetch', { url: 'https://a.example' }],
        ['web_fetch', { url: 'https://b.example/x' }],
      ],
    ],
    ['calculate 6*7', [['code_execution', { code: 'print(6*7)' }]]],
    [
      'run 2**10 then search powers of two',
      [
        ['code_execution', { code: 'print(2**10)' }],
        ['web_search', { query: 'powers of two' }],
      ],
    ],
    [
      'run this:\n```python\nprint("search x https://no.example")\n```',
      [['code_execution', { code: 'print("search x https://no.example")' }]],
    ],
    ['call get_weather with {"city":"Oslo","at":{"h":1}}', [['get_weather', { city: 'Oslo', at: { h: 1 } }]]],
    ['call f with {broken} please', []],
    ['run away', []],
    ['hello', []],
    ['', []],
  ])('%j', (text, wishes) => {
    expect(wishesIn(text).map(({ name, input }) => [name, input])).toEqual(wishes)
  })
})

describe('demo:tools', () => {
  /** Plays the loop: answers each call and asks again. */
  async function play(text: string, tools: JsonObject[], changes: Partial<ModelRequest> = {}) {
    const request = chatRequest({ tools, messages: [user(text)] }, { model: 'tools' })
    const messages: Message[] = [...request.messages]
    const calls: [string, unknown][] = []
    for (;;) {
      const { provider } = models.resolve('demo:tools')
      const answer = await collectAnswer((tell) => provider.ask({ ...request, messages, ...changes }, soon(), tell))
      const [said] = saidIn(answer) as { kind: string; id: string; name: string; text: string }[]
      if (said?.kind !== 'call') return { calls, text: said?.text ?? '', finish: answer.finish.reason }
      expect(answer.finish.reason).toBe('tool_calls')
      calls.push([said.name, JSON.parse(said.text)])
      messages.push(
        { role: 'assistant', parts: [{ type: 'call', id: said.id, name: said.name, arguments: said.text }] },
        { role: 'tool', parts: [{ type: 'result', callId: said.id, text: `result ${calls.length}`, isError: false }] },
      )
    }
  }

  test('calls one tool after the other and answers from their results', async () => {
    const { calls, text, finish } = await play(
      'search cats, then read https://example.com and then calculate 6*7',
      TOOLS,
    )
    expect(calls).toEqual([
      ['web_search', { query: 'cats' }],
      ['web_fetch', { url: 'https://example.com' }],
      ['code_execution', { code: 'print(6*7)' }],
    ])
    expect(text).toBe('web_search: result 1\n\nweb_fetch: result 2\n\ncode_execution: result 3')
    expect(finish).toBe('stop')
  })

  test('equal wishes are carried out as often as they are made', async () => {
    expect((await play('search cats. search cats.', TOOLS)).calls).toHaveLength(2)
  })

  test('says which tools it was not offered, and what it is when nothing is asked', async () => {
    const { calls, text } = await play('search cats and then calculate 6*7', offered('code_execution'))
    expect(calls).toEqual([['code_execution', { code: 'print(6*7)' }]])
    expect(text).toContain('code_execution: result 1')
    expect(text).toContain('web_search: this tool is not offered to me')
    expect((await play('hello', TOOLS)).text).toContain('scripted demo model')
    expect((await play('search cats', TOOLS, { toolChoice: { type: 'none' } })).calls).toEqual([])
  })

  test('a client’s function can be called, and a forced choice is obeyed once', async () => {
    expect((await play('call get_weather with {"city":"Oslo"}', offered('get_weather'))).calls).toEqual([
      ['get_weather', { city: 'Oslo' }],
    ])
    const { calls } = await play('cats', TOOLS, { toolChoice: { type: 'function', name: 'web_search' } })
    expect(calls).toEqual([['web_search', { query: 'cats' }]])
  })

  test('an earlier turn’s calls do not count for the next one', async () => {
    const history: JsonObject[] = [
      user('search cats'),
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'a', type: 'function', function: { name: 'web_search', arguments: '{"query":"cats"}' } }],
      },
      { role: 'tool', tool_call_id: 'a', content: 'x' },
      { role: 'assistant', content: 'web_search: x' },
      user('search cats'),
    ]
    expect(saidIn(await ask('tools', { messages: history, tools: TOOLS }))).toMatchObject([
      { kind: 'call', id: 'call_demo_2', name: 'web_search' },
    ])
  })
})

import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { dialects } from './matrix-clients.ts'
import { openMatrix } from './matrix-rig.ts'

let matrix: Awaited<ReturnType<typeof openMatrix>>
beforeAll(async () => {
  matrix = await openMatrix()
}, 60_000)
afterAll(() => matrix.close())

type Fields = Record<string, unknown>

const head = { id: 'c1', object: 'chat.completion.chunk', created: 1_792_000_000, model: 'up' }
const usage = { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 }
const chunk = (delta: Fields, finish: string | null = null, more: Fields = {}): Fields => ({
  ...head,
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
})
const role = chunk({ role: 'assistant', content: '' })
const counted: Fields = { ...head, choices: [], usage }
const call = (index: number | undefined, id: string | undefined, name: string | undefined, args?: string): Fields => ({
  ...(index !== undefined && { index }),
  ...(id !== undefined && { id }),
  ...(id !== undefined && { type: 'function' }),
  function: { ...(name !== undefined && { name }), ...(args !== undefined && { arguments: args }) },
})
const calls = (...list: Fields[]): Fields => chunk({ tool_calls: list })
const end = chunk({}, 'tool_calls')
const whole = [call(0, 'c0', 'get_weather', '{"city":"Oslo"}'), call(1, 'c1', 'get_weather', '{"city":"Rome"}')]

/** Two calls of the client's, in every manner in which servers of the field have said so. */
const streams: Record<string, (Fields | '[DONE]')[]> = {
  'BR-005 fragments of calls in turn': [
    role,
    calls(call(0, 'c0', 'get_weather', '{"city":')),
    calls(call(1, 'c1', 'get_weather', '{"ci')),
    calls(call(0, undefined, undefined, '"Oslo"}')),
    calls(call(1, undefined, undefined, 'ty":"Rome"}')),
    end,
    counted,
    '[DONE]',
  ],
  'BR-005 both in one chunk, piece by piece': [
    role,
    calls(call(0, 'c0', 'get_weather', ''), call(1, 'c1', 'get_weather', '')),
    calls(call(1, undefined, undefined, '{"city":'), call(0, undefined, undefined, '{"city":')),
    calls(call(0, undefined, undefined, '"Oslo"}'), call(1, undefined, undefined, '"Rome"}')),
    end,
    counted,
    '[DONE]',
  ],
  'BR-007 arguments before id and name': [
    role,
    calls({ index: 0, function: { arguments: '{"city":' } }),
    calls(call(0, 'c0', 'get_weather', '"Oslo"}')),
    calls(call(1, 'c1', 'get_weather', '{"city":"Rome"}')),
    end,
    counted,
    '[DONE]',
  ],
  'BR-036 calls without an index, in one chunk': [
    role,
    calls(
      call(undefined, 'c0', 'get_weather', '{"city":"Oslo"}'),
      call(undefined, 'c1', 'get_weather', '{"city":"Rome"}'),
    ),
    end,
    counted,
    '[DONE]',
  ],
  'BR-036 calls without an index, in two chunks': [
    role,
    calls(call(undefined, 'c0', 'get_weather', '{"city":"Oslo"}')),
    calls(call(undefined, 'c1', 'get_weather', '{"city":"Rome"}')),
    end,
    counted,
    '[DONE]',
  ],
  'BR-036 every call with the index 0': [
    role,
    calls(call(0, 'c0', 'get_weather', '{"city":"Oslo"}')),
    calls(call(0, 'c1', 'get_weather', '{"city":"Rome"}')),
    end,
    counted,
    '[DONE]',
  ],
  'BR-036 calls without an id': [
    role,
    calls({ index: 0, function: { name: 'get_weather', arguments: '{"city":"Oslo"}' } }),
    calls({ index: 1, function: { name: 'get_weather', arguments: '{"city":"Rome"}' } }),
    end,
    counted,
    '[DONE]',
  ],
  'BR-036 an id that is empty in later fragments': [
    role,
    calls(call(0, 'c0', 'get_weather', '{"city":')),
    calls(call(0, '', '', '"Oslo"}')),
    calls(call(1, 'c1', 'get_weather', '{"city":"Rome"}')),
    end,
    counted,
    '[DONE]',
  ],
  'BR-023 a turn that says that it just stopped': [role, calls(...whole), chunk({}, 'stop'), counted, '[DONE]'],
  'BR-023 a turn that does not say why it ended': [role, calls(...whole), counted, '[DONE]'],
  'a turn that ends with its last call': [role, chunk({ tool_calls: whole }, 'tool_calls'), counted, '[DONE]'],
  'a turn that ends twice': [role, calls(...whole), end, chunk({}, 'stop'), counted, '[DONE]'],
  'a turn that ends twice in one word': [role, calls(...whole), end, end, counted, '[DONE]'],
  'an empty chunk behind the end': [role, calls(...whole), end, chunk({ content: '' }), counted, '[DONE]'],
  'a stream without its last frame': [role, calls(...whole), end, counted],
  'BR-027 the role in every chunk': [
    role,
    chunk({ role: 'assistant', tool_calls: whole.slice(0, 1) }),
    chunk({ role: 'assistant', tool_calls: whole.slice(1) }),
    chunk({ role: 'assistant' }, 'tool_calls'),
    counted,
    '[DONE]',
  ],
  'BR-038 no role at all': [calls(...whole), end, counted, '[DONE]'],
  'null in every place': [
    chunk({ role: 'assistant', content: null, refusal: null, tool_calls: null, reasoning_content: null }),
    chunk({ content: null, tool_calls: whole, function_call: null }),
    chunk({ content: null, tool_calls: null }, 'tool_calls', { usage: null, error: null }),
    counted,
    '[DONE]',
  ],
  'what a filter says first, without a choice': [
    { ...head, choices: [], prompt_filter_results: [{ prompt_index: 0 }] },
    role,
    calls(...whole),
    end,
    counted,
    '[DONE]',
  ],
  'the count with the end': [role, calls(...whole), chunk({}, 'tool_calls', { usage }), '[DONE]'],
  'the count before the end': [role, calls(...whole), counted, end, '[DONE]'],
  'a count in every chunk': [
    { ...role, usage: { prompt_tokens: 11, completion_tokens: 0, total_tokens: 11 } },
    { ...calls(...whole), usage: { prompt_tokens: 11, completion_tokens: 6, total_tokens: 17 } },
    { ...end, usage },
    counted,
    '[DONE]',
  ],
}
const asText = (chunks: (Fields | '[DONE]')[]): string =>
  chunks.map((one) => `data: ${one === '[DONE]' ? one : JSON.stringify(one)}\n\n`).join('')

describe.each(dialects)('a %s client', (dialect) => {
  test('BR-007 is told of a call whose name never came', async () => {
    for (const ours of [true, false]) {
      const nameless = [role, calls({ index: 0, id: 'c0', function: { arguments: '{"city":"Oslo"}' } }), end, counted]
      const talk = matrix.talk(dialect, 'openai-chat', [
        { status: 200, headers: { 'content-type': 'text/event-stream' }, body: asText([...nameless, '[DONE]']) },
      ])
      const { search, weather } = talk.client.tools
      await expect(talk.ask(true, { tools: ours ? [search, weather] : [weather] })).rejects.toThrow()
      await expect.poll(talk.settled, { interval: 5 }).toMatchObject([{ status: 'error' }])
    }
  })

  test.each(Object.entries(streams))('gets two calls that an upstream tells by %s', async (_how, chunks) => {
    for (const ours of [true, false]) {
      const talk = matrix.talk(dialect, 'openai-chat', [
        { status: 200, headers: { 'content-type': 'text/event-stream' }, body: asText(chunks) },
      ])
      const { search, weather } = talk.client.tools
      const heard = await talk.ask(true, { tools: ours ? [search, weather] : [weather] })
      expect(heard).toMatchObject({ text: '', finish: 'tool_calls', tokens: { input: 11, output: 7 } })
      expect(heard.calls.map(({ name, input }) => [name, input])).toEqual([
        ['get_weather', { city: 'Oslo' }],
        ['get_weather', { city: 'Rome' }],
      ])
      expect(new Set(heard.calls.map(({ id }) => id)).size).toBe(2)
      await expect
        .poll(talk.settled, { interval: 5 })
        .toMatchObject([{ status: 'success', tokens: { input: 11, output: 7 }, estimated: false }])
    }
  })
})

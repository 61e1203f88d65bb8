import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import { afterEach, describe, expect, test } from 'vitest'
import { callsTools, type FakeJson, type FakeModel, fakeAnthropic, fakeOpenAi, says } from '../../src/index.ts'

let fake: FakeModel | undefined
afterEach(() => fake?.close())

const user = (content: unknown = 'hi') => ({ role: 'user', content }) as FakeJson
const call = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })
const f = { type: 'function', function: { name: 'f', parameters: { type: 'object' } } }
const toolUse = (id: string, input: unknown = {}) => ({ type: 'tool_use', id, name: 'f', input })
const gave = (id: string) => ({ type: 'tool_result', tool_use_id: id, content: 'x' })
const g = { name: 'f', input_schema: { type: 'object' } }

async function status(path: string, body: FakeJson, headers: Record<string, string> = {}): Promise<number> {
  const response = await fetch(`${fake?.url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  await response.arrayBuffer()
  return response.status
}

describe('OpenAI', () => {
  test('the official client reads it, streamed and not', async () => {
    const answer = callsTools([{ name: 'f', input: { a: 'é😀' }, id: 'call_x' }], { first: [{ text: 'moment' }] })
    fake = await fakeOpenAi([answer, answer], { apiKey: 'sk-x' })
    const client = new OpenAI({ apiKey: 'sk-x', baseURL: `${fake.url}/v1`, maxRetries: 0 })
    const request = {
      model: 'm',
      messages: [{ role: 'user' as const, content: 'hi' }],
      tools: [{ ...f, type: 'function' as const }],
    }
    const whole = await client.chat.completions.create(request)
    const streamed = await client.chat.completions
      .stream({ ...request, stream_options: { include_usage: true } })
      .finalChatCompletion()
    for (const { choices, usage } of [whole, streamed]) {
      expect(choices[0]).toMatchObject({
        finish_reason: 'tool_calls',
        message: {
          content: 'moment',
          tool_calls: [{ id: 'call_x', function: { name: 'f', arguments: '{"a":"é😀"}' } }],
        },
      })
      expect(usage).toMatchObject({ prompt_tokens: 11, completion_tokens: 7 })
    }
    expect(fake.refusals).toEqual([])
  })

  test.each<[string, FakeJson]>([
    ['an unknown member', { foo: 1 }],
    ['a member of this gateway', { max_tool_iterations: 3 }],
    ['no messages', { messages: [] }],
    ['an unknown role', { messages: [{ role: 'robot', content: 'x' }] }],
    ['an unknown member of a message', { messages: [{ role: 'assistant', content: 'x', otari_tool_calls: [] }] }],
    ['a result without a call', { messages: [user(), { role: 'tool', tool_call_id: 'a', content: 'x' }] }],
    [
      'a call without a result',
      { messages: [user(), { role: 'assistant', content: null, tool_calls: [call('a')] }, user()] },
    ],
    ['a call at the end', { messages: [user(), { role: 'assistant', content: null, tool_calls: [call('a')] }] }],
    [
      'a result of another call',
      {
        messages: [
          user(),
          { role: 'assistant', content: null, tool_calls: [call('a')] },
          { role: 'tool', tool_call_id: 'b', content: 'x' },
        ],
      },
    ],
    [
      'two results of one call',
      {
        messages: [
          user(),
          { role: 'assistant', content: null, tool_calls: [call('a')] },
          { role: 'tool', tool_call_id: 'a', content: 'x' },
          { role: 'tool', tool_call_id: 'a', content: 'x' },
        ],
      },
    ],
    [
      'arguments that are no text',
      {
        messages: [
          user(),
          { role: 'assistant', tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: {} } }] },
          { role: 'tool', tool_call_id: 'a', content: 'x' },
        ],
      },
    ],
    ['an assistant that says nothing', { messages: [user(), { role: 'assistant' }, user()] }],
    ['a choice without tools', { tool_choice: 'auto' }],
    ['parallelism without tools', { parallel_tool_calls: false }],
    ['an empty list of tools', { tools: [] }],
    ['a tool of another kind', { tools: [{ type: 'otari_web_search' }] }],
    ['a tool with a name it cannot have', { tools: [{ type: 'function', function: { name: 'a b' } }] }],
    [
      'a schema that is no object',
      { tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'string' } } }] },
    ],
    [
      'a choice of a tool that is not there',
      { tools: [f], tool_choice: { type: 'function', function: { name: 'g' } } },
    ],
    ['stream options without a stream', { stream_options: { include_usage: true } }],
    ['both kinds of a maximum', { max_tokens: 1, max_completion_tokens: 1 }],
  ])('refuses %s', async (_, members) => {
    fake = await fakeOpenAi([says('x')])
    expect(await status('/v1/chat/completions', { model: 'm', messages: [user()], ...members })).toBe(400)
    expect(fake.refusals).toHaveLength(1)
  })

  test('refuses a wrong key, a wrong path, and a round past the script', async () => {
    fake = await fakeOpenAi([], { apiKey: 'sk-x' })
    expect(await status('/v1/chat/completions', { model: 'm', messages: [user()] })).toBe(401)
    expect(await status('/v1/other', {})).toBe(404)
    expect(
      await status('/v1/chat/completions', { model: 'm', messages: [user()] }, { authorization: 'Bearer sk-x' }),
    ).toBe(500)
  })
})

describe('Anthropic', () => {
  const headers = { 'anthropic-version': '2023-06-01' }
  const base = { model: 'm', max_tokens: 100, messages: [user()] }

  test('the official client reads it, streamed and not', async () => {
    const answer = callsTools([{ name: 'f', input: { a: 'é😀' }, id: 'toolu_x' }], {
      first: [{ thinking: 'plan', signature: 'sig' }, { redacted: 'opaque' }, { text: 'moment' }],
    })
    fake = await fakeAnthropic([answer, answer], { apiKey: 'sk-x' })
    const client = new Anthropic({ apiKey: 'sk-x', baseURL: fake.url, maxRetries: 0 })
    const request = {
      model: 'm',
      max_tokens: 100,
      messages: [{ role: 'user' as const, content: 'hi' }],
      tools: [{ name: 'f', input_schema: { type: 'object' as const } }],
    }
    for (const message of [
      await client.messages.create(request),
      await client.messages.stream(request).finalMessage(),
    ]) {
      expect(message).toMatchObject({
        stop_reason: 'tool_use',
        content: [
          { type: 'thinking', thinking: 'plan', signature: 'sig' },
          { type: 'redacted_thinking', data: 'opaque' },
          { type: 'text', text: 'moment' },
          { type: 'tool_use', id: 'toolu_x', name: 'f', input: { a: 'é😀' } },
        ],
        usage: { input_tokens: 11, output_tokens: 7 },
      })
    }
    expect(fake.refusals).toEqual([])
  })

  const history = (...messages: FakeJson[]) => ({ tools: [g], messages: [user(), ...messages] })
  test.each<[string, FakeJson]>([
    ['an unknown member', { foo: 1 }],
    ['a member of another vendor', { response_format: { type: 'text' } }],
    ['no maximum', { max_tokens: undefined }],
    ['no messages', { messages: [] }],
    ['a first word of the assistant', { messages: [{ role: 'assistant', content: 'x' }, user()] }],
    ['a system message among the others', { messages: [user(), { role: 'system', content: 'x' }] }],
    ['an empty text', { messages: [user([{ type: 'text', text: '' }])] }],
    ['a blank text', { messages: [user('  ')] }],
    ['an empty message', { messages: [user([]), user()] }],
    ['an empty system text', { system: [{ type: 'text', text: '' }] }],
    ['a call without a result', history({ role: 'assistant', content: [toolUse('a')] }, user())],
    ['a result without a call', history({ role: 'assistant', content: 'x' }, user([gave('a')]))],
    [
      'a result that is not first',
      history({ role: 'assistant', content: [toolUse('a')] }, user([{ type: 'text', text: 'x' }, gave('a')])),
    ],
    ['two results of one call', history({ role: 'assistant', content: [toolUse('a')] }, user([gave('a'), gave('a')]))],
    ['an id used twice', history({ role: 'assistant', content: [toolUse('a'), toolUse('a')] }, user([gave('a')]))],
    ['an id it cannot have', history({ role: 'assistant', content: [toolUse('a:b')] }, user([gave('a:b')]))],
    ['input that is no object', history({ role: 'assistant', content: [toolUse('a', '{}')] }, user([gave('a')]))],
    [
      'calls where no tools are declared',
      { messages: [user(), { role: 'assistant', content: [toolUse('a')] }, user([gave('a')])] },
    ],
    [
      'a forged signature',
      history({ role: 'assistant', content: [{ type: 'thinking', thinking: 'x', signature: 'forged' }] }, user()),
    ],
    [
      'thinking without a signature',
      history({ role: 'assistant', content: [{ type: 'thinking', thinking: 'x' }] }, user()),
    ],
    ['a block of another vendor', { messages: [user([{ type: 'image_url', image_url: { url: 'u' } }])] }],
    [
      'an image of another kind',
      { messages: [user([{ type: 'image', source: { type: 'base64', media_type: 'image/tiff', data: 'AA' } }])] },
    ],
    ['white space at the end of a prefill', { messages: [user(), { role: 'assistant', content: 'x ' }] }],
    ['a choice without tools', { tool_choice: { type: 'auto' } }],
    ['a choice of another vendor', { tools: [g], tool_choice: { type: 'required' } }],
    ['a choice of a tool that is not there', { tools: [g], tool_choice: { type: 'tool', name: 'g' } }],
    ['a tool of another vendor', { tools: [f] }],
    ['a tool twice', { tools: [g, g] }],
    ['a strict tool with an open schema', { tools: [{ ...g, strict: true }] }],
    [
      'an output schema it cannot hold to',
      { output_config: { format: { type: 'json_schema', schema: { type: 'integer', minimum: 1 } } } },
    ],
    ['a temperature of another scale', { temperature: 1.5 }],
    ['a blank stop sequence', { stop_sequences: [' '] }],
    ['metadata of another vendor', { metadata: { a: 'b' } }],
    ['thinking with too little room', { thinking: { type: 'enabled', budget_tokens: 100 } }],
    [
      'thinking with a forced choice',
      {
        max_tokens: 5000,
        thinking: { type: 'enabled', budget_tokens: 2000 },
        tools: [g],
        tool_choice: { type: 'any' },
      },
    ],
    [
      'thinking that a tool turn has lost',
      {
        ...history({ role: 'assistant', content: [toolUse('a')] }, user([gave('a')])),
        max_tokens: 5000,
        thinking: { type: 'enabled', budget_tokens: 2000 },
      },
    ],
  ])('refuses %s', async (_, members) => {
    fake = await fakeAnthropic([says('x')])
    expect(await status('/v1/messages', { ...base, ...members }, headers)).toBe(400)
    expect(fake.refusals).toHaveLength(1)
  })

  test('refuses a wrong key and a missing version, and takes unsigned thinking only as a compatible server', async () => {
    fake = await fakeAnthropic([says('x')], { apiKey: 'sk-x', compatible: true })
    expect(await status('/v1/messages', base, headers)).toBe(401)
    expect(await status('/v1/messages', base, { 'x-api-key': 'sk-x' })).toBe(400)
    const thought = history(
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'x' },
          { type: 'text', text: 'y' },
        ],
      },
      user(),
    )
    fake.refusals.length = 0
    await status('/v1/messages', { ...base, ...thought }, { ...headers, 'x-api-key': 'sk-x' })
    expect(fake.refusals).toEqual(['no round 3 in the script'])
  })
})

describe('misbehaviour, on script', () => {
  const request = { model: 'm', stream: true, messages: [user()] }
  const read = async () => {
    const response = await fetch(`${fake?.url}/v1/chat/completions`, { method: 'POST', body: JSON.stringify(request) })
    return response.text()
  }

  test('bytes one by one are the same bytes', async () => {
    fake = await fakeOpenAi([says('Hello é', { piece: 3 }), says('Hello é', { piece: 3, byteByByte: true })])
    const withoutId = (text: string) => text.replaceAll(/chatcmpl-up-\d|1792\d+/g, '')
    expect(withoutId(await read())).toBe(withoutId(await read()))
  })

  test('a cut, a stall and a delay', async () => {
    fake = await fakeOpenAi([
      says('Hello', { cutAfterBytes: 50 }),
      says('Hello', { stallAfterBytes: 50 }),
      says('Hello', { delayMs: 100 }),
    ])
    await expect(read()).rejects.toThrowError()
    const gone = new AbortController()
    const stalled = await fetch(`${fake.url}/v1/chat/completions`, {
      method: 'POST',
      body: JSON.stringify(request),
      signal: gone.signal,
    })
    const reader = stalled.body?.getReader()
    expect((await reader?.read())?.value).toHaveLength(50)
    const before = fake.aborted()
    gone.abort()
    await expect.poll(() => fake?.aborted()).toBe(before + 1)
    const began = performance.now()
    await read()
    expect(performance.now() - began).toBeGreaterThanOrEqual(99)
  })

  test('any status, header and body', async () => {
    fake = await fakeOpenAi([{ status: 429, headers: { 'retry-after': '7' }, body: '<html>' }])
    const response = await fetch(`${fake.url}/v1/chat/completions`, { method: 'POST', body: JSON.stringify(request) })
    expect([response.status, response.headers.get('retry-after'), await response.text()]).toEqual([429, '7', '<html>'])
  })
})

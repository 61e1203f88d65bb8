import { callsTools, type FakeModel, fakeOpenAi, says } from '@tollgate/testing'
import { afterEach, describe, expect, test } from 'vitest'
import type { JsonObject, Message, ToolEntry } from '../../src/conversation/turn.ts'
import { chatBody } from '../../src/models/openai-chat/request.ts'
import { answerOf, chatRequest, faultOf, modelsAt, saidIn } from './asking.ts'

const fetched: ToolEntry = {
  kind: 'function',
  name: 'web_fetch',
  description: 'Reads a page.',
  parameters: { type: 'object', properties: { url: { type: 'string' } }, required: ['url'] },
  raw: {},
}

describe('the body for a Chat upstream', () => {
  const body: JsonObject = {
    foo: { bar: [1, null, 'é'] },
    model: 'up:m',
    logit_bias: { '50256': -100 },
    messages: [
      { role: 'developer', content: 'be kind', x_flag: true },
      {
        role: 'user',
        name: 'ann',
        content: [
          { type: 'text', text: 'hi', cache: 1 },
          { type: 'new_part', z: {} },
        ],
      },
    ],
    temperature: 0.5,
    metadata: { a: 'b' },
    stream: true,
    stream_options: { include_obfuscation: false },
  }

  test('T-33 T-26 a body without gateway tools goes as it came, but for the model and the usage we always ask for', () => {
    const sent = chatBody(chatRequest(body))
    expect(JSON.stringify(sent)).toBe(
      JSON.stringify({ ...body, model: 'm', stream_options: { include_obfuscation: false, include_usage: true } }),
    )
  })

  test('T-26 what is the gateway’s own does not go upstream, at the top or on a message', () => {
    const sent = chatBody(
      chatRequest({
        messages: [
          { role: 'user', content: 'a' },
          { role: 'assistant', content: 'b', otari_tool_calls: [{ id: '1' }] },
          { role: 'user', content: 'c' },
        ],
        max_tool_iterations: 3,
        tools_header: 'x',
        session_label: 's',
        guardrails: {},
        mcp_servers: [],
        mcp_server_ids: null,
      }),
    )
    expect(sent).toEqual({
      model: 'm',
      messages: [
        { role: 'user', content: 'a' },
        { role: 'assistant', content: 'b' },
        { role: 'user', content: 'c' },
      ],
    })
  })

  test('T-26 forwarded entries keep their form and place beside a function of ours', () => {
    const mine = {
      type: 'function',
      function: { name: 'mine', parameters: { type: 'object' }, strict: true },
      extra: 1,
    }
    const custom = { type: 'custom', custom: { name: 'grep' } }
    const request = chatRequest({
      tools: [mine, custom],
      tool_choice: { type: 'function', function: { name: 'mine' } },
    })
    expect(chatBody({ ...request, tools: [...request.tools, fetched] })).toMatchObject({
      tools: [
        mine,
        custom,
        {
          type: 'function',
          function: {
            name: 'web_fetch',
            description: 'Reads a page.',
            parameters: fetched.kind === 'function' ? fetched.parameters : null,
          },
        },
      ],
      tool_choice: { type: 'function', function: { name: 'mine' } },
    })
  })

  test('L-08 with the last tool go choice and parallelism; a body that never had tools keeps what it said', () => {
    const asked = chatRequest({
      tools: [{ type: 'otari_web_search' }],
      tool_choice: 'auto',
      parallel_tool_calls: false,
    })
    expect(Object.keys(chatBody({ ...asked, tools: [], toolChoice: undefined }))).toEqual(['model', 'messages'])
    expect(chatBody(chatRequest({ tools: [], tool_choice: 'none' }))).toMatchObject({ tools: [], tool_choice: 'none' })
  })

  test.each<[string, JsonObject, boolean, JsonObject]>([
    ['a stream the client did not ask for', {}, true, { stream: true, stream_options: { include_usage: true } }],
    ['no stream where it did', { stream: true, stream_options: { include_usage: true } }, false, { stream: false }],
    ['no stream', { stream: false }, false, { stream: false }],
    ['nothing said', {}, false, {}],
  ])('%s is asked for properly', (_, members, stream, expected) => {
    const { model, messages, ...rest } = chatBody(chatRequest(members, { stream }))
    expect([model, messages]).toEqual(['m', [{ role: 'user', content: 'hi' }]])
    expect(rest).toEqual(expected)
  })

  test('a choice of another kind goes as it came', () => {
    const allowed = {
      type: 'allowed_tools',
      allowed_tools: { mode: 'auto', tools: [{ type: 'function', function: { name: 'f' } }] },
    }
    const tools = [{ type: 'function', function: { name: 'f' } }]
    expect(chatBody(chatRequest({ tools, tool_choice: allowed })).tool_choice).toEqual(allowed)
  })

  const replay: Message[] = [
    {
      role: 'assistant',
      parts: [
        { type: 'thinking', text: 'plan' },
        { type: 'text', text: 'one moment' },
        { type: 'call', id: 'c1', name: 'web_fetch', arguments: '{"url":"u"}' },
        { type: 'call', id: 'c2', name: 'web_fetch', arguments: '{ "url": "v" }' },
      ],
    },
    { role: 'tool', parts: [{ type: 'result', callId: 'c1', text: 'page', isError: false }] },
    { role: 'tool', parts: [{ type: 'result', callId: 'c2', text: '[tool error] no', isError: true }] },
  ]

  test('L-18 BR-017 a round’s turn is replayed with its text, its thinking and its calls, then the results', () => {
    const request = chatRequest({})
    const { messages } = chatBody({ ...request, messages: [...request.messages, ...replay], tools: [fetched] })
    expect(messages).toEqual([
      { role: 'user', content: 'hi' },
      {
        role: 'assistant',
        content: 'one moment',
        reasoning_content: 'plan',
        tool_calls: [
          { id: 'c1', type: 'function', function: { name: 'web_fetch', arguments: '{"url":"u"}' } },
          { id: 'c2', type: 'function', function: { name: 'web_fetch', arguments: '{ "url": "v" }' } },
        ],
      },
      { role: 'tool', tool_call_id: 'c1', content: 'page' },
      { role: 'tool', tool_call_id: 'c2', content: '[tool error] no' },
    ])
  })

  test('BR-017 thinking out of another dialect’s history is left out', () => {
    const foreign: Message = {
      role: 'assistant',
      parts: [
        { type: 'thinking', text: 'plan', signature: 's' },
        { type: 'redacted_thinking', data: 'd' },
        { type: 'text', text: 'x' },
      ],
      raw: { dialect: 'messages', value: {} },
    }
    const request = chatRequest({})
    expect(chatBody({ ...request, messages: [...request.messages, foreign] }).messages).toEqual([
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'x' },
    ])
  })

  test('BR-008 a failed result that does not say so is marked; others stay byte for byte', () => {
    const results: Message = {
      role: 'user',
      parts: [
        { type: 'text', text: 'go on' },
        { type: 'image', url: 'https://e.example/a.png' },
        { type: 'result', callId: 'a', text: 'ENOENT', isError: true },
        { type: 'result', callId: 'b', text: '{"deg":21}', isError: false },
      ],
    }
    expect(chatBody({ ...chatRequest({}), messages: [results] }).messages).toEqual([
      { role: 'tool', tool_call_id: 'a', content: 'Error: ENOENT' },
      { role: 'tool', tool_call_id: 'b', content: '{"deg":21}' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'go on' },
          { type: 'image_url', image_url: { url: 'https://e.example/a.png' } },
        ],
      },
    ])
  })

  test('what only another dialect knows is refused by name', () => {
    const message: Message = {
      role: 'user',
      parts: [{ type: 'other', dialect: 'messages', kind: 'document', raw: {} }],
    }
    expect(() => chatBody({ ...chatRequest({}), messages: [message] })).toThrowError(/'document'/)
  })

  test('a longer conversation begins with the same bytes', () => {
    const first = [
      { role: 'system', content: 's' },
      { role: 'user', content: 'a' },
    ]
    const later = [...first, { role: 'assistant', content: 'b' }, { role: 'user', content: 'c' }]
    const one = JSON.stringify(chatBody(chatRequest({ messages: first })).messages).slice(0, -1)
    expect(JSON.stringify(chatBody(chatRequest({ messages: later })).messages).startsWith(one)).toBe(true)
  })
})

describe('against a strict server', () => {
  let fake: FakeModel
  afterEach(() => fake.close())

  test.each([true, false])('two rounds with a tool are proper requests (stream: %s)', async (stream) => {
    fake = await fakeOpenAi([callsTools([{ name: 'web_fetch', input: { url: 'u' }, id: 'c1' }]), says('done')], {
      apiKey: 'sk-right',
    })
    const models = modelsAt(fake, { type: 'openai-compatible', apiKey: 'sk-right' })
    const request = chatRequest(
      { stream },
      { tools: [fetched], toolChoice: { type: 'function', name: 'web_fetch' }, parallelToolCalls: false },
    )
    const first = await answerOf(models, request)
    expect(saidIn(first)).toEqual([{ kind: 'call', id: 'c1', name: 'web_fetch', text: '{"url":"u"}' }])
    const messages: Message[] = [
      ...request.messages,
      { role: 'assistant', parts: [{ type: 'call', id: 'c1', name: 'web_fetch', arguments: '{"url":"u"}' }] },
      { role: 'tool', parts: [{ type: 'result', callId: 'c1', text: 'page', isError: false }] },
      { role: 'system', parts: [{ type: 'text', text: 'answer now' }] },
    ]
    const second = await answerOf(models, {
      ...request,
      messages,
      tools: [],
      toolChoice: undefined,
      parallelToolCalls: undefined,
    })
    expect(saidIn(second)).toEqual([{ kind: 'text', text: 'done' }])
    expect(second.usage?.tokens).toMatchObject({ input: 11, output: 7 })
    expect(fake.refusals).toEqual([])
    expect(fake.requests).toHaveLength(2)
    await models.close()
  })

  test('several answers at once are refused where they would have to be read', async () => {
    fake = await fakeOpenAi([says('x')])
    const models = modelsAt(fake, { type: 'openai-compatible' })
    const fault = await faultOf(answerOf(models, chatRequest({ n: 2 })))
    expect(fault).toMatchObject({ failure: 'invalid_request' })
    expect(fault.message).toContain("'n'")
    expect(fake.requests).toHaveLength(0)
    await models.close()
  })
})

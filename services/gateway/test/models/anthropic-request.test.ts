import { fakeAnthropic, says } from '@tollgate/testing'
import { describe, expect, test } from 'vitest'
import type { JsonObject, Message, ModelRequest } from '../../src/conversation/turn.ts'
import { messagesBody } from '../../src/models/anthropic/request.ts'
import { answerOf, chatRequest, faultOf, modelsAt } from './asking.ts'

const settings = { defaultMaxTokens: 4096, replayUnsigned: false }
const bodyOf = (body: JsonObject, changes: Partial<ModelRequest> = {}) =>
  messagesBody(chatRequest(body, changes), settings)

/** The body, once a strict server has taken it. */
async function taken(body: JsonObject, changes: Partial<ModelRequest> = {}, compatible = false): Promise<JsonObject> {
  const fake = await fakeAnthropic([says('ok')], { compatible })
  const models = modelsAt(fake, { type: compatible ? 'anthropic-compatible' : 'anthropic' })
  try {
    await answerOf(models, chatRequest(body, changes)).catch(() => {})
    expect(fake.refusals).toEqual([])
    expect(fake.requests).toHaveLength(1)
    return fake.requests[0]?.body as JsonObject
  } finally {
    await models.close()
    await fake.close()
  }
}

const call = (id: string, name = 'f', args = '{"a":1}') => ({
  id,
  type: 'function',
  function: { name, arguments: args },
})
const calls = (...entries: object[]) => ({ role: 'assistant', content: null, tool_calls: entries }) as JsonObject
const result = (id: string, content: unknown) => ({ role: 'tool', tool_call_id: id, content }) as JsonObject
const user = (content: unknown) => ({ role: 'user', content }) as JsonObject
const f = {
  type: 'function',
  function: { name: 'f', description: 'Does f.', parameters: { type: 'object', properties: {} } },
}
const text = (value: string) => ({ type: 'text', text: value })
const use = (id: string, input: JsonObject = { a: 1 }, name = 'f') => ({ type: 'tool_use', id, name, input })
const gave = (id: string, content?: string, isError?: true) => ({
  type: 'tool_result',
  tool_use_id: id,
  ...(content !== undefined && { content }),
  ...(isError && { is_error: isError }),
})

describe('a conversation as the Messages API takes it', () => {
  test('system and developer messages go into system, in order, wherever they stood', async () => {
    const body = await taken({
      messages: [
        { role: 'system', content: 'a' },
        user('hi'),
        { role: 'developer', content: [text('b'), text(' ')] },
        user('there'),
      ],
    })
    expect(body.system).toEqual([text('a'), text('b')])
    expect(body.messages).toEqual([{ role: 'user', content: [text('hi'), text('there')] }])
    expect(body.max_tokens).toBe(8192)
  })

  test('BR-010 results of parallel calls are one user message, results first', async () => {
    const body = await taken({
      tools: [f],
      messages: [user('go'), calls(call('c1'), call('c2')), result('c2', 'two'), result('c1', 'one'), user('go on')],
    })
    expect(body.messages).toEqual([
      { role: 'user', content: [text('go')] },
      { role: 'assistant', content: [use('c1'), use('c2')] },
      { role: 'user', content: [gave('c1', 'one'), gave('c2', 'two'), text('go on')] },
    ])
  })

  test('BR-010 a word of the user or the system between results does not tear them apart', async () => {
    const body = await taken({
      tools: [f],
      messages: [
        user('go'),
        calls(call('c1'), call('c2')),
        result('c1', 'one'),
        user('wait'),
        { role: 'system', content: 's' },
        result('c2', ''),
      ],
    })
    expect((body.messages as JsonObject[])[2]).toEqual({
      role: 'user',
      content: [gave('c1', 'one'), gave('c2'), text('wait')],
    })
  })

  test.each<[string, JsonObject[], JsonObject[]]>([
    [
      'a call without a result',
      [calls(call('a'), call('b')), result('a', 'x'), user('u')],
      [
        { role: 'assistant', content: [use('a'), use('b')] },
        { role: 'user', content: [gave('a', 'x'), gave('b', '[tool error] no result available', true), text('u')] },
      ],
    ],
    [
      'a result without a call',
      [{ role: 'assistant', content: 'x' }, result('zzz', 'y'), user('u')],
      [
        { role: 'assistant', content: [text('x')] },
        { role: 'user', content: [text('u')] },
      ],
    ],
    [
      'two results of one call',
      [calls(call('a')), result('a', 'first'), result('a', 'second')],
      [
        { role: 'assistant', content: [use('a')] },
        { role: 'user', content: [gave('a', 'first')] },
      ],
    ],
    [
      'a result that comes too late',
      [calls(call('a')), { role: 'assistant', content: 'x' }, result('a', 'late')],
      [
        { role: 'assistant', content: [use('a')] },
        { role: 'user', content: [gave('a', '[tool error] no result available', true)] },
        { role: 'assistant', content: [text('x')] },
      ],
    ],
    [
      'calls at the very end',
      [calls(call('a'))],
      [
        { role: 'assistant', content: [use('a')] },
        { role: 'user', content: [gave('a', '[tool error] no result available', true)] },
      ],
    ],
  ])('BR-050 a history with %s is mended', async (_, messages, expected) => {
    const body = await taken({ tools: [f], messages: [user('go'), ...messages] })
    expect(body.messages).toEqual([{ role: 'user', content: [text('go')] }, ...expected])
  })

  test('ids the vendor would refuse, or has seen before, are made fit in calls and results alike', async () => {
    const body = await taken({
      tools: [f],
      messages: [
        user('go'),
        calls(call('functions.f:0'), call('functions.f:0')),
        result('functions.f:0', 'x'),
        calls(call('functions.f:0')),
        result('functions.f:0', 'y'),
      ],
    })
    const ids = (body.messages as { content: JsonObject[] }[]).flatMap(({ content }) =>
      content.map(({ id, tool_use_id }) => id ?? tool_use_id),
    )
    expect(ids.slice(1)).toEqual([
      'functions_f_0',
      'functions_f_0_2',
      'functions_f_0',
      'functions_f_0_2',
      'functions_f_0_3',
      'functions_f_0_3',
    ])
  })

  test.each([
    ['{"a":', {}],
    ['[1]', {}],
    ['', {}],
    ['"x"', {}],
    ['{"a":{"b":[1]}}', { a: { b: [1] } }],
  ])('L-15 arguments %s become an object', async (args, input) => {
    const body = await taken({ tools: [f], messages: [user('go'), calls(call('a', 'f', args)), result('a', 'x')] })
    expect((body.messages as { content: JsonObject[] }[])[1]?.content[0]?.input).toEqual(input)
  })

  test('empty and blank texts are left out, and messages with them', async () => {
    const body = await taken({
      messages: [
        user(''),
        { role: 'assistant', content: '' },
        user([text(' '), text('hi')]),
        { role: 'assistant', content: 'a ' },
      ],
    })
    expect(body.messages).toEqual([
      { role: 'user', content: [text('hi')] },
      { role: 'assistant', content: [text('a')] },
    ])
  })

  test('a history that begins with the model’s words gets a first word of the user', async () => {
    const body = await taken({ messages: [{ role: 'assistant', content: 'hello' }, user('hi')] })
    expect((body.messages as JsonObject[]).map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
  })

  test('images and documents are carried by their bytes or their address', async () => {
    const data = Buffer.from('%PDF').toString('base64')
    const body = await taken({
      messages: [
        user([
          { type: 'image_url', image_url: { url: 'https://e.example/a.png', detail: 'low' } },
          { type: 'image_url', image_url: { url: 'data:image/PNG;base64,iVBORw0KGgo=' } },
          { type: 'file', file: { file_data: `data:application/pdf;base64,${data}`, filename: 'a.pdf' } },
          { type: 'file', file: { file_data: `data:text/plain;base64,${Buffer.from('é').toString('base64')}` } },
        ]),
      ],
    })
    expect((body.messages as { content: JsonObject[] }[])[0]?.content).toEqual([
      { type: 'image', source: { type: 'url', url: 'https://e.example/a.png' } },
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' } },
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data }, title: 'a.pdf' },
      { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'é' } },
    ])
  })

  test.each<[string, JsonObject, RegExp]>([
    [
      'an image of another kind',
      user([{ type: 'image_url', image_url: { url: 'data:image/tiff;base64,AA==' } }]),
      /image\/jpeg/,
    ],
    ['an address of another kind', user([{ type: 'image_url', image_url: { url: 'file:///etc/passwd' } }]), /https/],
    ['audio', user([{ type: 'input_audio', input_audio: { data: '', format: 'wav' } }]), /'input_audio'/],
    ['a file of another vendor’s store', user([{ type: 'file', file: { file_id: 'file-1' } }]), /'file'/],
    [
      'a call of the old kind',
      { role: 'assistant', content: null, function_call: { name: 'f', arguments: '{}' } },
      /'function_call'/,
    ],
    ['a call of a custom tool', calls({ id: 'a', type: 'custom', custom: { name: 'g', input: 'x' } }), /'custom'/],
    ['nothing but a system message', { role: 'system', content: 'x' }, /messages/],
  ])('%s is refused by name', (_, message, words) => {
    const messages = message.role === 'system' ? [message] : [user('hi'), message]
    expect(() => bodyOf({ messages })).toThrowError(
      expect.objectContaining({ failure: 'invalid_request', message: expect.stringMatching(words) }),
    )
  })

  test('L-18 BR-003 BR-015 a round’s turn is replayed in its own order, each thinking with its own signature', () => {
    const said: Message = {
      role: 'assistant',
      parts: [
        { type: 'thinking', text: 'A', signature: 's1' },
        { type: 'redacted_thinking', data: 'opaque' },
        { type: 'text', text: 'x' },
        { type: 'thinking', text: 'B', signature: 's2' },
        { type: 'call', id: 't', name: 'f', arguments: '{}' },
        { type: 'other', dialect: 'messages', kind: 'server_tool_use', raw: { type: 'server_tool_use', id: 's' } },
      ],
    }
    const request = chatRequest({ tools: [f] })
    const results: Message = {
      role: 'tool',
      parts: [{ type: 'result', callId: 't', text: '[tool error] x', isError: true }],
    }
    const { messages } = messagesBody({ ...request, messages: [...request.messages, said, results] }, settings) as {
      messages: JsonObject[]
    }
    expect(messages.slice(1)).toEqual([
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'A', signature: 's1' },
          { type: 'redacted_thinking', data: 'opaque' },
          text('x'),
          { type: 'thinking', thinking: 'B', signature: 's2' },
          use('t', {}),
          { type: 'server_tool_use', id: 's' },
        ],
      },
      { role: 'user', content: [gave('t', '[tool error] x', true)] },
    ])
  })

  test('BR-017 unsigned thinking goes back to the compatible upstream that sent it, and never to the vendor', async () => {
    const said: Message = {
      role: 'assistant',
      parts: [
        { type: 'thinking', text: 'A' },
        { type: 'call', id: 't', name: 'f', arguments: '{}' },
      ],
    }
    const results: Message = { role: 'tool', parts: [{ type: 'result', callId: 't', text: 'x', isError: false }] }
    const request = chatRequest({ tools: [f] })
    const messages = [...request.messages, said, results]
    const thought = { type: 'thinking', thinking: 'A' }
    const first = ({ messages: [, message] }: JsonObject & { messages: { content: JsonObject[] }[] }) =>
      message?.content[0]
    expect(first((await taken({ tools: [f] }, { messages }, true)) as never)).toEqual(thought)
    expect(first((await taken({ tools: [f] }, { messages })) as never)).toEqual(use('t', {}))
    const history = [user('go'), { role: 'assistant', content: 'x', reasoning_content: 'foreign' }, user('on')]
    expect(JSON.stringify(await taken({ messages: history }, {}, true))).not.toContain('foreign')
  })

  test('two turns of one conversation begin with the same bytes', () => {
    const first = [{ role: 'system', content: 's' }, user('a'), calls(call('x:1')), result('x:1', 'r')]
    const later = [...first, { role: 'assistant', content: 'b' }, user('c'), calls(call('x:1')), result('x:1', 'q')]
    const one = bodyOf({ tools: [f], messages: first })
    const two = bodyOf({ tools: [f], messages: later })
    const prefix = JSON.stringify(one.messages).slice(0, -1)
    expect(JSON.stringify(two.messages).startsWith(`${prefix},`)).toBe(true)
    expect(JSON.stringify([two.system, two.tools])).toBe(JSON.stringify([one.system, one.tools]))
  })
})

describe('tools as the Messages API takes them', () => {
  test.each<[string, JsonObject, JsonObject | undefined]>([
    ['nothing said', {}, undefined],
    ['auto', { tool_choice: 'auto' }, { type: 'auto' }],
    ['required', { tool_choice: 'required' }, { type: 'any' }],
    ['none', { tool_choice: 'none' }, { type: 'none' }],
    ['a name', { tool_choice: { type: 'function', function: { name: 'f' } } }, { type: 'tool', name: 'f' }],
    ['parallel allowed', { parallel_tool_calls: true }, undefined],
    ['not parallel', { parallel_tool_calls: false }, { type: 'auto', disable_parallel_tool_use: true }],
    [
      'not parallel, required',
      { parallel_tool_calls: false, tool_choice: 'required' },
      { type: 'any', disable_parallel_tool_use: true },
    ],
    [
      'not parallel, a name',
      { parallel_tool_calls: false, tool_choice: { type: 'function', function: { name: 'f' } } },
      { type: 'tool', name: 'f', disable_parallel_tool_use: true },
    ],
    ['not parallel, none', { parallel_tool_calls: false, tool_choice: 'none' }, { type: 'none' }],
  ])('BR-028 a choice of %s is translated', async (_, members, choice) => {
    const body = await taken({ tools: [f], ...members })
    expect(body.tool_choice).toEqual(choice)
    expect(body.tools).toEqual([
      { name: 'f', description: 'Does f.', input_schema: { type: 'object', properties: {} } },
    ])
  })

  test('BR-028 nothing is added where there are no tools', async () => {
    const body = await taken({ parallel_tool_calls: false })
    expect(body).not.toHaveProperty('tools')
    expect(body).not.toHaveProperty('tool_choice')
  })

  test('L-08 a history with calls and no tools left declares them again and forbids them', async () => {
    const body = await taken({ messages: [user('go'), calls(call('a')), result('a', 'x')] })
    expect(body).toMatchObject({
      tools: [{ name: 'f', input_schema: { type: 'object' } }],
      tool_choice: { type: 'none' },
    })
  })

  test('a function without parameters or type takes an object, and a strict one a closed object', async () => {
    const body = await taken({
      tools: [
        { type: 'function', function: { name: 'a' } },
        {
          type: 'function',
          function: { name: 'b', parameters: { properties: { x: { type: 'integer', minimum: 1 } } } },
        },
        {
          type: 'function',
          function: {
            name: 'c',
            strict: true,
            parameters: { type: 'object', properties: { x: { type: 'integer', minimum: 1 } }, required: ['x'] },
          },
        },
      ],
    })
    expect(body.tools).toEqual([
      { name: 'a', input_schema: { type: 'object', properties: {} } },
      { name: 'b', input_schema: { type: 'object', properties: { x: { type: 'integer', minimum: 1 } } } },
      {
        name: 'c',
        strict: true,
        input_schema: {
          type: 'object',
          properties: { x: { type: 'integer', description: '(minimum: 1)' } },
          required: ['x'],
          additionalProperties: false,
        },
      },
    ])
  })

  test('a tool of another kind is refused by name', () => {
    expect(() => bodyOf({ tools: [{ type: 'custom', custom: { name: 'g' } }] })).toThrowError(/'custom'/)
  })
})

describe('members beside the conversation', () => {
  test('what has an equivalent is translated, what steers bookkeeping is left out', async () => {
    const body = await taken({
      max_completion_tokens: 77,
      temperature: 1.5,
      top_p: 0.9,
      top_k: 5,
      stop: 'END',
      user: 'u-1',
      stream: true,
      stream_options: { include_usage: true },
      reasoning_effort: 'minimal',
      response_format: {
        type: 'json_schema',
        json_schema: {
          name: 'x',
          strict: true,
          schema: { type: 'object', properties: { n: { oneOf: [{ type: 'integer', maximum: 3 }] } } },
        },
      },
      service_tier: 'default',
      n: 1,
      seed: 7,
      store: false,
      metadata: { a: 'b' },
      logit_bias: {},
      logprobs: false,
      frequency_penalty: 0,
      presence_penalty: 0,
      modalities: ['text'],
      prompt_cache_key: 'k',
      safety_identifier: 's',
      audio: null,
    })
    expect(body).toEqual({
      model: 'm',
      max_tokens: 77,
      messages: [{ role: 'user', content: [text('hi')] }],
      temperature: 1,
      top_p: 0.9,
      top_k: 5,
      stop_sequences: ['END'],
      metadata: { user_id: 'u-1' },
      stream: true,
      output_config: {
        effort: 'low',
        format: {
          type: 'json_schema',
          schema: {
            type: 'object',
            properties: { n: { anyOf: [{ type: 'integer', description: '(maximum: 3)' }] } },
            additionalProperties: false,
          },
        },
      },
      service_tier: 'standard_only',
    })
  })

  test.each<[string, JsonObject]>([
    ['n', { n: 2 }],
    ['logprobs', { logprobs: true }],
    ['top_logprobs', { top_logprobs: 2 }],
    ['logit_bias', { logit_bias: { 1: 2 } }],
    ['frequency_penalty', { frequency_penalty: 0.1 }],
    ['presence_penalty', { presence_penalty: -1 }],
    ['modalities', { modalities: ['text', 'audio'] }],
    ['audio', { audio: { voice: 'x' } }],
    ['functions', { functions: [{ name: 'f' }] }],
    ['function_call', { function_call: { name: 'f' } }],
    ['web_search_options', { web_search_options: {} }],
    ['moderation', { moderation: { model: 'x' } }],
    ['verbosity', { verbosity: 'low' }],
    ['service_tier', { service_tier: 'flex' }],
    ['reasoning_effort', { reasoning_effort: 'heroic' }],
    ['response_format', { response_format: { type: 'json_object' } }],
    ['response_format', { response_format: { type: 'json_schema', json_schema: { name: 'x' } } }],
    ['stop', { stop: [' \n'] }],
    ['brand_new_member', { brand_new_member: 0 }],
    ['constructor', { constructor: 1 }],
  ])('%s is refused by name where it asks for something', (name, members) => {
    expect(() => bodyOf(members)).toThrowError(
      expect.objectContaining({ failure: 'invalid_request', message: expect.stringContaining(`'${name}'`) }),
    )
  })

  test('thinking passes as the vendor documents it, makes room for itself, and rests in a tool turn that has lost it', async () => {
    const thinking = { type: 'enabled', budget_tokens: 10_000 }
    expect(await taken({ thinking })).toMatchObject({ thinking, max_tokens: 18_192 })
    const lost = { tools: [f], thinking, messages: [user('go'), calls(call('a')), result('a', 'x')] }
    expect(await taken(lost)).not.toHaveProperty('thinking')
    expect(await taken({ ...lost, thinking: { type: 'adaptive' } })).toMatchObject({ thinking: { type: 'adaptive' } })
    expect(await taken({ reasoning_effort: 'none' })).toMatchObject({ thinking: { type: 'disabled' } })
  })
})

test('an upstream’s own 400 reaches the client in one clean line', async () => {
  const fake = await fakeAnthropic([
    {
      status: 400,
      body: JSON.stringify({
        type: 'error',
        error: { type: 'invalid_request_error', message: 'messages.0: bad\nTraceback sk-ant-abcdef123456' },
      }),
      headers: { 'content-type': 'application/json' },
    },
  ])
  const models = modelsAt(fake, { type: 'anthropic' })
  expect(await faultOf(answerOf(models, chatRequest({})))).toMatchObject({
    failure: 'invalid_request',
    message: 'messages.0: bad',
  })
  await models.close()
  await fake.close()
})

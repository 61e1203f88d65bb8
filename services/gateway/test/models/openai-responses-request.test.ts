import { fakeOpenAiResponses, says } from '@tollgate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { JsonObject, Message, ModelRequest, Turn } from '../../src/conversation/turn.ts'
import { parseMessages } from '../../src/dialects/messages/parse.ts'
import { parseResponses } from '../../src/dialects/responses/parse.ts'
import { withHints } from '../../src/loop/hints.ts'
import { NO_RESULT } from '../../src/models/history.ts'
import { reasoningSignature } from '../../src/models/openai-responses/reasoning.ts'
import { responsesBody } from '../../src/models/openai-responses/request.ts'
import { openModels } from '../../src/models/registry.ts'
import { chatRequest, eventsOf, modelsAt, silent } from './asking.ts'

const requestOf = (turn: Turn, changes: Partial<ModelRequest> = {}): ModelRequest => {
  const { messages, tools, toolChoice, parallelToolCalls, stream } = turn
  return { turn, model: 'm', messages, tools, toolChoice, parallelToolCalls, stream, ...changes }
}
const own = (body: JsonObject, changes: Partial<ModelRequest> = {}): JsonObject => {
  const whole = { model: 'up:m', input: 'Hello', ...body }
  return responsesBody(requestOf(parseResponses(whole, 100).turn, changes), 'up')
}
const ofChat = (body: JsonObject, changes: Partial<ModelRequest> = {}) =>
  responsesBody(chatRequest(body, changes), 'up')
const ofMessages = (body: JsonObject) => {
  const whole = { model: 'up:m', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }], ...body }
  return responsesBody(requestOf(parseMessages(whole, 100, {})), 'up')
}
const items = (body: JsonObject) => body.input as JsonObject[]

const user = { role: 'user', content: 'Hello' }
const call = { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'f', arguments: '{}', status: 'completed' }
const output = { type: 'function_call_output', call_id: 'c1', output: '7' }
const reasoning = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'enc' }

describe('a Responses body for a Responses upstream', () => {
  test('T-26 T-33 keeps what the client sent, members and items that nobody here knows included', () => {
    const input = [
      { type: 'additional_tools', role: 'developer', tools: [{ type: 'function', name: 'x' }] },
      { ...user, unheard: 1 },
      { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'q' } },
      reasoning,
      {
        type: 'message',
        id: 'msg_1',
        role: 'assistant',
        phase: 'commentary',
        content: [{ type: 'output_text', text: 'x' }],
      },
      call,
      { ...output, output: [{ type: 'input_text', text: 'a' }] },
      { type: 'compaction', id: 'cmp_1', encrypted_content: 'zip' },
      { role: 'user', content: [{ type: 'input_image', image_url: 'https://x/y.png', detail: 'low' }] },
    ]
    const body = {
      input,
      instructions: 'Be brief.',
      tools: [
        { type: 'web_search', search_context_size: 'low' },
        { type: 'function', name: 'f', strict: true, parameters: null },
      ],
      tool_choice: { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'web_search' }] },
      parallel_tool_calls: false,
      text: { format: { type: 'json_object' }, verbosity: 'low' },
      reasoning: { effort: 'low' },
      include: ['web_search_call.action.sources'],
      prompt_cache_key: 'k',
      unheard_of: { a: 1 },
      max_output_tokens: 3,
    }
    const sent = own({ ...body, store: true, max_tool_iterations: 3, tools_header: 'x', stream: true })
    expect(sent).toEqual({
      ...body,
      model: 'm',
      stream: true,
      store: false,
      include: ['web_search_call.action.sources', 'reasoning.encrypted_content'],
    })
  })

  test('asks for encrypted reasoning, but not of models that have none', () => {
    expect(own({}).include).toEqual(['reasoning.encrypted_content'])
    expect(own({ include: ['reasoning.encrypted_content'] }).include).toEqual(['reasoning.encrypted_content'])
    for (const model of [
      'gpt-4o-mini',
      'gpt-4.1',
      'ft:gpt-4.1:x',
      'gpt-3.5-turbo',
      'chatgpt-4o-latest',
      'gpt-5-chat-latest',
    ])
      expect(own({}, { model })).not.toHaveProperty('include')
    for (const model of ['gpt-5', 'gpt-5.3-codex', 'o4-mini', 'gpt-oss-20b', 'qwen3'])
      expect(own({}, { model }).include).toEqual(['reasoning.encrypted_content'])
  })

  test('BR-040 reasoning that cannot be read again goes, and what rests on it loses its id alone', () => {
    const bare = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: null }
    const { id: _, ...nameless } = call
    expect(items(own({ input: [user, bare, call, output] }))).toEqual([user, nameless, output])
    expect(items(own({ input: [user, reasoning, call, output] }))).toEqual([user, reasoning, call, output])
  })

  test('BR-050 a call without an output gets one, an output without a call goes, and a second one too', () => {
    const custom = { type: 'custom_tool_call', call_id: 'c2', name: 'g', input: 'x' }
    expect(items(own({ input: [user, call, custom, user] }))).toEqual([
      user,
      call,
      custom,
      { type: 'function_call_output', call_id: 'c1', output: NO_RESULT },
      { type: 'custom_tool_call_output', call_id: 'c2', output: NO_RESULT },
      user,
    ])
    const stray = { ...output, call_id: 'nobody' }
    expect(items(own({ input: [user, stray, call, output, output] }))).toEqual([user, call, output])
  })

  test('T-29 hints stand before the instructions, and what the gateway says later is a developer message', () => {
    const { turn } = parseResponses({ model: 'up:m', input: 'Hello', instructions: 'Be brief.' }, 100)
    const hinted = withHints(turn.messages, 'You have tools.', 'prepend')
    const last: Message = { role: 'system', parts: [{ type: 'text', text: 'Answer now.' }] }
    const body = responsesBody(requestOf(turn, { messages: [...hinted, last] }), 'up')
    expect(body.instructions).toBe('You have tools.\n\nBe brief.')
    expect(items(body)).toEqual([
      { type: 'message', ...user },
      { type: 'message', role: 'developer', content: 'Answer now.' },
    ])
    const without = parseResponses({ model: 'up:m', input: [{ role: 'system', content: 'Item.' }, user] }, 100).turn
    const grown = withHints(without.messages, 'You have tools.', 'prepend')
    const second = responsesBody(requestOf(without, { messages: grown }), 'up')
    expect(second.instructions).toBe('You have tools.')
    expect(items(second)).toEqual([{ role: 'system', content: 'Item.' }, user])
  })

  test('L-18 what the loop added goes in its own items, in their order', () => {
    const { turn } = parseResponses({ model: 'up:m', input: 'Hello' }, 100)
    const said: Message = {
      role: 'assistant',
      parts: [{ type: 'call', id: 'c1', name: 'f', arguments: '{}' }],
      raw: { dialect: 'responses', value: { items: [reasoning, call] } },
    }
    const result: Message = { role: 'tool', parts: [{ type: 'result', callId: 'c1', text: '7', isError: false }] }
    const body = responsesBody(requestOf(turn, { messages: [...turn.messages, said, result] }), 'up')
    expect(items(body).slice(1)).toEqual([reasoning, call, output])
  })

  test('L-08 with no tool left nothing is said of them', () => {
    const tools = [{ type: 'function', name: 'f', parameters: {} }]
    const body = own({ tools, tool_choice: 'auto', parallel_tool_calls: true }, { tools: [], toolChoice: undefined })
    expect(Object.keys(body)).not.toEqual(expect.arrayContaining(['tools']))
    expect(body).not.toHaveProperty('tool_choice')
    expect(body).not.toHaveProperty('parallel_tool_calls')
  })
})

describe('a Chat body for a Responses upstream', () => {
  test.each<[string, JsonObject, JsonObject]>([
    ['max_tokens, not under the least', { max_tokens: 1 }, { max_output_tokens: 16 }],
    ['max_completion_tokens', { max_completion_tokens: 50 }, { max_output_tokens: 50 }],
    ['sampling', { temperature: 1.5, top_p: 0.5, user: 'u' }, { temperature: 1.5, top_p: 0.5, user: 'u' }],
    ['reasoning_effort', { reasoning_effort: 'low' }, { reasoning: { effort: 'low' } }],
    [
      'verbosity beside a format',
      { verbosity: 'low', response_format: { type: 'json_object' } },
      { text: { verbosity: 'low', format: { type: 'json_object' } } },
    ],
    [
      'BR-051 response_format',
      {
        response_format: { type: 'json_schema', json_schema: { name: 'n', schema: { type: 'object' }, strict: true } },
      },
      { text: { format: { type: 'json_schema', name: 'n', schema: { type: 'object' }, strict: true } } },
    ],
    [
      'what both know',
      { metadata: { a: 'b' }, service_tier: 'flex', prompt_cache_key: 'k' },
      { metadata: { a: 'b' }, service_tier: 'flex', prompt_cache_key: 'k' },
    ],
    ['what asks for nothing', { n: 1, logprobs: false, seed: 4, store: true, frequency_penalty: 0, stop: null }, {}],
  ])('carries %s', (_, members, wanted) => {
    const { model: _m, input: _i, store, include: _n, ...carried } = ofChat(members)
    expect(carried).toEqual(wanted)
    expect(store).toBe(false)
  })

  test.each<[string, JsonObject]>([
    ['stop', { stop: ['x'] }],
    ['n', { n: 2 }],
    ['logprobs', { logprobs: true }],
    ['logit_bias', { logit_bias: { 1: 2 } }],
    ['web_search_options', { web_search_options: {} }],
    ['unheard_of', { unheard_of: 1 }],
    ['response_format', { response_format: { type: 'grammar' } }],
    [
      'input_audio',
      { messages: [{ role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'x', format: 'wav' } }] }] },
    ],
  ])('refuses %s by its name', (name, members) => {
    expect(() => ofChat(members)).toThrowError(new RegExp(`'${name}'`))
  })

  test('BR-013 its history becomes items, results word for word', () => {
    const tool = (content: string | JsonObject[]) => ({ role: 'tool', tool_call_id: 'c1', content })
    const asked = { id: 'c1', type: 'function', function: { name: 'f', arguments: '{"a":' } }
    const history = (content: string | JsonObject[]) => [
      { role: 'system', content: 'Be brief.' },
      { role: 'developer', content: 'And kind.' },
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: 'Let me see.', tool_calls: [asked] },
      tool(content),
      { role: 'system', content: 'Later.' },
    ]
    const body = ofChat({ messages: history('{"deg":21}') })
    expect(body.instructions).toBe('Be brief.\n\nAnd kind.')
    expect(items(body)).toEqual([
      { type: 'message', role: 'user', content: 'Hello' },
      { type: 'message', role: 'assistant', content: 'Let me see.' },
      { type: 'function_call', call_id: 'c1', name: 'f', arguments: '{"a":' },
      { type: 'function_call_output', call_id: 'c1', output: '{"deg":21}' },
      { type: 'message', role: 'developer', content: 'Later.' },
    ])
    const parts = [
      { type: 'text', text: 'a' },
      { type: 'text', text: 'b' },
    ]
    expect(items(ofChat({ messages: history(parts) }))[3]?.output).toBe('ab')
  })

  test('images and files with their bytes go along', () => {
    const content = [
      { type: 'text', text: 'What is it?' },
      { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==', detail: 'high' } },
      { type: 'file', file: { file_data: 'data:application/pdf;base64,AA==', filename: 'a.pdf' } },
    ]
    expect(items(ofChat({ messages: [{ role: 'user', content }] }))[0]?.content).toEqual([
      { type: 'input_text', text: 'What is it?' },
      { type: 'input_image', image_url: 'data:image/png;base64,AA==', detail: 'high' },
      { type: 'input_file', file_data: 'data:application/pdf;base64,AA==', filename: 'a.pdf' },
    ])
  })

  test('functions say that they are not strict, unless they are', () => {
    const schema = { type: 'object', properties: { a: { type: 'string' } } }
    const described = (name: string, more: JsonObject) => ({
      type: 'function',
      function: { name, parameters: schema, ...more },
    })
    const tools = [
      described('f', { description: 'd' }),
      described('g', { strict: true }),
      { type: 'function', function: { name: 'h' } },
    ]
    const choice = { type: 'function', function: { name: 'g' } }
    const body = ofChat({ tools, tool_choice: choice, parallel_tool_calls: false })
    expect(body.tools).toEqual([
      { type: 'function', name: 'f', description: 'd', parameters: schema, strict: false },
      { type: 'function', name: 'g', parameters: schema, strict: true },
      { type: 'function', name: 'h', parameters: { type: 'object', properties: {} }, strict: false },
    ])
    expect(body).toMatchObject({ tool_choice: { type: 'function', name: 'g' }, parallel_tool_calls: false })
  })
})

describe('a Messages body for a Responses upstream', () => {
  test('carries what has an equivalent; a model that shall think tells its thoughts', () => {
    const format = { type: 'json_schema', schema: { type: 'object', properties: {}, additionalProperties: false } }
    const body = ofMessages({
      system: 'Be brief.',
      thinking: { type: 'enabled', budget_tokens: 2_000 },
      output_config: { format },
      metadata: { user_id: 'u' },
      tools: [{ name: 'f', input_schema: { type: 'object' } }],
      tool_choice: { type: 'any', disable_parallel_tool_use: true },
    })
    expect(body).toMatchObject({
      instructions: 'Be brief.',
      max_output_tokens: 100,
      reasoning: { effort: 'low', summary: 'auto' },
      text: { format: { type: 'json_schema', strict: true } },
      user: 'u',
      tools: [{ type: 'function', name: 'f', strict: false }],
      tool_choice: 'required',
      parallel_tool_calls: false,
    })
  })

  test.each<[string, JsonObject]>([
    ['stop_sequences', { stop_sequences: ['x'] }],
    ['top_k', { top_k: 3 }],
    ['output_config.format', { output_config: { format: { type: 'grammar' } } }],
  ])('refuses %s by its name', (name, members) => {
    expect(() => ofMessages(members)).toThrowError(new RegExp(`'${name}'`))
  })

  test('BR-003 BR-017 thoughts come back as reasoning where this provider had them, and go where it had not', () => {
    const thinking = (signature: string) => ({ type: 'thinking', thinking: 'plan', signature })
    const messages = [
      { role: 'user', content: 'hi' },
      {
        role: 'assistant',
        content: [
          thinking(reasoningSignature('up', 'rs_1', 'enc:1')),
          thinking(reasoningSignature('other', 'rs_2', 'enc')),
          thinking('of another vendor'),
          { type: 'redacted_thinking', data: 'x' },
          { type: 'tool_use', id: 't1', name: 'f', input: {} },
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: 'no', is_error: true }] },
    ]
    expect(items(ofMessages({ messages, tools: [{ name: 'f', input_schema: { type: 'object' } }] })).slice(1)).toEqual([
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'plan' }], encrypted_content: 'enc:1' },
      { type: 'function_call', call_id: 't1', name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: 't1', output: 'Error: no' },
    ])
  })
})

test('an instance of the vendor is asked in the dialect of its client, unless one wire is set', async () => {
  const fake = await fakeOpenAiResponses([says('Hi')])
  const models = openModels({
    providers: {
      openai: { apiKey: 'sk-a', apiBase: `${fake.url}/v1`, models: [] },
      chat: { type: 'openai', wire: 'openai-chat', apiBase: `${fake.url}/v1`, models: [] },
      new: { type: 'openai', wire: 'openai-responses', apiBase: `${fake.url}/v1`, models: [] },
    },
    demo: false,
    log: silent,
  })
  onTestFinished(async () => {
    await models.close()
    await fake.close()
  })
  const wire = (name: string, dialect?: 'chat' | 'messages' | 'responses') =>
    models.resolve(`${name}:m`, dialect).provider.wire
  expect([wire('openai'), wire('openai', 'chat'), wire('openai', 'messages')]).toEqual(Array(3).fill('openai-chat'))
  expect(wire('openai', 'responses')).toBe('openai-responses')
  expect([wire('chat', 'responses'), wire('new', 'chat'), wire('new', 'responses')]).toEqual([
    'openai-chat',
    'openai-responses',
    'openai-responses',
  ])
  expect(() =>
    openModels({ providers: { a: { type: 'anthropic', wire: 'openai-chat', models: [] } }, demo: false, log: silent }),
  ).toThrowError(/does not speak/)
})

test('the stand-in takes what a Chat turn with everything becomes', async () => {
  const fake = await fakeOpenAiResponses([says('Hi')], { apiKey: 'sk-a' })
  const models = modelsAt(fake, { type: 'openai-responses', apiKey: 'sk-a' })
  onTestFinished(async () => {
    await models.close()
    await fake.close()
  })
  const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: { a: {} } } } }]
  const body = { tools, max_tokens: 5, response_format: { type: 'json_object' }, reasoning_effort: 'low', stream: true }
  await eventsOf(models, chatRequest(body))
  expect(fake.refusals).toEqual([])
})

import { describe, expect, test } from 'vitest'
import type { JsonObject, Message, Part } from '../../src/conversation/turn.ts'
import { parseResponses } from '../../src/dialects/responses/parse.ts'
import { sealed } from '../../src/dialects/responses/reasoning.ts'
import { systemMessage, withHints } from '../../src/loop/hints.ts'
import { messagesBody } from '../../src/models/anthropic/request.ts'
import { issuerOf, withoutForeignThinking } from '../../src/models/issuer.ts'
import { openAiItself } from '../../src/models/openai-chat/quirks.ts'
import { chatBody } from '../../src/models/openai-chat/request.ts'
import { chatMembersOf } from '../../src/models/responses-members.ts'
import { Invalid } from '../../src/validation.ts'

const parse = (members: JsonObject = {}) => parseResponses({ model: 'a:b', input: 'hi', ...members }, 42)
const turnOf = (members: JsonObject = {}) => parse(members).turn
const messages = (...input: JsonObject[]): Message[] => turnOf({ input }).messages
const parts = (...input: JsonObject[]): Part[] => messages(...input).flatMap((message) => message.parts)
const itemsIn = (...input: JsonObject[]) => messages(...input).flatMap(({ raw }) => raw?.value.items as JsonObject[])

function problemsIn(body: JsonObject): string[] {
  try {
    parseResponses({ model: 'a:b', input: 'hi', ...body }, 42)
  } catch (error) {
    if (error instanceof Invalid) return error.problems.map(({ loc }) => loc.join('.'))
    throw error
  }
  return []
}

const user = (text: string): JsonObject => ({ role: 'user', content: text })
const call = (id: string, more: JsonObject = {}): JsonObject => ({
  type: 'function_call',
  call_id: id,
  name: 'f',
  arguments: '{"x": 1}',
  ...more,
})
const output = (id: string, text: string): JsonObject => ({ type: 'function_call_output', call_id: id, output: text })

describe('a Responses body as a turn', () => {
  test('says little by itself', () => {
    const item = { type: 'message', role: 'user', content: 'hi' }
    expect(turnOf()).toEqual({
      dialect: 'responses',
      model: 'a:b',
      stream: false,
      includeUsage: true,
      messages: [
        {
          role: 'user',
          parts: [{ type: 'text', text: 'hi' }],
          raw: { dialect: 'responses', value: { items: [item] } },
        },
      ],
      tools: [],
      toolChoice: undefined,
      parallelToolCalls: undefined,
      maxOutputTokens: undefined,
      temperature: undefined,
      topP: undefined,
      stop: undefined,
      user: undefined,
      maxToolIterations: 10,
      toolsHeader: undefined,
      raw: { model: 'a:b', input: 'hi' },
      bodyCharacters: 42,
    })
  })

  test('T-26 keeps what it knows and what nobody knows, and takes away what is the gateway’s own', () => {
    const { turn, previous, store, include } = parse({
      stream: true,
      max_output_tokens: 5,
      max_tool_calls: 3,
      parallel_tool_calls: false,
      temperature: 0,
      top_p: 1,
      user: 'u',
      store: false,
      include: ['web_search_call.action.sources'],
      previous_response_id: 'resp_1',
      max_tool_iterations: 25,
      tools_header: 'h',
      session_label: 's',
      guardrails: [],
      brand_new: { x: 1 },
    })
    expect(turn).toMatchObject({
      stream: true,
      maxOutputTokens: 5,
      maxToolCalls: 3,
      parallelToolCalls: false,
      temperature: 0,
      topP: 1,
      user: 'u',
      maxToolIterations: 25,
      toolsHeader: 'h',
    })
    expect([previous, store, [...include]]).toEqual(['resp_1', false, ['web_search_call.action.sources']])
    expect(Object.keys(turn.raw)).toEqual([
      ...['model', 'input', 'stream', 'max_output_tokens', 'max_tool_calls', 'parallel_tool_calls', 'temperature'],
      ...['top_p', 'user', 'store', 'include', 'brand_new'],
    ])
  })

  test('null is as good as nothing', () => {
    const names = [
      'instructions',
      'tools',
      'tool_choice',
      'max_output_tokens',
      'text',
      'reasoning',
      'metadata',
      'include',
    ]
    const nothing = Object.fromEntries([...names, 'previous_response_id', 'conversation'].map((name) => [name, null]))
    expect(turnOf(nothing)).toMatchObject({ tools: [], toolChoice: undefined, maxOutputTokens: undefined })
  })

  test('tools are flat functions or types; a choice is a word, a function or a type', () => {
    const declared = [
      { type: 'function', name: 'f', description: 'd', parameters: { type: 'object' }, strict: true },
      { type: 'otari_web_search' },
      { code_execution: {} },
    ]
    expect(turnOf({ tools: declared }).tools).toEqual([
      { kind: 'function', name: 'f', description: 'd', parameters: { type: 'object' }, raw: declared[0] },
      { kind: 'typed', type: 'otari_web_search', raw: declared[1] },
      { kind: 'typed', type: 'code_execution', raw: declared[2] },
    ])
    const choice = (tool_choice: JsonObject | string) => turnOf({ tool_choice }).toolChoice
    expect(choice('required')).toEqual({ type: 'required' })
    expect(choice({ type: 'function', name: 'f' })).toEqual({ type: 'function', name: 'f' })
    const typed = { type: 'code_interpreter', extra: 1 }
    expect(choice(typed)).toEqual({ type: 'typed', name: 'code_interpreter', raw: typed })
  })

  test.each([
    [{ input: [user('a'), { role: 'robot', content: 'x' }] }, ['body.input.1.role']],
    [{ input: [{ type: 'function_call', call_id: 'c', name: 'f', arguments: {} }] }, ['body.input.0.arguments']],
    [{ input: [{ type: 'function_call_output', output: 'x' }] }, ['body.input.0.call_id']],
    [{ input: [user('a'), 'text'] }, ['body.input.1']],
    [{ input: [{ type: 'item_reference' }] }, ['body.input.0.id']],
    [{ input: null }, ['body.input']],
    [{ input: 7 }, ['body.input']],
    [{ model: '' }, ['body.model']],
    [{ tools: [{ name: 'f' }] }, ['body.tools.0.type']],
    [{ tools: [{ type: 'function' }] }, ['body.tools.0.name']],
    [{ max_output_tokens: 0, temperature: 'x' }, ['body.max_output_tokens', 'body.temperature']],
    [{ truncation: 'sometimes' }, ['body.truncation']],
    [{ tools_header: 'x'.repeat(4_001) }, ['body.tools_header']],
  ] as [JsonObject, string[]][])('names what is wrong with %j', (body, places) => {
    expect(problemsIn(body)).toEqual(places)
  })

  test.each([
    [{ background: true }, "'background'"],
    [{ conversation: 'conv_1' }, "'conversation'"],
    [{ prompt: { id: 'pmpt_1' } }, "'prompt'"],
  ] as [JsonObject, string][])('refuses %j by name, since nothing here serves it', (members, named) => {
    const refusal = expect.objectContaining({ failure: 'invalid_request', message: expect.stringContaining(named) })
    expect(() => parse(members)).toThrowError(refusal)
  })
})

describe('items as messages', () => {
  test('what the model said in one turn is one message, with every item as it came', () => {
    const items = [
      user('hi'),
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'hm' }], encrypted_content: 'gAAA' },
      { type: 'message', id: 'msg_1', role: 'assistant', content: [{ type: 'output_text', text: 'Let me.', x: 1 }] },
      call('c1', { id: 'fc_1' }),
      call('c2'),
      output('c1', 'one'),
      output('c2', 'two'),
      user('and?'),
    ]
    const made = messages(...items)
    expect(made.map(({ role, parts }) => [role, parts.map(({ type }) => type)])).toEqual([
      ['user', ['text']],
      ['assistant', ['thinking', 'text', 'call', 'call']],
      ['tool', ['result']],
      ['tool', ['result']],
      ['user', ['text']],
    ])
    expect(itemsIn(...items)).toEqual(items)
    expect(made[1]?.parts[2]).toEqual({ type: 'call', id: 'c1', name: 'f', arguments: '{"x": 1}' })
  })

  test('FI-11 content parts are texts, images and stored files; a file with its bytes is one that every wire knows', () => {
    const content = [
      { type: 'input_text', text: 'look' },
      { type: 'input_image', image_url: 'data:image/png;base64,AA==', detail: 'low' },
      { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,AA==' },
      { type: 'input_file', file_id: 'file-1' },
      { type: 'input_image', file_id: 'file-2', detail: 'auto' },
      { type: 'input_file', file_url: 'https://x.test/a.pdf' },
    ]
    expect(parts({ role: 'user', content })).toEqual([
      { type: 'text', text: 'look' },
      { type: 'image', url: 'data:image/png;base64,AA==', detail: 'low' },
      {
        type: 'other',
        dialect: 'chat',
        kind: 'file',
        raw: { type: 'file', file: { file_data: 'data:application/pdf;base64,AA==', filename: 'a.pdf' } },
      },
      { type: 'file', id: 'file-1' },
      { type: 'file', id: 'file-2' },
      { type: 'other', dialect: 'responses', kind: 'input_file', raw: content[5] },
    ])
  })

  test('an output may be parts, and a custom tool is a call like any other to another model', () => {
    const shot = { type: 'input_image', image_url: 'https://x.test/a.png' }
    const out = { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_text', text: 'see' }, shot] }
    expect(parts(out)).toEqual([
      { type: 'result', callId: 'c', text: 'see', isError: false },
      { type: 'image', url: 'https://x.test/a.png' },
    ])
    expect(parts({ type: 'custom_tool_call', call_id: 'c', name: 'sql', input: 'select' })).toEqual([
      { type: 'call', id: 'c', name: 'sql', arguments: '{"input":"select"}' },
    ])
  })

  test('BR-041 an item nobody here knows is forwarded whole, and refused by name where it cannot be', () => {
    const item = { type: 'additional_tools', role: 'developer', tools: [] }
    expect(itemsIn(item)).toEqual([item])
    const turn = turnOf({ input: [item, user('hi')] })
    const request = { ...asked, turn, messages: turn.messages }
    for (const body of [() => chatBody(request), () => messagesBody(request, anthropic)]) {
      expect(body).toThrowError(
        expect.objectContaining({ failure: 'invalid_request', message: expect.stringContaining("'additional_tools'") }),
      )
    }
    const made = turnOf({ input: [user('hi'), { type: 'local_shell_call', call_id: 'c', action: {} }] })
    expect(() => chatBody({ ...asked, turn: made, messages: made.messages })).toThrowError(/'local_shell_call'/)
  })
})

const asked = { model: 'm', tools: [], toolChoice: undefined, parallelToolCalls: undefined, stream: false }
const anthropic = { defaultMaxTokens: 100, replayUnsigned: false }

describe('echoes', () => {
  const search = { type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'q' } }
  const code = { type: 'code_interpreter_call', status: 'completed', code: 'print(1+1)' }
  const logs = [
    { type: 'logs', logs: '2\n' },
    { type: 'image', url: 'https://gw.example.com/api/v1/files/file-7c2e/content' },
  ]
  const hex = 'aa11bb22cc33dd44ee55ff6677889900'
  const said = {
    id: 'msg_8',
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: 'Done.', annotations: [] }],
  }

  test('R-57 R-59 our search is dropped, our code becomes words, a provider’s items stay as they came', () => {
    const theirs = { ...code, id: 'ci_68ab', container_id: 'cntr_68', code: '1', outputs: null }
    const sent = itemsIn(
      { ...search, id: `otari_ws_${hex}` },
      { ...code, id: `otari_ci_${hex}`, container_id: `otari_cntr_${hex}`, outputs: logs },
      said,
      theirs,
      { ...search, id: 'ws_67' },
    )
    expect(sent).toEqual([
      {
        type: 'message',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'I ran this code:\nprint(1+1)\nOutput:\n2\n' }],
      },
      said,
      theirs,
      { ...search, id: 'ws_67' },
    ])
  })

  test('R-57 other wires read code and words, and nothing of a search; a message left empty is dropped', () => {
    const ours = { ...search, id: `otari_ws_${hex}` }
    const turn = turnOf({ input: [user('a'), ours, { ...code, id: 'ci_1', outputs: logs }, said, user('b')] })
    expect(chatBody({ ...asked, turn, messages: turn.messages }).messages).toEqual([
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 'I ran this code:\nprint(1+1)\nOutput:\n2\nDone.' },
      { role: 'user', content: 'b' },
    ])
    expect(messages(user('a'), ours, user('b'))).toHaveLength(2)
  })

  test('BR-040 ids and reasoning that only this gateway knows go to no provider of the dialect', () => {
    const ours = { type: 'reasoning', id: `rs_otari_${hex}`, summary: [], encrypted_content: sealed({ issuer: 'x' }) }
    const theirs = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAA' }
    expect(itemsIn(ours, theirs, call('c', { id: `fc_otari_${hex}` }))).toEqual([theirs, call('c')])
    expect(parts(theirs)).toEqual([])
  })

  test('BR-003 BR-017 a seal gives its signature back to the provider that signed, and to no other', () => {
    const issuer = issuerOf('claude')
    const reasoning = (encrypted_content: string, text?: string) => ({
      type: 'reasoning',
      summary: text === undefined ? [] : [{ type: 'summary_text', text }],
      encrypted_content,
    })
    const history = messages(
      user('hi'),
      reasoning(sealed({ issuer, signature: 's1' }), 'A'),
      reasoning(sealed({ issuer, redacted: 'opaque' })),
      call('c'),
    )
    expect(history[1]?.parts.slice(0, 2)).toEqual([
      { type: 'thinking', text: 'A', signature: 's1', issuer },
      { type: 'redacted_thinking', data: 'opaque', issuer },
    ])
    const kinds = (provider: string) => withoutForeignThinking(history, provider)[1]?.parts.map(({ type }) => type)
    expect(kinds('claude')).toEqual(['thinking', 'redacted_thinking', 'call'])
    expect(kinds('other')).toEqual(['call'])
    expect(parts(reasoning('otari_seal_%%%', 'A'))).toEqual([{ type: 'thinking', text: 'A' }])
  })
})

describe('T-29 hints', () => {
  const hinted = (members: JsonObject) => withHints(turnOf(members).messages, 'HINT', 'prepend')

  test('go before the instructions, in the wire form too', () => {
    const [first, ...rest] = hinted({ instructions: 'Be brief.' })
    expect(first?.raw?.value).toEqual({ role: 'system', content: 'HINT\n\nBe brief.' })
    expect(rest).toHaveLength(1)
    const turn = turnOf({ instructions: 'Be brief.' })
    expect(chatBody({ ...asked, turn, messages: hinted({ instructions: 'Be brief.' }) }).messages).toEqual([
      { role: 'system', content: 'HINT\n\nBe brief.' },
      { role: 'user', content: 'hi' },
    ])
  })

  test('become the instructions where there are none, whatever a developer says in the input', () => {
    const input = [{ role: 'developer', content: 'Be kind.' }, user('hi')]
    const [first, second] = hinted({ input })
    expect(first).toEqual(systemMessage('HINT'))
    expect(second?.raw?.value).toEqual({ items: [input[0]] })
    expect(second?.role).toBe('system')
  })
})

describe('members on other wires', () => {
  const body = (members: JsonObject) => {
    const turn = turnOf(members)
    return { ...asked, turn, messages: turn.messages, tools: turn.tools }
  }
  const schema = { type: 'object', properties: { capital: { type: 'string' } }, required: ['capital'] }
  const format = { type: 'json_schema', name: 'answer', schema, strict: true }

  test('BR-051 structured output, effort and limits have their equivalents', () => {
    const members = {
      text: { format, verbosity: 'low' },
      reasoning: { effort: 'high', summary: 'auto' },
      max_output_tokens: 9,
      metadata: { a: 'b' },
      store: true,
      truncation: 'auto',
      include: ['reasoning.encrypted_content'],
      prompt_cache_key: 'k',
      tools: [{ type: 'function', name: 'f', parameters: { type: 'object' }, strict: true }],
    }
    expect(chatBody(body(members))).toEqual({
      model: 'm',
      messages: [{ role: 'user', content: 'hi' }],
      response_format: { type: 'json_schema', json_schema: { name: 'answer', schema, strict: true } },
      verbosity: 'low',
      reasoning_effort: 'high',
      max_tokens: 9,
      prompt_cache_key: 'k',
      tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' }, strict: true } }],
    })
    expect(chatBody(body({ max_output_tokens: 9 }), openAiItself)).toMatchObject({
      max_completion_tokens: 9,
    })
    expect(messagesBody(body({ ...members, text: { format } }), anthropic)).toMatchObject({
      max_tokens: 9,
      output_config: { effort: 'high', format: { type: 'json_schema', schema: { type: 'object' } } },
      tools: [{ name: 'f', strict: true }],
    })
  })

  test('what cannot be carried is named as the client calls it', () => {
    const refusal = (name: string) =>
      expect.objectContaining({ failure: 'invalid_request', message: expect.stringContaining(`'${name}'`) })
    const toClaude = (members: JsonObject) => () => messagesBody(body(members), anthropic)
    expect(toClaude({ text: { format: { type: 'json_object' } } })).toThrowError(refusal('text.format'))
    expect(toClaude({ text: { verbosity: 'low' } })).toThrowError(refusal('text.verbosity'))
    expect(toClaude({ reasoning: { effort: 'silly' } })).toThrowError(refusal('reasoning.effort'))
    expect(toClaude({ brand_new: 1 })).toThrowError(refusal('brand_new'))
    expect(() => chatMembersOf({ top_logprobs: 2 })).toThrowError(refusal('top_logprobs'))
    expect(() => chatMembersOf({ include: ['message.output_text.logprobs'] })).toThrowError(
      refusal('message.output_text.logprobs'),
    )
    expect(() => chatMembersOf({ text: { format: { type: 'grammar' } } })).toThrowError(refusal('text.format'))
    expect(chatMembersOf({ top_logprobs: 0, text: {}, reasoning: {}, brand_new: 1 })).toEqual({ brand_new: 1 })
  })

  test('BR-050 a call without a result gets one, and a result without a call is left out', () => {
    const history = body({
      input: [user('a'), call('c1'), call('c2'), output('c2', 'two'), output('zz', '?'), user('b')],
    })
    expect(chatBody(history).messages).toMatchObject([
      { role: 'user' },
      { role: 'assistant', tool_calls: [{ id: 'c1' }, { id: 'c2' }] },
      { role: 'tool', tool_call_id: 'c1', content: '[tool error] no result available' },
      { role: 'tool', tool_call_id: 'c2', content: 'two' },
      { role: 'user', content: 'b' },
    ])
  })
})

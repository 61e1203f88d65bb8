import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/conversation/turn.ts'
import { parseChat } from '../../src/dialects/chat/parse.ts'
import { Invalid } from '../../src/validation.ts'

const hi = [{ role: 'user', content: 'hi' }]
const parse = (body: unknown) => parseChat(body, 42)
const turn = (members: JsonObject) => parse({ model: 'a:b', messages: hi, ...members })

function problemsIn(body: unknown) {
  try {
    parse(body)
  } catch (error) {
    if (error instanceof Invalid) return error.problems.map(({ loc }) => loc.join('.'))
    throw error
  }
  return []
}

describe('a Chat body as a turn', () => {
  test('says little by itself', () => {
    expect(turn({})).toEqual({
      dialect: 'chat',
      model: 'a:b',
      stream: false,
      includeUsage: false,
      messages: [{ role: 'user', parts: [{ type: 'text', text: 'hi' }], raw: { dialect: 'chat', value: hi[0] } }],
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
      raw: { model: 'a:b', messages: hi },
      bodyCharacters: 42,
    })
  })

  test('keeps what it knows, and null is as good as nothing', () => {
    expect(
      turn({
        stream: true,
        stream_options: { include_usage: true },
        parallel_tool_calls: false,
        max_tokens: 5,
        max_completion_tokens: 6,
        temperature: 0,
        top_p: 1,
        stop: 'x',
        user: 'u',
        max_tool_iterations: 25,
        tools_header: 'h',
      }),
    ).toMatchObject({
      stream: true,
      includeUsage: true,
      parallelToolCalls: false,
      maxOutputTokens: 6,
      temperature: 0,
      topP: 1,
      stop: ['x'],
      user: 'u',
      maxToolIterations: 25,
      toolsHeader: 'h',
    })
    const names =
      'stream stream_options tools tool_choice parallel_tool_calls max_tokens max_completion_tokens temperature top_p n stop user max_tool_iterations tools_header mcp_servers mcp_server_ids'
    const nothing = Object.fromEntries(names.split(' ').map((name) => [name, null]))
    const { raw: _, ...said } = turn(nothing)
    const { raw: __, ...silent } = turn({})
    expect(said).toEqual(silent)
  })

  test('T-26 the gateway’s own members are taken out, everything else keeps its place and form', () => {
    const body = {
      zeta: [1],
      model: 'a:b',
      max_tool_iterations: 2,
      messages: hi,
      container: 'auto',
      guardrails: { a: 1 },
      session_label: 's',
      tools_header: 'h',
      mcp_servers: [],
      mcp_server_ids: [],
      alpha: { b: null },
    }
    expect(JSON.stringify(parse(body).raw)).toBe(
      JSON.stringify({ zeta: [1], model: 'a:b', messages: hi, container: 'auto', alpha: { b: null } }),
    )
  })

  test('M-01 M-03 MCP servers are read, an id that is repeated once; a request without any has none', () => {
    const x = { name: 'x', url: 'https://x.test/' }
    expect(
      turn({ mcp_servers: [x, { ...x, name: 'y', allowed_tools: [] }], mcp_server_ids: ['i', 'j', 'i'] }).mcpServers,
    ).toEqual({
      inline: [
        { ...x, token: undefined, hint: undefined, allowedTools: undefined, deferred: false },
        { ...x, name: 'y', token: undefined, hint: undefined, allowedTools: [], deferred: false },
      ],
      ids: ['i', 'j'],
    })
    for (const none of [{}, { mcp_servers: [], mcp_server_ids: [] }, { mcp_servers: null, mcp_server_ids: null }])
      expect(turn(none)).not.toHaveProperty('mcpServers')
  })

  test('every form of a message becomes parts', () => {
    const image = { type: 'image_url', image_url: { url: 'https://e.example/a.png' } }
    const audio = { type: 'input_audio', input_audio: { data: '', format: 'wav' } }
    const called = { id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }
    const custom = { id: 'k', type: 'custom', custom: { name: 'g', input: 'x' } }
    const { messages } = parse({
      model: 'a:b',
      messages: [
        { role: 'developer', content: [{ type: 'text', text: 'd' }] },
        { role: 'user', content: [{ type: 'text', text: 'u' }, image, audio] },
        {
          role: 'assistant',
          content: 'a',
          reasoning_content: 'r',
          tool_calls: [called, custom],
          otari_tool_calls: [{ id: '1' }],
        },
        {
          role: 'tool',
          tool_call_id: 'c',
          content: [
            { type: 'text', text: 'x' },
            { type: 'text', text: 'y' },
          ],
        },
        { role: 'assistant', content: [{ type: 'refusal', refusal: 'no' }], refusal: null },
        { role: 'assistant', content: null, refusal: 'never', audio: { id: 'au' } },
        { role: 'assistant', content: null, function_call: { name: 'f', arguments: '' } },
        { role: 'function', name: 'f', content: 'z' },
      ],
    })
    const own = (kind: string, raw: unknown) => ({ type: 'other', dialect: 'chat', kind, raw })
    expect(messages.map(({ role, parts }) => [role, parts])).toEqual([
      ['system', [{ type: 'text', text: 'd' }]],
      [
        'user',
        [{ type: 'text', text: 'u' }, { type: 'image', url: 'https://e.example/a.png' }, own('input_audio', audio)],
      ],
      [
        'assistant',
        [
          { type: 'thinking', text: 'r' },
          { type: 'text', text: 'a' },
          { type: 'call', id: 'c', name: 'f', arguments: '{}' },
          own('custom', custom),
        ],
      ],
      ['tool', [{ type: 'result', callId: 'c', text: 'xy', isError: false }]],
      ['assistant', [{ type: 'text', text: 'no' }]],
      ['assistant', [{ type: 'text', text: 'never' }, own('audio', { id: 'au' })]],
      ['assistant', [own('function_call', { name: 'f', arguments: '' })]],
      ['tool', [own('function', { role: 'function', name: 'f', content: 'z' })]],
    ])
    // What only a client of this gateway sends back does not go upstream.
    expect(messages[2]?.raw?.value).toEqual({
      role: 'assistant',
      content: 'a',
      reasoning_content: 'r',
      tool_calls: [called, custom],
    })
  })

  test('tools are functions or have a type, in order, as they came', () => {
    const f = {
      type: 'function',
      function: { name: 'f', description: 'd', parameters: { type: 'object' }, strict: true },
    }
    const search = { type: 'otari_web_search', max_uses: 2 }
    const { tools } = turn({ tools: [search, f, { code_execution: {} }, { type: 'brand_new', x: 1 }] })
    expect(tools).toEqual([
      { kind: 'typed', type: 'otari_web_search', raw: search },
      { kind: 'function', name: 'f', description: 'd', parameters: { type: 'object' }, raw: f },
      { kind: 'typed', type: 'code_execution', raw: { code_execution: {} } },
      { kind: 'typed', type: 'brand_new', raw: { type: 'brand_new', x: 1 } },
    ])
  })

  test.each<[unknown, unknown]>([
    ['auto', { type: 'auto' }],
    ['none', { type: 'none' }],
    ['required', { type: 'required' }],
    [
      { type: 'function', function: { name: 'f' } },
      { type: 'function', name: 'f' },
    ],
    [{ type: 'otari_web_search' }, { type: 'typed', name: 'otari_web_search', raw: { type: 'otari_web_search' } }],
    [
      { type: 'custom', custom: { name: 'g' } },
      { type: 'typed', name: 'custom', raw: { type: 'custom', custom: { name: 'g' } } },
    ],
  ])('the choice %j is understood', (choice, expected) => {
    expect(turn({ tool_choice: choice as JsonObject }).toolChoice).toEqual(expected)
  })
})

describe('what has the wrong form is a 422 that says where', () => {
  test.each<[string, unknown, string[]]>([
    ['no body', undefined, ['body']],
    ['a list', [], ['body']],
    ['nothing in it', {}, ['body.model', 'body.messages']],
    ['an empty model', { model: '', messages: hi }, ['body.model']],
    ['no messages', { model: 'm', messages: [] }, ['body.messages']],
    ['an unknown role', { model: 'm', messages: [{ role: 'robot', content: 'x' }] }, ['body.messages.0.role']],
    ['a message without content', { model: 'm', messages: [{ role: 'user' }] }, ['body.messages.0.content']],
    ['content of a wrong type', { model: 'm', messages: [{ role: 'user', content: 7 }] }, ['body.messages.0.content']],
    [
      'a text part without text',
      { model: 'm', messages: [{ role: 'user', content: [{ type: 'text' }] }] },
      ['body.messages.0.content.0'],
    ],
    [
      'a result without a call',
      { model: 'm', messages: [{ role: 'tool', content: 'x' }] },
      ['body.messages.0.tool_call_id'],
    ],
    [
      'a call without a function',
      { model: 'm', messages: [{ role: 'assistant', tool_calls: [{ id: 'a', type: 'function' }] }] },
      ['body.messages.0.tool_calls.0'],
    ],
    ['a wrong stream', { model: 'm', messages: hi, stream: 'yes' }, ['body.stream']],
    [
      'a wrong number',
      { model: 'm', messages: hi, max_tokens: 1.5, temperature: '1' },
      ['body.max_tokens', 'body.temperature'],
    ],
    ['a tool without a type', { model: 'm', messages: hi, tools: [{ name: 'f' }] }, ['body.tools.0.type']],
    [
      'a function without its function',
      { model: 'm', messages: hi, tools: [{ type: 'function' }] },
      ['body.tools.0.function'],
    ],
    [
      'a function without a name',
      { model: 'm', messages: hi, tools: [{ type: 'function', function: {} }] },
      ['body.tools.0.function.name'],
    ],
    ['an unknown choice', { model: 'm', messages: hi, tool_choice: 'any' }, ['body.tool_choice']],
    ['a header too long', { model: 'm', messages: hi, tools_header: 'x'.repeat(4_001) }, ['body.tools_header']],
  ])('%s', (_, body, places) => {
    expect(problemsIn(body)).toEqual(places)
  })

  test.each([
    [0, false],
    [1, true],
    [3, true],
    [25, true],
    [26, false],
    [-1, false],
    [1.5, false],
    ['3', false],
    [true, false],
  ])('L-05 max_tool_iterations %j', (n, fine) => {
    expect(problemsIn({ model: 'm', messages: hi, max_tool_iterations: n })).toEqual(
      fine ? [] : ['body.max_tool_iterations'],
    )
  })

  test.each(['messages', 'content', 'tool_calls', 'tools', 'stop'])(
    'a list of %s is not read on past the mistakes that are told',
    (where) => {
      let read = 0
      const wrong = Array.from({ length: 50_000 }, () => ({
        get type() {
          read += 1
          return 7
        },
        get role() {
          read += 1
          return 'robot'
        },
      }))
      const body = {
        messages: { model: 'm', messages: wrong },
        content: { model: 'm', messages: [{ role: 'user', content: wrong }] },
        tool_calls: { model: 'm', messages: [{ role: 'assistant', tool_calls: wrong }] },
        tools: { model: 'm', messages: hi, tools: wrong },
        stop: { model: 'm', messages: hi, stop: wrong },
      }[where]
      const problems = problemsIn(body)
      expect(problems.length).toBeGreaterThan(0)
      expect(problems.length).toBeLessThanOrEqual(20)
      expect(read).toBeLessThan(2_000)
    },
  )

  test('a list longer than is checked at once is read whole, and in order', () => {
    const messages = Array.from({ length: 1_000 }, (_, at) => ({ role: 'user', content: `${at}` }))
    expect(turn({ messages }).messages.map(({ parts }) => parts[0])).toEqual(
      messages.map(({ content: text }) => ({ type: 'text', text })),
    )
    expect(problemsIn({ model: 'm', messages: [...messages.slice(0, 777), { role: 'user', content: 7 }] })).toEqual([
      'body.messages.777.content',
    ])
  })

  test('nothing the client sent is quoted back', () => {
    try {
      parse({ model: 'm', messages: [{ role: 'secret-role', content: 'secret-content' }], stream: 'secret-flag' })
      expect.unreachable()
    } catch (error) {
      expect(JSON.stringify((error as Invalid).problems)).not.toContain('secret')
    }
  })
})

import { describe, expect, test } from 'vitest'
import type { Part } from '../../src/conversation/turn.ts'
import { withoutEchoes } from '../../src/dialects/messages/echo.ts'
import { filledMessage } from '../../src/dialects/messages/files.ts'
import { parseCountTokens, parseMessages } from '../../src/dialects/messages/parse.ts'
import { Invalid } from '../../src/validation.ts'

type Body = Record<string, unknown>
const minimal = { model: 'up:m', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] }
const parse = (body: Body = {}, headers: Record<string, string> = {}) =>
  parseMessages({ ...minimal, ...body }, 100, headers)
const partsOf = (role: string, content: unknown): Part[] => parse({ messages: [{ role, content }] }).messages[0]!.parts

function problemsOf(body: Body): string[] {
  try {
    parse(body)
  } catch (error) {
    if (error instanceof Invalid) return error.problems.map(({ loc, msg }) => `${loc.join('.')}: ${msg}`)
    throw error
  }
  return []
}

describe('a Messages body', () => {
  test('is read into a turn, and keeps every member that is not the gateway’s own, in order', () => {
    const body = {
      temperature: 0.5,
      ...minimal,
      top_p: 0.9,
      top_k: 5,
      stop_sequences: ['END'],
      metadata: { user_id: 'ann' },
      brand_new: { a: 1 },
      max_tool_iterations: 3,
      tools_header: 'Tools:',
      session_label: 'x',
      guardrails: [],
      stream: true,
    }
    const turn = parseMessages(body, 321, {})
    expect(turn).toMatchObject({
      dialect: 'messages',
      model: 'up:m',
      stream: true,
      includeUsage: true,
      temperature: 0.5,
      topP: 0.9,
      stop: ['END'],
      user: 'ann',
      maxOutputTokens: 10,
      maxToolIterations: 3,
      toolsHeader: 'Tools:',
      bodyCharacters: 321,
    })
    expect(Object.keys(turn.raw)).toEqual([
      'temperature',
      'model',
      'max_tokens',
      'messages',
      'top_p',
      'top_k',
      'stop_sequences',
      'metadata',
      'brand_new',
      'stream',
    ])
  })

  test('has its system as a first message, as it was written', () => {
    const blocks = [{ type: 'text', text: 'a', cache_control: { type: 'ephemeral' } }]
    for (const [system, parts] of [
      ['Be brief.', [{ type: 'text', text: 'Be brief.' }]],
      ['', []],
      [blocks, [{ type: 'text', text: 'a' }]],
    ]) {
      expect(parse({ system }).messages).toEqual([
        { role: 'system', parts, raw: { dialect: 'messages', value: { role: 'system', content: system } } },
        expect.objectContaining({ role: 'user' }),
      ])
    }
    expect(parse().messages).toHaveLength(1)
  })

  test('BR-009 tools without a type are the client’s, like those of type custom; any other type is kept as it came', () => {
    const schema = { type: 'object', properties: { cmd: { type: 'string' } } }
    const tools = [
      { name: 'Bash', description: 'run', input_schema: schema },
      { type: 'custom', name: 'Read', input_schema: { type: 'object' } },
      { type: null, name: 'Edit', input_schema: {} },
      { type: 'web_search_20250305', name: 'web_search', max_uses: 2 },
      { type: 'otari_web_search' },
      { code_execution: {} },
    ]
    expect(parse({ tools }).tools).toEqual([
      { kind: 'function', name: 'Bash', description: 'run', parameters: schema, raw: tools[0] },
      { kind: 'function', name: 'Read', description: undefined, parameters: { type: 'object' }, raw: tools[1] },
      { kind: 'function', name: 'Edit', description: undefined, parameters: {}, raw: tools[2] },
      { kind: 'typed', type: 'web_search_20250305', raw: tools[3] },
      { kind: 'typed', type: 'otari_web_search', raw: tools[4] },
      { kind: 'typed', type: 'code_execution', raw: tools[5] },
    ])
  })

  test.each([
    [{ type: 'auto' }, { type: 'auto' }, undefined],
    [{ type: 'any', disable_parallel_tool_use: true }, { type: 'required' }, false],
    [{ type: 'none', disable_parallel_tool_use: false }, { type: 'none' }, true],
    [{ type: 'tool', name: 'f', disable_parallel_tool_use: true }, { type: 'function', name: 'f' }, false],
    [
      { type: 'otari_web_search' },
      { type: 'typed', name: 'otari_web_search', raw: { type: 'otari_web_search' } },
      undefined,
    ],
    [null, undefined, undefined],
  ])('BR-028 T-27 the choice %j is read as %j', (tool_choice, toolChoice, parallelToolCalls) => {
    expect(parse({ tool_choice })).toMatchObject({ toolChoice, parallelToolCalls })
  })

  test.each<[Body, string]>([
    [{ model: undefined }, 'body.model'],
    [{ max_tokens: undefined }, 'body.max_tokens'],
    [{ max_tokens: 0 }, 'body.max_tokens'],
    [{ messages: [] }, 'body.messages'],
    [{ messages: [{ role: 'tool', content: 'x' }] }, 'body.messages.0.role'],
    [{ messages: [{ role: 'user', content: 5 }] }, 'body.messages.0.content'],
    [
      { messages: [minimal.messages[0], { role: 'user', content: [{ type: 'text' }] }] },
      'body.messages.1.content.0.text',
    ],
    [{ messages: [{ role: 'user', content: [{ text: 'x' }] }] }, 'body.messages.0.content.0.type'],
    [
      { messages: [{ role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f' }] }] },
      'body.messages.0.content.0.input',
    ],
    [
      { messages: [{ role: 'user', content: [{ type: 'tool_result', content: 'x' }] }] },
      'body.messages.0.content.0.tool_use_id',
    ],
    [{ messages: [{ role: 'user', content: [{ type: 'image' }] }] }, 'body.messages.0.content.0.source'],
    [{ system: 5 }, 'body.system'],
    [{ tools: [{ input_schema: {} }] }, 'body.tools.0.name'],
    [{ tools: [{ name: 'f' }] }, 'body.tools.0.input_schema'],
    [{ tool_choice: 'auto' }, 'body.tool_choice'],
    [{ tool_choice: { type: 'tool' } }, 'body.tool_choice'],
    [{ stop_sequences: 'END' }, 'body.stop_sequences'],
    [{ max_tool_iterations: 26 }, 'body.max_tool_iterations'],
    [{ tools_header: 'x'.repeat(4_001) }, 'body.tools_header'],
    [{ metadata: { user_id: 5 } }, 'body.metadata.user_id'],
  ])('R-60 %j is refused by the place that is wrong', (body, place) => {
    const problems = problemsOf(body)
    expect(problems.length).toBeGreaterThan(0)
    expect(problems.every((problem) => problem.startsWith(place))).toBe(true)
  })

  test('headers of the vendor’s API are kept, and refused where they are no list of names', () => {
    const headers = { 'anthropic-beta': 'a-2025-01-01, b', 'anthropic-version': '2023-06-01', 'x-api-key': 'gw-1' }
    expect(parse({}, headers).headers).toEqual({
      'anthropic-beta': 'a-2025-01-01, b',
      'anthropic-version': '2023-06-01',
    })
    expect(() => parse({}, { 'anthropic-beta': 'a\u00e9' })).toThrow(/anthropic-beta/)
    expect(parse().headers).toEqual({})
  })

  test('a body whose tokens are counted needs no max_tokens', () => {
    const { max_tokens: _, ...body } = minimal
    expect(parseCountTokens(body, 10, {})).toMatchObject({ maxOutputTokens: undefined, raw: body })
    expect(() => parseCountTokens({ ...body, messages: [] }, 10, {})).toThrow(Invalid)
  })
})

describe('the parts of a message', () => {
  test('what a model said keeps its order, thinking its signature, calls their arguments', () => {
    expect(
      partsOf('assistant', [
        { type: 'thinking', thinking: 'a', signature: 's1' },
        { type: 'thinking', thinking: 'b', signature: '' },
        { type: 'redacted_thinking', data: 'd' },
        { type: 'text', text: 'x' },
        { type: 'tool_use', id: 't1', name: 'f', input: { q: 'ö"' } },
        { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} },
      ]),
    ).toEqual([
      { type: 'thinking', text: 'a', signature: 's1' },
      { type: 'thinking', text: 'b' },
      { type: 'redacted_thinking', data: 'd' },
      { type: 'text', text: 'x' },
      { type: 'call', id: 't1', name: 'f', arguments: '{"q":"ö\\""}' },
      expect.objectContaining({ type: 'other', dialect: 'messages', kind: 'server_tool_use' }),
    ])
  })

  test('BR-008 a result has its text and whether it failed; what else it holds follows it', () => {
    const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } }
    const content = [{ type: 'text', text: 'a' }, image, { type: 'text', text: 'b' }]
    const message = parse({
      messages: [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', is_error: true, content }] }],
    }).messages[0]
    expect(message).toMatchObject({
      role: 'tool',
      parts: [
        { type: 'result', callId: 't1', text: 'ab', isError: true },
        { type: 'image', url: 'data:image/png;base64,AA==' },
      ],
    })
    expect(
      partsOf('user', [
        { type: 'tool_result', tool_use_id: 't1' },
        { type: 'text', text: 'go on' },
      ]),
    ).toEqual([
      { type: 'result', callId: 't1', text: '', isError: false },
      { type: 'text', text: 'go on' },
    ])
  })

  test('documents of text are text, those by their bytes are files, and files of the store are named', () => {
    expect(
      partsOf('user', [
        { type: 'document', title: 'T', source: { type: 'text', media_type: 'text/plain', data: 'words' } },
        { type: 'document', source: { type: 'content', content: [{ type: 'text', text: 'inner' }] } },
        { type: 'document', title: 'a.pdf', source: { type: 'base64', media_type: 'application/pdf', data: 'AA==' } },
        { type: 'document', source: { type: 'file', file_id: 'file-1' } },
        { type: 'image', source: { type: 'file', file_id: 'file-2' } },
        { type: 'container_upload', file_id: 'file-3' },
        { type: 'image', source: { type: 'url', url: 'https://x.test/a.png' } },
        { type: 'document', source: { type: 'url', url: 'https://x.test/a.pdf' } },
        { type: 'search_result', source: 'https://x.test', title: 'S', content: [{ type: 'text', text: 'found' }] },
      ]),
    ).toEqual([
      { type: 'text', text: 'T\n\n' },
      { type: 'text', text: 'words' },
      { type: 'text', text: 'inner' },
      {
        type: 'other',
        dialect: 'chat',
        kind: 'file',
        raw: { type: 'file', file: { filename: 'a.pdf', file_data: 'data:application/pdf;base64,AA==' } },
      },
      { type: 'file', id: 'file-1' },
      { type: 'file', id: 'file-2' },
      { type: 'file', id: 'file-3', forCode: true },
      { type: 'image', url: 'https://x.test/a.png' },
      expect.objectContaining({ type: 'other', kind: 'document' }),
      { type: 'text', text: 'S\nhttps://x.test\nfound' },
    ])
  })
})

test('FI-15 contents stand in the place of the blocks that name their files, in results too, and caching with them', () => {
  const named = { type: 'document', source: { type: 'file', file_id: 'file-1' }, cache_control: { type: 'ephemeral' } }
  const upload = { type: 'container_upload', file_id: 'file-2' }
  const words = { type: 'text', text: 'x', cache_control: { type: 'ephemeral' } }
  const image = { type: 'image', url: 'data:image/png;base64,AA==' } as const
  const contentOf = ({ id, forCode = false }: { id: string; forCode?: boolean }): Part[] => [
    image,
    { type: 'text', text: `${id} ${forCode}` },
  ]
  const shown = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } }
  const result = { type: 'tool_result', tool_use_id: 't1', is_error: true }
  const filled = filledMessage({ role: 'user', content: [{ ...result, content: [upload] }, words, named] }, contentOf)
  expect(filled).toEqual({
    role: 'user',
    content: [
      { ...result, content: [shown, { type: 'text', text: 'file-2 true' }] },
      words,
      shown,
      { type: 'text', text: 'file-1 false', cache_control: { type: 'ephemeral' } },
    ],
  })
  expect(filledMessage({ role: 'user', content: 'x' }, contentOf)).toEqual({ role: 'user', content: 'x' })
})

describe('echoes', () => {
  const pair = (name: string, input: object, content: unknown) => [
    { type: 'server_tool_use', id: `otari_srvtoolu_${name}`, name, input },
    { type: `${name}_tool_result`, tool_use_id: `otari_srvtoolu_${name}`, content },
  ]
  const echo = (...content: unknown[]) => withoutEchoes([{ role: 'assistant', content } as never])
  const code = { code: "print('ok')" }
  const result = (more: object) => ({
    type: 'code_execution_result',
    stdout: '',
    stderr: '',
    return_code: 0,
    content: [],
    ...more,
  })
  const provider = [
    { type: 'server_tool_use', id: 'srvtoolu_1', name: 'code_execution', input: code },
    { type: 'code_execution_tool_result', tool_use_id: 'srvtoolu_1', content: result({}) },
  ]
  const said = { type: 'text', text: 'Here.' }

  test('R-56 a code pair becomes the words that tell of it, a search or fetch pair goes, a provider’s own stays', () => {
    expect(
      echo(
        ...pair('web_search', { query: 'q' }, []),
        ...pair('code_execution', code, result({ stdout: 'ok\n' })),
        ...provider,
        ...pair('web_fetch', { url: 'u' }, { type: 'web_fetch_tool_result_error', error_code: 'unavailable' }),
        said,
      ),
    ).toEqual([
      {
        role: 'assistant',
        content: [
          { type: 'text', text: "I ran this code:\n```python\nprint('ok')\n```\nstdout:\nok\n" },
          ...provider,
          said,
        ],
      },
    ])
  })

  test.each([
    [result({ stderr: 'boom\n', return_code: 1 }), 'stderr:\nboom\n\nexit code: 1'],
    [result({ stdout: 'a\n', stderr: 'b\n' }), 'stdout:\na\n\nstderr:\nb\n'],
    [{ type: 'code_execution_tool_result_error', error_code: 'unavailable' }, 'It failed: unavailable\n'],
    [undefined, ''],
  ])('R-56 what came out of the code is told: %j', (content, text) => {
    expect(echo(...pair('code_execution', code, content))).toEqual([
      {
        role: 'assistant',
        content: [{ type: 'text', text: `I ran this code:\n\`\`\`python\nprint('ok')\n\`\`\`\n${text}` }],
      },
    ])
  })

  test('R-56 R-58 R-59 a message that holds nothing else goes with them, MCP activity included', () => {
    const mcp = [
      { type: 'mcp_tool_use', id: 'otari_mcptoolu_1', name: 'f', server_name: 's', input: {} },
      { type: 'mcp_tool_result', tool_use_id: 'otari_mcptoolu_1', content: [] },
    ]
    expect(echo(...pair('web_search', {}, []), ...mcp)).toEqual([])
    expect(echo(...mcp, said)).toEqual([{ role: 'assistant', content: [said] }])
    expect(() => parse({ messages: [{ role: 'assistant', content: mcp }] })).toThrow(/messages/)
  })

  test('a message without any stays the very same object', () => {
    const messages = [
      { role: 'user', content: 'otari_srvtoolu_1111' },
      { role: 'assistant', content: [said, ...provider] },
      { role: 'assistant', content: [] },
    ] as never[]
    expect(withoutEchoes(messages).every((message, at) => message === messages[at])).toBe(true)
  })

  test('a text without text, as some models stream it, is not sent back', () => {
    expect(echo({ type: 'text', text: '' }, said)).toEqual([{ role: 'assistant', content: [said] }])
  })
})

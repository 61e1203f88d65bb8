import { describe, expect, test } from 'vitest'
import { answerCollector } from '../../src/conversation/collect.ts'
import type { AnswerEvent, ToolActivity, ToolOutcome } from '../../src/conversation/events.ts'
import type { JsonObject, ToolEntry } from '../../src/conversation/turn.ts'
import { messagesFinish } from '../../src/dialects/messages/finish.ts'
import { renderMessages } from '../../src/dialects/messages/render.ts'
import { messagesStream } from '../../src/dialects/messages/stream.ts'
import { toolBlocks } from '../../src/dialects/messages/tool-blocks.ts'
import { eventsIn, mistakesIn } from '../conversation/messages-events.ts'

const model = 'mistral:mistral-large-latest'
const declared = (...types: string[]): ToolEntry[] => types.map((type) => ({ kind: 'typed', type, raw: { type } }))
const start = (id: string): AnswerEvent => ({
  type: 'start',
  id,
  created: 1,
  model: 'up',
  raw: {
    dialect: 'messages',
    value: {
      id,
      type: 'message',
      role: 'assistant',
      model: 'up',
      content: [],
      usage: { input_tokens: 210, output_tokens: 1 },
    },
  },
})
const text = (index: number, ...pieces: string[]): AnswerEvent[] => [
  { type: 'open', index, block: { kind: 'text' } },
  ...pieces.map((piece): AnswerEvent => ({ type: 'delta', index, text: piece })),
  { type: 'close', index },
]
const call = (index: number, id: string, name: string, ...pieces: string[]): AnswerEvent[] => [
  { type: 'open', index, block: { kind: 'call', id, name } },
  ...pieces.map((piece): AnswerEvent => ({ type: 'delta', index, text: piece })),
  { type: 'close', index },
]
const counted = (usage: JsonObject): AnswerEvent => ({
  type: 'usage',
  tokens: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0, reasoning: 0 },
  raw: { dialect: 'messages', value: usage },
})
const finish = (reason: 'stop' | 'tool_calls' = 'stop'): AnswerEvent => ({ type: 'finish', reason, raw: reason })
const ran = (tool: string, input: JsonObject, shown: ToolOutcome['shown'], isError = false): ToolActivity[] => {
  const of = { id: 'toolu_up1', tool, input }
  return [
    { type: 'tool', phase: 'started', call: of },
    { type: 'tool', phase: 'finished', call: of, outcome: { text: 'secret result', isError, shown } },
  ]
}
const found: ToolOutcome['shown'] = {
  kind: 'web_search',
  query: 'latest stable python release',
  sources: [
    { url: 'https://www.python.org/downloads/release/python-3140/', title: 'Python 3.14.0', date: '2026-10-05' },
  ],
}
const searched = ran('web_search', { query: 'latest stable python release' }, found)
const plot = "import pandas as pd\npd.read_csv('data.csv').plot().figure.savefig('chart.png')\nprint('ok')"
const plotted: ToolOutcome['shown'] = {
  kind: 'code_execution',
  code: plot,
  stdout: 'ok\n',
  stderr: '',
  returnCode: 0,
  files: [{ name: 'chart.png', id: 'file-7c2e', mediaType: 'image/png' }, { name: 'too-large.bin' }],
}
const fetched: ToolOutcome['shown'] = {
  kind: 'web_fetch',
  url: 'https://www.example.com/a',
  document: { text: 'Example article. …', title: 'Example', retrievedAt: '2026-10-14T20:26:41Z' },
}
const held: AnswerEvent = {
  type: 'container',
  container: { id: 'otari_cntr_0a1b2c3d4e5f60718293a4b5c6d7e8f9', expiresAt: '2026-10-14T20:36:40Z' },
}

function streamOf(events: AnswerEvent[], tools: ToolEntry[] = []): string {
  const writer = messagesStream({ model, tools })
  return events.map((event) => writer.push(event)).join('') + writer.end()
}
function rendered(events: AnswerEvent[], tools: ToolEntry[] = []): JsonObject {
  const collector = answerCollector()
  for (const event of events) collector.push(event)
  return renderMessages(collector.answer(), { model, tools })
}
/** Ids that are new in every answer, as they stand in the examples. */
const withId = (said: string, id: string): string => said.replace(/otari_srvtoolu_[0-9a-f]{32}/g, id)
const frame = (type: string, data: string): string => `event: ${type}\ndata: ${data}\n\n`

describe('the wire examples', () => {
  test('R-03 R-23 R-63 a searched answer of a caller of otari_web_search has its frames, one by one', () => {
    const events = [
      start('msg_01A'),
      ...searched,
      ...text(0, 'Python 3.14.0 [1].'),
      counted({ output_tokens: 31 }),
      finish(),
    ]
    expect(streamOf(events, declared('otari_web_search'))).toBe(
      [
        frame(
          'message_start',
          '{"type":"message_start","message":{"id":"msg_01A","type":"message","role":"assistant","model":"mistral:mistral-large-latest","content":[],"usage":{"input_tokens":210,"output_tokens":1}}}',
        ),
        frame(
          'content_block_start',
          '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
        ),
        frame(
          'content_block_delta',
          '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Python 3.14.0 [1]."}}',
        ),
        frame('content_block_stop', '{"type":"content_block_stop","index":0}'),
        frame(
          'message_delta',
          '{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":31}}',
        ),
        frame('message_stop', '{"type":"message_stop"}'),
        frame('done', '{}'),
      ].join(''),
    )
    expect(rendered([...events.slice(0, -2), counted({ input_tokens: 905, output_tokens: 31 }), finish()])).toEqual({
      id: 'msg_01A',
      type: 'message',
      role: 'assistant',
      model,
      content: [{ type: 'text', text: 'Python 3.14.0 [1].' }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 905, output_tokens: 31 },
    })
  })

  test('R-20 R-21 R-22 R-30 a search by the vendor’s keyword is a pair of whole blocks between the rounds', () => {
    const id = 'otari_srvtoolu_11112222333344445555666677778888'
    const events = [
      start('msg_02'),
      ...text(0, 'Let me check.'),
      ...searched,
      ...text(1, 'Python 3.14.0.'),
      counted({ output_tokens: 31 }),
      finish(),
    ]
    const tools = declared('web_search_20250305')
    const use = `{"type":"server_tool_use","id":"${id}","name":"web_search","input":{"query":"latest stable python release"}}`
    const result = `{"type":"web_search_tool_result","tool_use_id":"${id}","content":[{"type":"web_search_result","url":"https://www.python.org/downloads/release/python-3140/","title":"Python 3.14.0","page_age":"2026-10-05","encrypted_content":""}]}`
    const stream = withId(streamOf(events, tools), id)
    expect(stream).toContain(
      [
        frame('content_block_stop', '{"type":"content_block_stop","index":0}'),
        frame('content_block_start', `{"type":"content_block_start","index":1,"content_block":${use}}`),
        frame('content_block_stop', '{"type":"content_block_stop","index":1}'),
        frame('content_block_start', `{"type":"content_block_start","index":2,"content_block":${result}}`),
        frame('content_block_stop', '{"type":"content_block_stop","index":2}'),
        frame(
          'content_block_start',
          '{"type":"content_block_start","index":3,"content_block":{"type":"text","text":""}}',
        ),
      ].join(''),
    )
    expect(mistakesIn(eventsIn(stream))).toEqual([])
    expect(withId(JSON.stringify(rendered(events, tools).content), id)).toBe(
      `[{"type":"text","text":"Let me check."},${use},${result},{"type":"text","text":"Python 3.14.0."}]`,
    )
  })

  test('R-28 C-04 FI-21 a run by the vendor’s keyword, with its file, and the container where it belongs', () => {
    const id = 'otari_srvtoolu_aaaabbbbccccddddeeeeffff00001111'
    const events = [
      held,
      start('msg_03'),
      ...ran('code_execution', { code: plot }, plotted),
      ...text(0, 'Here is the chart (file-7c2e).'),
      counted({ input_tokens: 1204, output_tokens: 133 }),
      finish(),
    ]
    const container = { id: 'otari_cntr_0a1b2c3d4e5f60718293a4b5c6d7e8f9', expires_at: '2026-10-14T20:36:40Z' }
    const tools = declared('code_execution_20250825')
    const content = [
      { type: 'server_tool_use', id, name: 'code_execution', input: { code: plot } },
      {
        type: 'code_execution_tool_result',
        tool_use_id: id,
        content: {
          type: 'code_execution_result',
          stdout: 'ok\n',
          stderr: '',
          return_code: 0,
          content: [{ type: 'code_execution_output', file_id: 'file-7c2e' }],
        },
      },
      { type: 'text', text: 'Here is the chart (file-7c2e).' },
    ]
    expect(JSON.parse(withId(JSON.stringify(rendered(events, tools)), id))).toEqual({
      id: 'msg_03',
      type: 'message',
      role: 'assistant',
      model,
      content,
      container,
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 1204, output_tokens: 133 },
    })
    const stream = eventsIn(withId(streamOf(events, tools), id))
    expect(stream[0]?.message).toMatchObject({ id: 'msg_03', container })
    expect(stream.flatMap(({ content_block: block }) => (block ? [block] : [])).slice(0, 2)).toEqual(
      content.slice(0, 2),
    )
    // who did not ask in these words gets the answer and the container alone
    const plain = rendered(events, declared('otari_code_execution'))
    expect(plain).toMatchObject({ content: [content[2]], container })
    expect(streamOf(events, declared('otari_code_execution'))).not.toContain('server_tool_use')
  })

  test('R-26 F-11 a claimed fetch shows the page, its addresses without query and fragment', () => {
    const events = [
      start('msg_04'),
      ...ran('web_fetch', { url: 'https://example.com/a' }, fetched),
      ...text(0, 'It is an example article.'),
      finish(),
    ]
    const content = rendered(events, declared('web_fetch_20250910')).content as JsonObject[]
    expect(content).toEqual([
      {
        type: 'server_tool_use',
        id: expect.stringMatching(/^otari_srvtoolu_[0-9a-f]{32}$/),
        name: 'web_fetch',
        input: { url: 'https://example.com/a' },
      },
      {
        type: 'web_fetch_tool_result',
        tool_use_id: content[0]?.id,
        content: {
          type: 'web_fetch_result',
          url: 'https://www.example.com/a',
          retrieved_at: '2026-10-14T20:26:41Z',
          content: {
            type: 'document',
            source: { type: 'text', media_type: 'text/plain', data: 'Example article. …' },
            title: 'Example',
          },
        },
      },
      { type: 'text', text: 'It is an example article.' },
    ])
    expect(rendered(events, declared('otari_web_fetch')).content).toEqual([content[2]])
  })

  test('R-21 R-33 in a mixed turn the pair stands before the client’s call, in a stream after it', () => {
    const nothing = ran('web_search', { query: 'x' }, { kind: 'web_search', query: 'x', sources: [] })
    const events = [
      start('msg_05'),
      ...text(0, 'First.'),
      ...searched,
      ...text(1, 'Then.'),
      ...call(2, 'toolu_b', 'get_weather', '{"city":"Oslo"}'),
      ...nothing,
      finish('tool_calls'),
    ]
    const tools = declared('web_search_20250305')
    const { content, stop_reason } = rendered(events, tools) as { content: JsonObject[]; stop_reason: string }
    const pair = ['server_tool_use', 'web_search_tool_result']
    expect(content.map(({ type }) => type)).toEqual(['text', ...pair, ...pair, 'text', 'tool_use'])
    expect(content[4]?.content).toEqual([])
    expect(content.at(-1)).toEqual({ type: 'tool_use', id: 'toolu_b', name: 'get_weather', input: { city: 'Oslo' } })
    expect(stop_reason).toBe('tool_use')
    const stream = eventsIn(streamOf(events, tools))
    expect(mistakesIn(stream)).toEqual([])
    expect(stream.flatMap(({ content_block: block }) => block?.type ?? [])).toEqual([
      'text',
      ...pair,
      'text',
      'tool_use',
      ...pair,
    ])
  })
})

describe('what is shown of a call', () => {
  const shown = (outcome: ToolOutcome['shown'], tool: string, type: string) =>
    toolBlocks(declared(type))(ran(tool, { url: null }, outcome)[1]!)

  test('R-24 R-25 a search past its max_uses is an error pair, any other failure is nothing', () => {
    const failed = (failure: object) =>
      shown(
        { kind: 'web_search', query: 'q', sources: [], failure: { tag: 'call_limit', ...failure } },
        'web_search',
        'web_search_20250305',
      )
    expect(failed({ overMaxUses: true })[1]).toMatchObject({
      content: { type: 'web_search_tool_result_error', error_code: 'max_uses_exceeded' },
    })
    expect(failed({})).toEqual([])
    expect(failed({ tag: 'http_error', httpStatus: 500 })).toEqual([])
  })

  test.each([
    [{ tag: 'call_limit', overMaxUses: true as const }, 'max_uses_exceeded'],
    [{ tag: 'blocked' }, 'url_not_allowed'],
    [{ tag: 'invalid_url' }, 'url_not_allowed'],
    [{ tag: 'redirect' }, 'url_not_allowed'],
    [{ tag: 'network' }, 'url_not_accessible'],
    [{ tag: 'timeout' }, 'url_not_accessible'],
    [{ tag: 'http_error', httpStatus: 500 }, 'url_not_accessible'],
    [{ tag: 'unsupported_content_type' }, 'unsupported_content_type'],
    [{ tag: 'extraction_failed' }, 'unavailable'],
    [{ tag: 'call_limit' }, 'unavailable'],
    [{ tag: 'constructor' }, 'unavailable'],
  ])('R-27 a fetch that failed for %o is %s', (failure, code) => {
    const [use, result] = shown({ kind: 'web_fetch', url: null, failure }, 'web_fetch', 'web_fetch_20250910')
    expect(use).toMatchObject({ type: 'server_tool_use', name: 'web_fetch', input: {} })
    expect(result).toMatchObject({
      type: 'web_fetch_tool_result',
      content: { type: 'web_fetch_tool_result_error', error_code: code },
    })
  })

  test('R-28 a program that failed has a result, a sandbox that never answered an error', () => {
    const code = { kind: 'code_execution' as const, code: '1/0', stdout: '', stderr: 'ZeroDivisionError\n' }
    const result = (returnCode: number | undefined) =>
      shown({ ...code, returnCode }, 'code_execution', 'code_execution_20250825')[1]?.content
    expect(result(1)).toEqual({
      type: 'code_execution_result',
      stdout: '',
      stderr: 'ZeroDivisionError\n',
      return_code: 1,
      content: [],
    })
    expect(result(undefined)).toEqual({ type: 'code_execution_tool_result_error', error_code: 'unavailable' })
  })

  test('R-29 titles, dates and the whole block have their limits, and later results are dropped to fit', () => {
    const sources = Array.from({ length: 200 }, (_, n) => ({
      url: `https://site.test/${n}`,
      title: '標'.repeat(1_000),
      date: `2026\n-10 ${'x'.repeat(200)}`,
    }))
    const [, block] = shown({ kind: 'web_search', query: 'q', sources }, 'web_search', 'web_search_20250305')
    const results = block?.content as { title: string; page_age: string; url: string }[]
    expect(Buffer.byteLength(JSON.stringify(block))).toBeLessThanOrEqual(50 * 1024)
    expect(results.length).toBeGreaterThan(50)
    expect(results.map(({ url }) => url)).toEqual(sources.slice(0, results.length).map(({ url }) => url))
    for (const { title, page_age } of results) {
      expect(Buffer.byteLength(title)).toBeLessThanOrEqual(512)
      expect(title.endsWith('標…')).toBe(true)
      expect(page_age).toMatch(/^2026 -10 x+$/)
      expect(page_age.length).toBeLessThanOrEqual(128)
    }
  })

  test.each([
    [
      'web_search',
      ['web_search_20250305', 'web_search_20260209', 'web_search'],
      ['otari_web_search', 'web_search_preview'],
    ],
    ['web_fetch', ['web_fetch_20250910'], ['otari_web_fetch', 'web_fetch']],
    ['code_execution', ['code_execution_20250825', 'code_execution'], ['otari_code_execution', 'code_interpreter']],
  ])('R-23 X-34 %s is shown to callers of the vendor’s keyword alone', (tool, native, others) => {
    const outcomes: Record<string, ToolOutcome['shown']> = {
      web_search: found,
      web_fetch: fetched,
      code_execution: plotted,
    }
    for (const type of native) expect(shown(outcomes[tool]!, tool, type)).toHaveLength(2)
    for (const type of others) expect(shown(outcomes[tool]!, tool, type)).toEqual([])
  })
})

describe('a stream', () => {
  test('BR-005 calls that the upstream says at once come one after the other', () => {
    const events: AnswerEvent[] = [
      { type: 'start', id: 'chatcmpl-1', created: 1, model: 'up' },
      { type: 'open', index: 0, block: { kind: 'call', id: 'c0', name: 'f' } },
      { type: 'delta', index: 0, text: '{"a":' },
      { type: 'open', index: 1, block: { kind: 'call', id: 'c1', name: 'g' } },
      { type: 'delta', index: 1, text: '{"b":' },
      { type: 'delta', index: 0, text: '1}' },
      { type: 'delta', index: 1, text: '2}' },
      { type: 'close', index: 1 },
      { type: 'close', index: 0 },
      finish('tool_calls'),
    ]
    const stream = eventsIn(streamOf(events))
    expect(mistakesIn(stream)).toEqual([])
    const inputs = [0, 1].map((at) =>
      stream.flatMap(({ index, delta }) => (index === at ? (delta?.partial_json ?? []) : [])).join(''),
    )
    expect(inputs).toEqual(['{"a":1}', '{"b":2}'])
    expect(stream[0]?.message).toMatchObject({ id: expect.stringMatching(/^msg_[0-9a-f]{24}$/), model })
  })

  test('a text is sent on as it comes, and a block that waits holds none back that is open', () => {
    const writer = messagesStream({ model, tools: [] })
    writer.push(start('msg_1'))
    writer.push({ type: 'open', index: 0, block: { kind: 'text' } })
    expect(writer.push({ type: 'delta', index: 0, text: 'a' })).toContain('"text":"a"')
    expect(writer.push({ type: 'open', index: 1, block: { kind: 'text' } })).toBe('')
    expect(writer.push({ type: 'delta', index: 1, text: 'later' })).toBe('')
    expect(writer.push({ type: 'delta', index: 0, text: 'b' })).toContain('"text":"b"')
    expect(writer.push({ type: 'close', index: 0 })).toMatch(
      /content_block_stop.*"index":0.*content_block_start.*later/s,
    )
    expect(writer.push({ type: 'delta', index: 1, text: 'now' })).toContain('"text":"now"')
  })

  test('BR-015 thinking keeps its signature, opaque thinking its data, and a block nobody knows all of it', () => {
    const own = { type: 'mcp_tool_use', id: 'mcptoolu_1', server_name: 's', input: { a: 1 } }
    const events: AnswerEvent[] = [
      start('msg_1'),
      { type: 'open', index: 0, block: { kind: 'thinking' } },
      { type: 'delta', index: 0, text: 'hm' },
      { type: 'signature', index: 0, signature: 's1' },
      { type: 'close', index: 0 },
      { type: 'open', index: 1, block: { kind: 'redacted_thinking', data: 'opaque' } },
      { type: 'close', index: 1 },
      { type: 'open', index: 2, block: { kind: 'other', dialect: 'messages', value: own } },
      { type: 'close', index: 2 },
      ...text(3, 'So.'),
      finish(),
    ]
    expect(rendered(events).content).toEqual([
      { type: 'thinking', thinking: 'hm', signature: 's1' },
      { type: 'redacted_thinking', data: 'opaque' },
      own,
      { type: 'text', text: 'So.' },
    ])
    const stream = eventsIn(streamOf(events))
    expect(mistakesIn(stream)).toEqual([])
    expect(stream.flatMap(({ delta }) => (delta?.type === 'signature_delta' ? [delta] : []))).toEqual([
      { type: 'signature_delta', signature: 's1' },
    ])
    expect(stream.flatMap(({ content_block: block }) => (block ? [block] : [])).slice(1, 3)).toEqual([
      { type: 'redacted_thinking', data: 'opaque' },
      own,
    ])
  })

  test('R-31 what each round’s ending says is kept: the later word, and the edits of both', () => {
    const ending = (delta: JsonObject, edits: number[]): AnswerEvent => ({
      type: 'extra',
      dialect: 'messages',
      value: { type: 'ending', delta, beside: { context_management: { applied_edits: edits } } },
    })
    const events = [
      start('msg_1'),
      ending({ stop_sequence: null }, [1]),
      ...text(0, 'x'),
      ending({ stop_sequence: 'END', stop_details: { a: 1 } }, [2]),
      counted({ input_tokens: 3, output_tokens: 2, iterations: [{ type: 'message' }] }),
      { type: 'finish', reason: 'stop', raw: 'stop_sequence' } as AnswerEvent,
    ]
    expect(rendered(events)).toMatchObject({
      stop_reason: 'stop_sequence',
      stop_sequence: 'END',
      stop_details: { a: 1 },
      context_management: { applied_edits: [1, 2] },
      usage: { iterations: [{ type: 'message' }] },
    })
    expect(eventsIn(streamOf(events)).find(({ event }) => event === 'message_delta')).toEqual({
      event: 'message_delta',
      type: 'message_delta',
      delta: { stop_reason: 'stop_sequence', stop_sequence: 'END', stop_details: { a: 1 } },
      context_management: { applied_edits: [1, 2] },
      usage: { input_tokens: 3, output_tokens: 2, iterations: [{ type: 'message' }] },
    })
  })

  test('R-62 R-64 has a ping to keep it alive, and one error event to end it', () => {
    const writer = messagesStream({ model, tools: [] })
    expect(writer.keepalive).toBe('event: ping\ndata: {"type":"ping"}\n\n')
    expect(writer.fail()).toBe(
      'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"An error occurred during streaming"}}\n\n',
    )
  })

  test('R-66 no text of a tool’s result is ever part of it', () => {
    const events = [
      start('msg_1'),
      ...searched,
      ...ran('code_execution', { code: plot }, plotted, true),
      ...text(0, 'x'),
      finish(),
    ]
    const tools = declared('web_search_20250305', 'code_execution_20250825')
    expect(streamOf(events, tools) + JSON.stringify(rendered(events, tools))).not.toContain('secret result')
  })
})

test.each([
  ['stop', 'stop', 'end_turn'],
  ['stop', 'stop_sequence', 'stop_sequence'],
  ['tool_calls', 'stop', 'tool_use'],
  ['length', 'length', 'max_tokens'],
  ['length', 'model_context_window_exceeded', 'model_context_window_exceeded'],
  ['content_filter', 'content_filter', 'refusal'],
  ['pause', 'pause_turn', 'pause_turn'],
  ['unknown', 'brand_new_reason', 'brand_new_reason'],
  ['unknown', undefined, 'end_turn'],
] as const)('BR-026 an end for %s, in the upstream’s word %s, is %s', (reason, raw, expected) => {
  expect(messagesFinish({ reason, raw })).toBe(expected)
})

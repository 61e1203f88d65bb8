import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import OpenAI from 'openai'
import { afterEach, describe, expect, test } from 'vitest'
import { answerCollector, collectAnswer } from '../../src/conversation/collect.ts'
import type { AnswerEvent, ToolOutcome } from '../../src/conversation/events.ts'
import type { JsonObject } from '../../src/conversation/turn.ts'
import { renderChat } from '../../src/dialects/chat/render.ts'
import { type ChatStreamOptions, chatStream } from '../../src/dialects/chat/stream.ts'
import { telling } from '../told.ts'

const model = 'mistral:mistral-large-latest'
const start: AnswerEvent = { type: 'start', id: 'chatcmpl-9f2c', created: 1_792_000_000, model: 'up' }
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
const usage: AnswerEvent = {
  type: 'usage',
  tokens: { input: 905, output: 31, cacheRead: 0, cacheWrite: 0, reasoning: 0 },
  raw: undefined,
}
const finish = (reason: 'stop' | 'tool_calls' = 'stop'): AnswerEvent => ({ type: 'finish', reason, raw: reason })
const ran = (id: string, tool: string, shown: ToolOutcome['shown'], isError = false): AnswerEvent[] => {
  const input = { asked: true }
  return [
    { type: 'tool', phase: 'started', call: { id, tool, input } },
    { type: 'tool', phase: 'finished', call: { id, tool, input }, outcome: { text: 'secret result', isError, shown } },
  ]
}
const found = {
  kind: 'web_search' as const,
  query: 'latest stable python release',
  sources: [
    { url: 'https://www.python.org/downloads/release/python-3140/', title: 'Python 3.14.0', date: '2026-10-05' },
    { url: 'https://www.python.org/downloads/', title: 'Download Python', date: '2026-10-06T08:00:00Z' },
  ],
}

function streamOf(events: AnswerEvent[], options: Partial<ChatStreamOptions> = {}): string {
  const writer = chatStream({ model, includeUsage: true, ...options })
  return events.map((event) => writer.push(event)).join('') + writer.end()
}

const chunksOf = (stream: string): JsonObject[] =>
  stream
    .split('\n\n')
    .flatMap((frame) => (frame.startsWith('data: {') ? [JSON.parse(frame.slice(6)) as JsonObject] : []))

function answerOf(events: AnswerEvent[]) {
  const collector = answerCollector()
  for (const event of events) collector.push(event)
  return collector.answer()
}
const rendered = (events: AnswerEvent[]) => renderChat(answerOf(events), model)

const deltasOf = (stream: string) =>
  chunksOf(stream).flatMap(({ choices }) => (choices as JsonObject[]).map(({ delta }) => delta as JsonObject))

describe('a Chat stream', () => {
  test('R-41 R-42 R-47 has the frames of a searched answer, one by one', () => {
    const head =
      '"id":"chatcmpl-9f2c","object":"chat.completion.chunk","created":1792000000,"model":"mistral:mistral-large-latest"'
    const stream = streamOf([
      start,
      ...ran('call_7Qa', 'web_search', found),
      ...text(0, 'Python ', '3.14.0 [1].'),
      usage,
      finish(),
    ])
    expect(stream).toBe(
      [
        `data: {${head},"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`,
        `data: {${head},"choices":[],"otari_tool_calls":[{"id":"call_7Qa","type":"web_search","status":"completed","query":"latest stable python release","sources":${JSON.stringify(found.sources)}}]}`,
        `data: {${head},"choices":[{"index":0,"delta":{"content":"Python "},"finish_reason":null}]}`,
        `data: {${head},"choices":[{"index":0,"delta":{"content":"3.14.0 [1]."},"finish_reason":null}]}`,
        `data: {${head},"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
        `data: {${head},"choices":[],"usage":{"prompt_tokens":905,"completion_tokens":31,"total_tokens":936}}`,
        'data: [DONE]',
        '',
      ].join('\n\n'),
    )
  })

  test('R-03 BR-038 has one id, time and model, and one role, in the first chunk, however many rounds there were', () => {
    const again: AnswerEvent = { type: 'start', id: 'other', created: 1, model: 'other' }
    for (const events of [
      [start, ...text(0, 'a'), again, ...text(1, 'b'), finish()],
      [start, ...call(0, 'c', 'f', '{}'), again, finish('tool_calls')],
      [{ ...start, id: undefined, created: undefined } as AnswerEvent, ...text(0, 'a'), finish()],
    ]) {
      const chunks = chunksOf(streamOf(events))
      expect(
        new Set(chunks.map(({ id, created, model: said, object }) => JSON.stringify([id, created, said, object]))).size,
      ).toBe(1)
      expect(chunks[0]).toMatchObject({
        id: expect.stringMatching(/^chatcmpl-\w+$/),
        object: 'chat.completion.chunk',
        created: expect.any(Number),
        model,
      })
      expect(deltasOf(streamOf(events)).filter(({ role }) => role !== undefined)).toHaveLength(1)
      expect(deltasOf(streamOf(events))[0]?.role).toBe('assistant')
    }
  })

  test('R-46 calls are numbered from 0 without gaps, whatever the blocks are numbered', () => {
    const stream = streamOf([
      start,
      ...text(4, 'x'),
      ...call(7, 'call_b', 'get_weather', '{"city":', '"Oslo"}'),
      ...call(9, 'call_c', 'now', '{}'),
      finish('tool_calls'),
    ])
    expect(deltasOf(stream).flatMap(({ tool_calls }) => (tool_calls as JsonObject[] | undefined) ?? [])).toEqual([
      { index: 0, id: 'call_b', type: 'function', function: { name: 'get_weather', arguments: '' } },
      { index: 0, function: { arguments: '{"city":' } },
      { index: 0, function: { arguments: '"Oslo"}' } },
      { index: 1, id: 'call_c', type: 'function', function: { name: 'now', arguments: '' } },
      { index: 1, function: { arguments: '{}' } },
    ])
  })

  test('R-42 each finished web call has a chunk of its own; R-04 code has none', () => {
    const code = { kind: 'code_execution' as const, code: 'print(1)', stdout: '1\n', stderr: '', returnCode: 0 }
    const page = { kind: 'web_fetch' as const, url: 'https://www.example.com/a' }
    const stream = streamOf([
      start,
      ...ran('a', 'web_search', found),
      ...ran('x', 'code_execution', code),
      ...ran('b', 'web_fetch', page),
      ...text(0, 'ok'),
      finish(),
    ])
    const reports = chunksOf(stream).filter((chunk) => Object.hasOwn(chunk, 'otari_tool_calls'))
    expect(
      reports.map(({ choices, otari_tool_calls: items }) => [choices, (items as JsonObject[]).map(({ id }) => id)]),
    ).toEqual([
      [[], ['a']],
      [[], ['b']],
    ])
    expect(stream).not.toContain('print(1)')
    expect(stream).not.toContain('secret result')
    expect(stream).not.toContain('otari_tool_activity')
  })

  test('R-05 only the playground sees every call start and end', () => {
    const code = { kind: 'code_execution' as const, code: 'print(1)', stdout: '1\n', stderr: '', returnCode: 0 }
    const stream = streamOf([start, ...ran('x', 'code_execution', code), finish()], { showActivity: true })
    expect(chunksOf(stream).flatMap(({ otari_tool_activity: activity }) => activity ?? [])).toEqual([
      { id: 'x', phase: 'start', tool: 'code_execution', input: { asked: true } },
      { id: 'x', phase: 'end', tool: 'code_execution', status: 'completed', result: 'secret result' },
    ])
    // what the model's own backend ran did not run here
    const call = { id: 'y', tool: '$web_search', input: {}, byProvider: true as const }
    const outcome = {
      text: '',
      isError: false,
      shown: { kind: 'provider_tool' as const, name: '$web_search', search: true },
    }
    const backends = streamOf(
      [start, { type: 'tool', phase: 'started', call }, { type: 'tool', phase: 'finished', call, outcome }, finish()],
      { showActivity: true },
    )
    expect(backends).not.toContain('otari_tool_activity')
    expect(backends).toContain('"executed_by":"provider"')
  })

  test('R-47 the usage chunk is there once if it was asked for, and in the upstream’s own words where it speaks Chat', () => {
    const raw = {
      dialect: 'chat' as const,
      value: { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3, cost: 0.1 },
    }
    const withRaw = { ...usage, raw } as AnswerEvent
    expect(streamOf([start, ...text(0, 'a'), usage, finish()], { includeUsage: false })).not.toContain('"usage"')
    expect(chunksOf(streamOf([start, ...text(0, 'a'), withRaw, finish()])).at(-1)).toMatchObject({
      choices: [],
      usage: raw.value,
    })
  })

  test('BR-147 a prompt counts what came from a cache, which is told apart', () => {
    const tokens = { input: 3000, output: 800, cacheRead: 9000, cacheWrite: 0, reasoning: 7 }
    const counted = { type: 'usage', tokens, raw: { dialect: 'messages', value: {} } } as AnswerEvent
    const expected = {
      prompt_tokens: 12_000,
      completion_tokens: 800,
      total_tokens: 12_800,
      prompt_tokens_details: { cached_tokens: 9000 },
      completion_tokens_details: { reasoning_tokens: 7 },
    }
    expect(chunksOf(streamOf([start, counted, finish()])).at(-1)?.usage).toEqual(expected)
    expect(rendered([start, counted, finish()]).usage).toEqual(expected)
  })

  test('R-62 R-64 a failure and a keep-alive are whole frames of their own', () => {
    const writer = chatStream({ model, includeUsage: false })
    expect(writer.fail()).toBe(
      'data: {"error":{"message":"An error occurred during streaming","type":"server_error"}}\n\ndata: [DONE]\n\n',
    )
    expect(writer.keepalive).toBe(': keepalive\n\n')
  })

  test.each<[AnswerEvent & { type: 'finish' }, string]>([
    [{ type: 'finish', reason: 'stop', raw: 'end_turn' }, 'stop'],
    [{ type: 'finish', reason: 'tool_calls', raw: 'tool_use' }, 'tool_calls'],
    [{ type: 'finish', reason: 'tool_calls', raw: 'function_call' }, 'function_call'],
    [{ type: 'finish', reason: 'length', raw: 'max_tokens' }, 'length'],
    [{ type: 'finish', reason: 'length', raw: 'model_context_window_exceeded' }, 'length'],
    [{ type: 'finish', reason: 'content_filter', raw: 'refusal' }, 'content_filter'],
    [{ type: 'finish', reason: 'pause', raw: 'pause_turn' }, 'length'],
    [{ type: 'finish', reason: 'unknown', raw: 'brand_new' }, 'brand_new'],
  ])('BR-026 %j ends as %s', (end, reason) => {
    const reasons = chunksOf(streamOf([start, ...text(0, 'x'), end])).flatMap(({ choices }) =>
      (choices as JsonObject[]).map((choice) => choice.finish_reason),
    )
    expect(reasons.filter((one) => one !== null)).toEqual([reason])
    expect((rendered([start, ...text(0, 'x'), end]).choices as JsonObject[])[0]?.finish_reason).toBe(reason)
  })
})

describe('a whole Chat answer', () => {
  test('R-40 R-41 has the form of a searched answer', () => {
    expect(
      rendered([start, ...ran('call_7Qa', 'web_search', found), ...text(0, 'Python ', '3.14.0 [1].'), usage, finish()]),
    ).toEqual({
      id: 'chatcmpl-9f2c',
      object: 'chat.completion',
      created: 1_792_000_000,
      model,
      choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Python 3.14.0 [1].' } }],
      usage: { prompt_tokens: 905, completion_tokens: 31, total_tokens: 936 },
      otari_tool_calls: [
        { id: 'call_7Qa', type: 'web_search', status: 'completed', ...{ query: found.query, sources: found.sources } },
      ],
    })
  })

  test.each<[ToolOutcome['shown'], JsonObject]>([
    [
      { kind: 'web_search', query: 'zxqv', sources: [] },
      { type: 'web_search', status: 'completed', query: 'zxqv', sources: [] },
    ],
    [
      { kind: 'web_search', query: 'q', sources: [], failure: { tag: 'timeout' } },
      { type: 'web_search', status: 'failed', query: 'q', error: { tag: 'timeout' } },
    ],
    [
      { kind: 'web_search', query: 'q', sources: [], failure: { tag: 'rate_limited', httpStatus: 429 } },
      { type: 'web_search', status: 'failed', query: 'q', error: { tag: 'rate_limited', http_status: 429 } },
    ],
    [
      { kind: 'web_fetch', url: 'https://www.example.com/a' },
      { type: 'web_fetch', status: 'completed', url: 'https://www.example.com/a' },
    ],
    [
      { kind: 'web_fetch', url: 'https://example.com/b', failure: { tag: 'http_error', httpStatus: 404 } },
      {
        type: 'web_fetch',
        status: 'failed',
        url: 'https://example.com/b',
        error: { tag: 'http_error', http_status: 404 },
      },
    ],
    [
      { kind: 'web_fetch', url: null, failure: { tag: 'invalid_url' } },
      { type: 'web_fetch', status: 'failed', url: null, error: { tag: 'invalid_url' } },
    ],
  ])('R-41 %j is reported as it should be', (shown, item) => {
    const events = [start, ...ran('call_5', shown.kind, shown), finish()]
    expect(rendered(events).otari_tool_calls).toEqual([{ id: 'call_5', ...item }])
    expect(chunksOf(streamOf(events))[1]?.otari_tool_calls).toEqual([{ id: 'call_5', ...item }])
  })

  test('content is null where only calls or a refusal were said, and empty where nothing was', () => {
    const message = (events: AnswerEvent[]) =>
      (rendered([start, ...events, finish()]).choices as JsonObject[])[0]?.message
    expect(message(call(0, 'c', 'f', '{"a":1}'))).toEqual({
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }],
    })
    expect(
      message([
        { type: 'open', index: 0, block: { kind: 'refusal' } },
        { type: 'delta', index: 0, text: 'no' },
      ]),
    ).toEqual({ role: 'assistant', content: null, refusal: 'no' })
    expect(message([])).toEqual({ role: 'assistant', content: '' })
  })

  test('BR-018 a stream that just stops is a failure', async () => {
    await expect(collectAnswer(telling([start, ...text(0, 'Hel')]))).rejects.toMatchObject({ failure: 'upstream' })
  })
})

describe('what the official client makes of it', () => {
  let server: Server | undefined
  afterEach(() => void server?.close())

  async function clientOf(body: string, type: string): Promise<OpenAI> {
    server = createServer((_, response) => response.writeHead(200, { 'content-type': type }).end(body))
    await new Promise<void>((listening) => server?.listen(0, '127.0.0.1', listening))
    const { port } = server.address() as AddressInfo
    return new OpenAI({ apiKey: 'x', baseURL: `http://127.0.0.1:${port}/v1`, maxRetries: 0 })
  }

  const custom = { id: 'k', type: 'custom', custom: { name: 'grep', input: 'x' } }
  const turns: Record<string, AnswerEvent[]> = {
    text: [start, ...text(0, 'He', 'llo "é😀"'), usage, finish()],
    'tools only': [
      start,
      ...call(3, 'call_b', 'get_weather', '{"city":', '"Oslo"}'),
      ...call(5, 'call_c', 'now', '{}'),
      usage,
      finish('tool_calls'),
    ],
    'a searched answer': [start, ...ran('a', 'web_search', found), ...text(0, 'ok'), usage, finish()],
    'a mixed turn': [
      start,
      ...text(0, 'let me'),
      ...call(1, 'call_b', 'get_weather', '{}'),
      ...ran('call_a', 'web_search', found),
      usage,
      finish('tool_calls'),
    ],
    'thinking between': [
      start,
      { type: 'open', index: 0, block: { kind: 'thinking' } },
      { type: 'delta', index: 0, text: 'hm' },
      { type: 'signature', index: 0, signature: 's' },
      { type: 'close', index: 0 },
      { type: 'open', index: 1, block: { kind: 'redacted_thinking', data: 'd' } },
      { type: 'close', index: 1 },
      ...text(2, 'ok'),
      usage,
      finish(),
    ],
    'members of its own': [
      { ...start, extra: { system_fingerprint: 'fp' } } as AnswerEvent,
      ...text(0, 'ok'),
      { type: 'extra', dialect: 'chat', value: { choices: [{ index: 0, delta: { annotations: [{ a: 1 }] } }] } },
      { type: 'extra', dialect: 'chat', value: { choices: [{ index: 0, logprobs: { content: [{ token: 'ok' }] } }] } },
      { type: 'extra', dialect: 'chat', value: { service_tier: 'default' } },
      { type: 'extra', dialect: 'responses', value: { nothing: 'here' } },
      usage,
      finish(),
    ],
    'pages cited by a Messages upstream': [
      start,
      ...text(0, 'A.'),
      { type: 'open', index: 1, block: { kind: 'text' } },
      { type: 'delta', index: 1, text: ' B.' },
      {
        type: 'extra',
        dialect: 'messages',
        value: { type: 'citation', citation: { type: 'web_search_result_location', url: 'u1', title: 't1' } },
      },
      { type: 'close', index: 1 },
      usage,
      finish(),
    ],
    'a custom tool': [
      start,
      { type: 'open', index: 0, block: { kind: 'other', dialect: 'chat', value: custom } },
      { type: 'close', index: 0 },
      finish('tool_calls'),
    ],
  }

  /** What the client puts together, without what a stream cannot have or what the client adds by itself. */
  function comparable(completion: object): unknown {
    const { choices, object: _, ...rest } = completion as { choices: { message: object }[]; object: string }
    const bare = (message: object) =>
      Object.fromEntries(
        Object.entries(message).filter(([name, value]) => name !== 'parsed' && value != null && value !== ''),
      )
    return {
      ...rest,
      choices: choices.map(({ message, ...choice }) => ({
        ...choice,
        logprobs: (choice as { logprobs?: unknown }).logprobs ?? null,
        message: bare(message),
      })),
    }
  }

  test.each(Object.keys(turns).filter((name) => name !== 'a custom tool'))(
    'R-03 BR-038 %s: the stream accumulates to the whole answer',
    async (name) => {
      const events = turns[name]!
      const client = await clientOf(streamOf(events), 'text/event-stream')
      const streaming = client.chat.completions.stream({
        model,
        messages: [{ role: 'user', content: 'x' }],
        stream_options: { include_usage: true },
      })
      const reports: unknown[] = []
      streaming.on('chunk', (chunk) =>
        reports.push(...((chunk as { otari_tool_calls?: unknown[] }).otari_tool_calls ?? [])),
      )
      const accumulated = await streaming.finalChatCompletion()
      const { otari_tool_calls: expected = [], ...whole } = rendered(events)
      const { otari_tool_calls: _, ...said } = comparable(accumulated) as { otari_tool_calls?: unknown }
      expect(said).toEqual(comparable(whole))
      expect(reports).toEqual(expected)
    },
  )

  test('the whole answer is read as it is', async () => {
    const client = await clientOf(JSON.stringify(rendered(turns['a mixed turn']!)), 'application/json')
    const completion = await client.chat.completions.create({ model, messages: [{ role: 'user', content: 'x' }] })
    expect(completion.choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: { content: 'let me', tool_calls: [{ id: 'call_b' }] },
    })
    expect(completion.model).toBe(model)
  })

  test('BR-001 an error in the stream is thrown', async () => {
    const writer = chatStream({ model, includeUsage: false })
    const client = await clientOf(
      [start, ...text(0, 'Hel')].map((event) => writer.push(event)).join('') + writer.fail(),
      'text/event-stream',
    )
    const seen: string[] = []
    const reading = async () => {
      for await (const chunk of await client.chat.completions.create({
        model,
        stream: true,
        messages: [{ role: 'user', content: 'x' }],
      }))
        seen.push(chunk.choices[0]?.delta.content ?? '')
    }
    await expect(reading()).rejects.toThrowError(/An error occurred during streaming/)
    expect(seen.join('')).toBe('Hel')
  })

  test('BR-048 a cited page is an annotation over exactly the text it is of', () => {
    const annotations = [
      { type: 'url_citation', url_citation: { url: 'u1', title: 't1', start_index: 2, end_index: 5 } },
    ]
    const cited = turns['pages cited by a Messages upstream']!
    expect((rendered(cited).choices as { message: JsonObject }[])[0]?.message.annotations).toEqual(annotations)
    expect(deltasOf(streamOf(cited)).flatMap((delta) => delta.annotations ?? [])).toEqual(annotations)
  })

  test('a call of a custom tool keeps its own form', () => {
    const stream = streamOf(turns['a custom tool']!)
    expect(deltasOf(stream).flatMap(({ tool_calls }) => tool_calls ?? [])).toEqual([{ index: 0, ...custom }])
    expect((rendered(turns['a custom tool']!).choices as { message: JsonObject }[])[0]?.message.tool_calls).toEqual([
      custom,
    ])
  })
})

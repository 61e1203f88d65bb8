import { callsTools, type FakeModel, fakeAnthropic, type ScriptedReply } from '@tollgate/testing'
import { afterEach, describe, expect, test } from 'vitest'
import type { ModelEvent } from '../../src/conversation/events.ts'
import type { JsonObject, Part } from '../../src/conversation/turn.ts'
import { toldBy } from '../told.ts'
import { answerOf, chatRequest, eventsOf, faultOf, modelsAt, saidIn, soon } from './asking.ts'

let fake: FakeModel | undefined
afterEach(() => fake?.close())

async function modelOf(...replies: ScriptedReply[]) {
  fake = await fakeAnthropic(replies)
  return modelsAt(fake, { type: 'anthropic' })
}

const frames = (...events: JsonObject[]): string =>
  events.map((event) => `event: ${String(event.type)}\ndata: ${JSON.stringify(event)}\n\n`).join('')
const sse = (body: string): ScriptedReply => ({ body, headers: { 'content-type': 'text/event-stream' } })
const start = {
  type: 'message_start',
  message: { id: 'msg_1', model: 'm', content: [], usage: { input_tokens: 3, output_tokens: 1 } },
}
const block = (index: number, content_block: JsonObject): JsonObject => ({
  type: 'content_block_start',
  index,
  content_block,
})
const delta = (index: number, more: JsonObject): JsonObject => ({ type: 'content_block_delta', index, delta: more })
const stop = (index: number): JsonObject => ({ type: 'content_block_stop', index })
const text = (words: string) => [
  block(0, { type: 'text', text: '' }),
  delta(0, { type: 'text_delta', text: words }),
  stop(0),
]
const end = (stop_reason: string, usage: JsonObject = { output_tokens: 4 }): JsonObject[] => [
  { type: 'message_delta', delta: { stop_reason }, usage },
  { type: 'message_stop' },
]
const streamed = (changes = {}) => chatRequest({ stream: true, ...changes })

describe('a Messages answer as events', () => {
  test.each([true, false])('BR-003 thinking, text and calls keep their order, streamed or not (%s)', async (stream) => {
    const models = await modelOf(
      callsTools([{ id: 't', name: 'f', input: { q: 'é😀' } }], {
        first: [
          { thinking: 'A', signature: 's1' },
          { redacted: 'opaque' },
          { text: 'x y z' },
          { thinking: 'B', signature: 's2' },
        ],
        usage: {
          input_tokens: 3000,
          cache_read_input_tokens: 9000,
          cache_creation_input_tokens: 0,
          output_tokens: 800,
          output_tokens_details: { thinking_tokens: 5 },
        },
      }),
    )
    const answer = await answerOf(
      models,
      chatRequest({ stream, tools: [{ type: 'function', function: { name: 'f' } }] }),
    )
    expect(saidIn(answer)).toEqual([
      { kind: 'thinking', text: 'A' },
      { kind: 'redacted_thinking', data: 'opaque' },
      { kind: 'text', text: 'x y z' },
      { kind: 'thinking', text: 'B' },
      { kind: 'call', id: 't', name: 'f', text: '{"q":"é😀"}' },
    ])
    expect(answer.items.map((item) => item.type === 'block' && item.signature)).toEqual([
      's1',
      undefined,
      undefined,
      's2',
      undefined,
    ])
    expect(answer.finish).toEqual({ reason: 'tool_calls', raw: 'tool_use' })
    expect(answer.usage?.tokens).toEqual({ input: 3000, output: 800, cacheRead: 9000, cacheWrite: 0, reasoning: 5 })
    expect(answer.id).toBe('msg_up_1')
    expect(fake?.refusals).toEqual([])
    await models.close()
  })

  test('usage of a stream is what was said last, and what a later event leaves out stands', async () => {
    const models = await modelOf(
      sse(
        frames(
          start,
          ...text('x'),
          ...end('end_turn', { output_tokens: 9, input_tokens: null, server_tool_use: { web_search_requests: 2 } }),
        ),
      ),
    )
    const { usage } = await answerOf(models, streamed())
    expect(usage?.tokens).toMatchObject({ input: 3, output: 9 })
    expect(usage?.raw).toEqual({
      dialect: 'messages',
      value: { input_tokens: 3, output_tokens: 9, server_tool_use: { web_search_requests: 2 } },
    })
    await models.close()
  })

  test('BR-024 a call without arguments has an empty object', async () => {
    const models = await modelOf(callsTools([{ name: 'now', input: {} }]), callsTools([{ name: 'now', input: {} }]))
    const tools = [{ type: 'function', function: { name: 'now' } }]
    for (const stream of [true, false]) {
      const answer = await answerOf(models, chatRequest({ stream, tools }))
      expect(saidIn(answer)).toMatchObject([{ kind: 'call', name: 'now', text: '{}' }])
    }
    await models.close()
  })

  test.each([
    ['end_turn', 'stop'],
    ['stop_sequence', 'stop'],
    ['max_tokens', 'length'],
    ['model_context_window_exceeded', 'length'],
    ['refusal', 'content_filter'],
    ['pause_turn', 'pause'],
    ['brand_new_reason', 'unknown'],
  ])('BR-026 the stop reason %s is %s', async (raw, reason) => {
    const models = await modelOf(sse(frames(start, ...text('x'), ...end(raw))))
    expect((await answerOf(models, streamed())).finish).toEqual({ reason, raw })
    await models.close()
  })

  test('blocks only this dialect knows come whole, citations beside the text they are of, and unknown events pass', async () => {
    const citation = { type: 'web_search_result_location', url: 'u1', title: 't1', cited_text: 'c' }
    const models = await modelOf(
      sse(
        frames(
          { type: 'ping' },
          start,
          { type: 'brand_new_event', x: 1 },
          block(0, { type: 'server_tool_use', id: 's', name: 'web_search', input: {} }),
          delta(0, { type: 'input_json_delta', partial_json: '{"query":' }),
          delta(0, { type: 'input_json_delta', partial_json: '"q"}' }),
          stop(0),
          block(1, { type: 'web_search_tool_result', tool_use_id: 's', content: [] }),
          stop(1),
          block(2, { type: 'text', text: '' }),
          delta(2, { type: 'citations_delta', citation }),
          delta(2, { type: 'text_delta', text: 'A.' }),
          stop(2),
          ...end('end_turn'),
        ),
      ),
    )
    const answer = await answerOf(models, streamed())
    expect(saidIn(answer)).toEqual([
      {
        kind: 'other',
        dialect: 'messages',
        value: { type: 'server_tool_use', id: 's', name: 'web_search', input: { query: 'q' } },
      },
      { kind: 'other', dialect: 'messages', value: { type: 'web_search_tool_result', tool_use_id: 's', content: [] } },
      { kind: 'text', text: 'A.' },
    ])
    expect(answer.extras).toEqual([
      { dialect: 'messages', value: { type: 'citation', citation }, block: expect.objectContaining({ text: 'A.' }) },
    ])
    await models.close()
  })
})

describe('a Messages answer that fails', () => {
  test('BR-001 an error after some text is thrown with its meaning, and the text has been said', async () => {
    const error = { type: 'error', error: { type: 'overloaded_error', message: 'busy' } }
    const models = await modelOf(
      sse(frames(start, block(0, { type: 'text', text: '' }), delta(0, { type: 'text_delta', text: 'Hel' }), error)),
    )
    const events: ModelEvent[] = []
    const reading = toldBy((tell) => models.resolve('up:m').provider.ask(streamed(), soon(), tell), events)
    expect(await faultOf(reading)).toMatchObject({
      failure: 'unavailable',
      upstreamStatus: 529,
      retryable: true,
      message: 'the model provider is overloaded',
    })
    expect(events.at(-1)).toEqual({ type: 'delta', index: 0, text: 'Hel' })
    await models.close()
  })

  test.each<[string, object]>([
    ['rate_limit_error', { failure: 'rate_limited', status: 429, message: 'slow down' }],
    ['invalid_request_error', { failure: 'invalid_request', status: 400, message: 'slow down' }],
    ['not_found_error', { failure: 'not_found', message: 'slow down' }],
    ['request_too_large', { failure: 'too_large' }],
    ['overloaded_error', { failure: 'unavailable', upstreamStatus: 529 }],
    ['timeout_error', { failure: 'timeout' }],
    ['authentication_error', { failure: 'upstream', message: "the model provider refused this gateway's account" }],
    ['permission_error', { failure: 'upstream', message: "the model provider refused this gateway's account" }],
    ['billing_error', { failure: 'upstream', message: "the model provider refused this gateway's account" }],
    ['api_error', { failure: 'upstream', message: 'the model provider failed' }],
  ])('BR-031 BR-035 %s as the first event keeps type and message', async (type, expected) => {
    const models = await modelOf(sse(frames({ type: 'error', error: { type, message: 'slow down' } })))
    expect(await faultOf(answerOf(models, streamed()))).toMatchObject(expected)
    await models.close()
  })

  test.each<[string, ScriptedReply, boolean]>([
    ['zero bytes', sse(''), true],
    ['only pings', sse(frames({ type: 'ping' })), true],
    ['an HTML page', { body: '<html>login</html>', headers: { 'content-type': 'text/html' } }, true],
    ['half an answer', sse(frames(start, ...text('Hel'))), true],
    ['half a frame', sse(`${frames(start, ...text('Hel'))}event: message_delta\ndata: {"type":`), true],
    ['a delta of no block', sse(frames(start, delta(7, { type: 'text_delta', text: 'x' }), ...end('end_turn'))), true],
    [
      'a call without a name',
      sse(frames(start, block(0, { type: 'tool_use', id: 'a', input: {} }), stop(0), ...end('tool_use'))),
      true,
    ],
    ['an event of another shape', sse(frames({ type: 'content_block_start', index: 'x' })), true],
    ['a body that is cut', { ...sse(frames(start, ...text('Hello'), ...end('end_turn'))), cutAfterBytes: 300 }, true],
    ['an empty body', { body: '', headers: { 'content-type': 'application/json' } }, false],
    ['another JSON', { body: '{"ok":true}', headers: { 'content-type': 'application/json' } }, false],
  ])('BR-018 %s is a failure of the upstream', async (_, reply, stream) => {
    const models = await modelOf(reply)
    expect(await faultOf(answerOf(models, chatRequest({ stream })))).toMatchObject({
      failure: 'upstream',
      retryable: true,
    })
    await models.close()
  })
})

test('BR-020 the events are the same when every byte comes alone', async () => {
  const reply: ScriptedReply = {
    says: [
      { thinking: 'é', signature: 's' },
      { text: '"quoted" 😀 漢字' },
      { call: { id: 'a', name: 'f', input: { cmd: 'echo "x" | tr ; &&' } } },
    ],
  }
  const models = await modelOf(reply, { ...reply, byteByByte: true })
  const request = streamed({ tools: [{ type: 'function', function: { name: 'f' } }] })
  const whole = await eventsOf(models, request)
  const bytewise = await eventsOf(models, request)
  const sameId = (events: ModelEvent[]) =>
    events.map((event) => (event.type === 'start' ? { ...event, id: '', raw: undefined } : event))
  expect(sameId(bytewise)).toEqual(sameId(whole))
  await models.close()
})

test('BR-015 signatures and opaque thinking come back to the vendor as they were', async () => {
  const first = callsTools([{ id: 't', name: 'f', input: {} }], {
    first: [{ thinking: 'plan', signature: 'sig+/=' }, { redacted: 'opaque' }],
  })
  const models = await modelOf(first, { says: [{ text: 'done' }] })
  const request = streamed({
    tools: [{ type: 'function', function: { name: 'f' } }],
    thinking: { type: 'enabled', budget_tokens: 2000 },
  })
  const answer = await answerOf(models, request)
  const parts = answer.items.flatMap((item): Part[] => {
    if (item.type !== 'block') return []
    if (item.start.kind === 'thinking') return [{ type: 'thinking', text: item.text, signature: item.signature ?? '' }]
    if (item.start.kind === 'redacted_thinking') return [{ type: 'redacted_thinking', data: item.start.data }]
    return item.start.kind === 'call'
      ? [{ type: 'call', id: item.start.id, name: item.start.name, arguments: item.text }]
      : []
  })
  await answerOf(models, {
    ...request,
    messages: [
      ...request.messages,
      { role: 'assistant', parts },
      { role: 'tool', parts: [{ type: 'result', callId: 't', text: 'x', isError: false }] },
    ],
  })
  expect(fake?.refusals).toEqual([])
  const sent = fake?.requests[1]?.body as { messages: { content: JsonObject[] }[] }
  expect(sent.messages[1]?.content).toEqual([
    { type: 'thinking', thinking: 'plan', signature: 'sig+/=' },
    { type: 'redacted_thinking', data: 'opaque' },
    { type: 'tool_use', id: 't', name: 'f', input: {} },
  ])
  expect(fake?.requests[1]?.body.thinking).toEqual({ type: 'enabled', budget_tokens: 2000 })
  await models.close()
})

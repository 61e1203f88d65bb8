import { fakeAnthropic, says } from '@tollgate/testing'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { collectAnswer } from '../../src/conversation/collect.ts'
import type { ModelEvent } from '../../src/conversation/events.ts'
import type { Tell } from '../../src/conversation/tell.ts'
import type { JsonObject, Message, ModelRequest } from '../../src/conversation/turn.ts'
import { parseMessages } from '../../src/dialects/messages/parse.ts'
import { renderMessages } from '../../src/dialects/messages/render.ts'
import { messagesStream } from '../../src/dialects/messages/stream.ts'
import { withHints } from '../../src/loop/hints.ts'
import { messagesReader } from '../../src/models/anthropic/events.ts'
import { forwardMessages } from '../../src/models/anthropic/forward.ts'
import { streamed, whole } from '../../src/models/anthropic/reply.ts'
import { messagesBody } from '../../src/models/anthropic/request.ts'
import { chatReader } from '../../src/models/openai-chat/events.ts'
import { streamed as chatStreamed } from '../../src/models/openai-chat/reply.ts'
import { chatBody } from '../../src/models/openai-chat/request.ts'
import { canForward } from '../../src/models/provider.ts'
import { eventsIn, mistakesIn } from '../conversation/messages-events.ts'
import { type Telling, toldBy } from '../told.ts'
import {
  answerOf,
  origin as chatOrigin,
  chunk,
  faultOf,
  modelsAt,
  replyOf,
  saidIn,
  silent,
  sinkOf,
  sse,
} from './asking.ts'

const origin = { ...chatOrigin, wire: 'anthropic' as const }
const user = (content: unknown): JsonObject => ({ role: 'user', content }) as JsonObject
const assistant = (content: unknown): JsonObject => ({ role: 'assistant', content }) as JsonObject

/** A request as the loop would make it of a Messages body. */
function asked(body: JsonObject = {}, changes: Partial<ModelRequest> = {}): ModelRequest {
  const { model = 'up:m', max_tokens = 10, messages: said = [user('hi')] } = body
  const turn = parseMessages({ ...body, model, max_tokens, messages: said }, 100, {})
  const { messages, tools, toolChoice, parallelToolCalls, stream } = turn
  return { turn, model: 'm', messages, tools, toolChoice, parallelToolCalls, stream, ...changes }
}
const settings = { defaultMaxTokens: 100, replayUnsigned: false }
const own = (body: JsonObject = {}, changes: Partial<ModelRequest> = {}, replayUnsigned = false) =>
  messagesBody(asked(body, changes), { ...settings, replayUnsigned })
const history = (...messages: JsonObject[]) => own({ messages }).messages as JsonObject[]

describe('the body for an upstream that speaks the client’s dialect', () => {
  test('T-26 T-33 is what the client sent, to the byte, but for the model’s name', () => {
    const body = {
      thinking: { type: 'enabled', budget_tokens: 2_048 },
      model: 'up:m',
      max_tokens: 4_000,
      system: [{ type: 'text', text: 'a', cache_control: { type: 'ephemeral' } }],
      messages: [
        user([{ type: 'text', text: 'x', cache_control: { type: 'ephemeral', ttl: '1h' } }]),
        assistant([
          { type: 'thinking', thinking: 'hm', signature: 's' },
          { type: 'text', text: 'A', citations: [{ type: 'web_search_result_location', url: 'u' }] },
          { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'q' } },
          { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [{ encrypted_content: 'e' }] },
          { type: 'tool_use', id: 'toolu_1', name: 'f', input: {}, caller: { type: 'direct' } },
        ]),
        user([
          {
            type: 'tool_result',
            tool_use_id: 'toolu_1',
            content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } }],
            cache_control: { type: 'ephemeral' },
          },
          { type: 'text', text: 'go on' },
        ]),
        { role: 'system', content: 'Mind the gap.' },
      ],
      tools: [
        { name: 'f', input_schema: { type: 'object' }, cache_control: { type: 'ephemeral' }, defer_loading: true },
        { type: 'web_search_20250305', name: 'web_search', max_uses: 5 },
      ],
      tool_choice: { type: 'auto', disable_parallel_tool_use: true, brand_new: 1 },
      metadata: { user_id: 'u', other: 1 },
      context_management: { edits: [{ type: 'clear_tool_uses_20250919' }] },
      output_config: { effort: 'high' },
      brand_new: { a: [1, 2.5, null] },
      stream: true,
    } as JsonObject
    expect(JSON.stringify(own(body))).toBe(JSON.stringify({ ...body, model: 'm' }))
  })

  test('T-29 hints stand before the client’s system, whatever form it has, and what the loop says after it', () => {
    const hinted = (body: JsonObject, ...added: Message[]) => {
      const request = asked(body)
      return messagesBody(
        { ...request, messages: [...withHints(request.messages, 'HINT', 'prepend'), ...added] },
        settings,
      )
    }
    const cached = { type: 'text', text: 'a', cache_control: { type: 'ephemeral' } }
    expect(hinted({}).system).toBe('HINT')
    expect(hinted({ system: 'Be brief.' }).system).toBe('HINT\n\nBe brief.')
    expect(hinted({ system: [cached] }).system).toEqual([{ type: 'text', text: 'HINT' }, cached])
    const last: Message = { role: 'system', parts: [{ type: 'text', text: 'LAST' }] }
    expect(hinted({ system: [cached] }, last).system).toEqual([
      { type: 'text', text: 'HINT' },
      cached,
      { type: 'text', text: 'LAST' },
    ])
    expect(hinted({ system: 'Be brief.' }, last)).toMatchObject({
      system: 'HINT\n\nBe brief.\n\nLAST',
      messages: [user('hi')],
    })
  })

  test('BR-015 L-18 what a round added stands behind it, thinking with its signature', () => {
    const messages: Message[] = [
      ...asked().messages,
      {
        role: 'assistant',
        parts: [
          { type: 'thinking', text: 'A', signature: 's1' },
          { type: 'text', text: 'x' },
          { type: 'call', id: 'toolu_1', name: 'web_search', arguments: '{"query":"q"}' },
        ],
      },
      { role: 'tool', parts: [{ type: 'result', callId: 'toolu_1', text: '[1] found', isError: false }] },
    ]
    expect(own({}, { messages }).messages).toEqual([
      user('hi'),
      assistant([
        { type: 'thinking', thinking: 'A', signature: 's1' },
        { type: 'text', text: 'x' },
        { type: 'tool_use', id: 'toolu_1', name: 'web_search', input: { query: 'q' } },
      ]),
      user([{ type: 'tool_result', tool_use_id: 'toolu_1', content: '[1] found' }]),
    ])
  })

  const use = (id: string) => ({ type: 'tool_use', id, name: 'f', input: {} })
  const result = (id: string, content = id) => ({ type: 'tool_result', tool_use_id: id, content })
  const missing = (id: string) => ({ ...result(id, '[tool error] no result available'), is_error: true })

  test('BR-050 BR-010 a call without a result gets one, a result without a call goes, and results come first', () => {
    expect(
      history(user('x'), assistant([use('a'), use('b')]), user([result('a'), { type: 'text', text: 'y' }])),
    ).toEqual([
      user('x'),
      assistant([use('a'), use('b')]),
      user([result('a'), missing('b'), { type: 'text', text: 'y' }]),
    ])
    expect(history(user('x'), assistant([use('a')]), user([{ type: 'text', text: 'y' }, result('a')]))[2]).toEqual(
      user([result('a'), { type: 'text', text: 'y' }]),
    )
    expect(history(user('x'), assistant([use('a')]), user('y'))[2]).toEqual(
      user([missing('a'), { type: 'text', text: 'y' }]),
    )
    expect(history(user([result('zzz'), { type: 'text', text: 'x' }]))).toEqual([user([{ type: 'text', text: 'x' }])])
    expect(history(user('x'), assistant([use('a')]), user([result('a'), result('a', 'again')]))[2]).toEqual(
      user([result('a')]),
    )
    expect(history(user('x'), assistant([use('a')]), assistant('z'))).toEqual([
      user('x'),
      assistant([use('a')]),
      user([missing('a')]),
      assistant('z'),
    ])
    expect(history(user('x'), assistant([use('a')]), { role: 'system', content: 's' }, user([result('a')]))).toEqual([
      user('x'),
      assistant([use('a')]),
      user([result('a')]),
      { role: 'system', content: 's' },
    ])
  })

  test('BR-056 a call of the vendor’s own tools that was left without a result goes, but for one to go on from', () => {
    const paused = assistant([
      { type: 'text', text: 'a' },
      { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} },
    ])
    expect(history(user('x'), paused)).toEqual([user('x'), paused])
    expect(history(user('x'), paused, user('y'))).toEqual([
      user('x'),
      assistant([{ type: 'text', text: 'a' }]),
      user('y'),
    ])
  })

  test('BR-017 unsigned thinking goes to the compatible server that may want it, and never to the vendor', () => {
    const unsigned = { type: 'thinking', thinking: 'hm', signature: '' }
    const thinking = { type: 'enabled', budget_tokens: 1_024 }
    const messages = [user('x'), assistant([unsigned, use('a')]), user([result('a')])]
    expect(own({ messages, thinking }, {}, true)).toMatchObject({ messages, thinking })
    const vendor = own({ messages, thinking })
    expect(vendor.messages).toEqual([user('x'), assistant([use('a')]), user([result('a')])])
    expect(vendor).not.toHaveProperty('thinking')
  })

  test('T-27 T-28 L-08 a choice that the plan changed is written anew, and falls with the last tool', () => {
    const tools = [{ type: 'otari_web_search' }, { name: 'f', input_schema: { type: 'object' } }]
    const searching = {
      kind: 'function',
      name: 'web_search',
      description: 'd',
      parameters: {},
      raw: { name: 'web_search' },
    } as const
    const body = { tools, tool_choice: { type: 'any', disable_parallel_tool_use: true } }
    const f = asked(body).tools[1]!
    expect(own(body, { tools: [searching, f], toolChoice: { type: 'auto' } })).toMatchObject({
      tools: [{ name: 'web_search' }, tools[1]],
      tool_choice: { type: 'auto', disable_parallel_tool_use: true },
    })
    const bare = own(body, { tools: [], toolChoice: undefined })
    expect(bare).not.toHaveProperty('tools')
    expect(bare).not.toHaveProperty('tool_choice')
    expect(own({ tool_choice: { type: 'none' } })).toHaveProperty('tool_choice')
  })
})

describe('the body for an OpenAI upstream', () => {
  const bodyOf = (body: JsonObject) => chatBody(asked(body))

  test('holds the conversation, its system first, results before what else was said', () => {
    const body = bodyOf({
      system: 'Be brief.',
      stop_sequences: ['END'],
      metadata: { user_id: 'ann' },
      tool_choice: { type: 'any', disable_parallel_tool_use: true },
      tools: [{ name: 'f', description: 'd', input_schema: { type: 'object' }, cache_control: { type: 'ephemeral' } }],
      messages: [
        user([
          { type: 'text', text: 'look' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AA==' } },
        ]),
        assistant([
          { type: 'thinking', thinking: 'hm', signature: 's' },
          { type: 'text', text: 'ok' },
          { type: 'tool_use', id: 't1', name: 'f', input: { a: 1 } },
        ]),
        user([
          { type: 'text', text: 'go on' },
          { type: 'tool_result', tool_use_id: 't1', is_error: true, content: 'ENOENT' },
        ]),
      ],
    })
    expect(body).toEqual({
      model: 'm',
      max_tokens: 10,
      stop: ['END'],
      user: 'ann',
      messages: [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'look' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
          ],
        },
        {
          role: 'assistant',
          content: 'ok',
          tool_calls: [{ id: 't1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }],
        },
        { role: 'tool', tool_call_id: 't1', content: 'Error: ENOENT' },
        { role: 'user', content: 'go on' },
      ],
      tools: [{ type: 'function', function: { name: 'f', description: 'd', parameters: { type: 'object' } } }],
      tool_choice: 'required',
      parallel_tool_calls: false,
    })
  })

  const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false }
  test.each<[JsonObject, JsonObject]>([
    [{ cache_control: { type: 'ephemeral' } }, {}],
    [{ thinking: { type: 'adaptive' } }, {}],
    [{ thinking: { type: 'disabled' } }, {}],
    [{ thinking: { type: 'enabled', budget_tokens: 1_024 } }, { reasoning_effort: 'low' }],
    [{ thinking: { type: 'enabled', budget_tokens: 8_000 } }, { reasoning_effort: 'medium' }],
    [{ thinking: { type: 'enabled', budget_tokens: 32_000 } }, { reasoning_effort: 'high' }],
    [
      { thinking: { type: 'enabled', budget_tokens: 32_000 }, output_config: { effort: 'low' } },
      { reasoning_effort: 'low' },
    ],
    [
      { output_config: { effort: 'max' }, thinking: { type: 'enabled', budget_tokens: 9 } },
      { reasoning_effort: 'xhigh' },
    ],
    [{ service_tier: 'auto' }, {}],
    [{ service_tier: 'standard_only' }, { service_tier: 'default' }],
    [{ speed: 'standard', inference_geo: 'global', top_k: null }, {}],
    [{ context_management: { edits: [{ type: 'clear_tool_uses_20250919' }], more: 1 } }, {}],
    [
      { output_config: { format: { type: 'json_schema', schema } } },
      { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema, strict: true } } },
    ],
    [
      { output_format: { type: 'json_schema', schema: { ...schema, required: [] } } },
      {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'answer', schema: { ...schema, required: [] }, strict: false },
        },
      },
    ],
  ])('BR-051 %j becomes %j', (members, translated) => {
    const { model: _m, messages: _s, max_tokens: _t, ...rest } = bodyOf(members)
    expect(rest).toEqual(translated)
  })

  test.each<[string, JsonObject]>([
    ['top_k', { top_k: 5 }],
    ['container', { container: 'container_1' }],
    ['speed', { speed: 'fast' }],
    ['inference_geo', { inference_geo: 'us' }],
    ['service_tier', { service_tier: 'flex' }],
    ['thinking', { thinking: { type: 'brand_new' } }],
    ['output_config.effort', { output_config: { effort: 'huge' } }],
    ['output_config', { output_config: { task_budget: { total: 5 } } }],
    ['output_config.format', { output_config: { format: { type: 'grammar' } } }],
    ['output_format', { output_format: 5 }],
    ['brand_new', { brand_new: 1 }],
    ['constructor', { constructor: 1 }],
  ])('%s is refused by name where it asks for something', (name, members) => {
    expect(() => bodyOf(members)).toThrowError(
      expect.objectContaining({ failure: 'invalid_request', message: expect.stringContaining(`'${name}'`) }),
    )
  })

  test('BR-050 a call without a result gets one, a result without a call goes', () => {
    const use = { type: 'tool_use', id: 'a', name: 'f', input: {} }
    const stray = { type: 'tool_result', tool_use_id: 'zzz', content: 'x' }
    const { messages } = bodyOf({ messages: [user('x'), assistant([use]), user([stray, { type: 'text', text: 'y' }])] })
    expect((messages as JsonObject[]).slice(1)).toEqual([
      expect.objectContaining({ role: 'assistant' }),
      { role: 'tool', tool_call_id: 'a', content: '[tool error] no result available' },
      { role: 'user', content: 'y' },
    ])
  })
})

const frames = (...events: JsonObject[]): string =>
  events.map((event) => `event: ${String(event.type)}\ndata: ${JSON.stringify(event)}\n\n`).join('')
const head = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude',
  content: [],
  stop_reason: null,
  stop_sequence: null,
  usage: { input_tokens: 12, cache_read_input_tokens: 3, output_tokens: 1, brand_new: { a: 1 } },
  container: null,
}
/** A stream with everything in it that only its own dialect has a place for. */
const rich = frames(
  { type: 'message_start', message: head },
  { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } },
  { type: 'ping' },
  { type: 'content_block_delta', index: 0, delta: { type: 'thinking_delta', thinking: 'hm é😀' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'signature_delta', signature: 's1' } },
  { type: 'content_block_stop', index: 0 },
  {
    type: 'content_block_start',
    index: 1,
    content_block: { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} },
  },
  { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '{"query":' } },
  { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '"q"}' } },
  { type: 'content_block_stop', index: 1 },
  {
    type: 'content_block_start',
    index: 2,
    content_block: {
      type: 'web_search_tool_result',
      tool_use_id: 'srvtoolu_1',
      content: [{ type: 'web_search_result', url: 'u', encrypted_content: 'e' }],
    },
  },
  { type: 'content_block_stop', index: 2 },
  { type: 'content_block_start', index: 3, content_block: { type: 'text', text: '', citations: [] } },
  {
    type: 'content_block_delta',
    index: 3,
    delta: { type: 'citations_delta', citation: { type: 'web_search_result_location', url: 'u' } },
  },
  {
    type: 'content_block_delta',
    index: 3,
    delta: { type: 'text_delta', text: 'say "message_stop" and "error":1 [DONE]\n\n' },
  },
  { type: 'content_block_stop', index: 3 },
  { type: 'content_block_start', index: 4, content_block: { type: 'compaction', content: null } },
  { type: 'content_block_delta', index: 4, delta: { type: 'compaction_delta', content: 'summary' } },
  { type: 'content_block_stop', index: 4 },
  {
    type: 'content_block_start',
    index: 5,
    content_block: { type: 'tool_use', id: 'toolu_1', name: 'f', input: {}, caller: { type: 'direct' } },
  },
  { type: 'content_block_delta', index: 5, delta: { type: 'input_json_delta', partial_json: '{"a":"é😀"}' } },
  { type: 'content_block_stop', index: 5 },
  {
    type: 'message_delta',
    delta: { stop_reason: 'tool_use', stop_sequence: null, container: { id: 'c1' } },
    usage: { output_tokens: 9, iterations: [{ type: 'message' }] },
    context_management: { applied_edits: [] },
  },
  { type: 'message_stop' },
)
const DONE = 'event: done\ndata: {}\n\n'
const FAILED =
  'event: error\ndata: {"type":"error","error":{"type":"api_error","message":"An error occurred during streaming"}}\n\n'

async function forward(chunks: (string | Buffer)[], body: JsonObject = { stream: true }, mediaType?: string) {
  const to = sinkOf()
  const reply = replyOf(chunks, mediaType)
  const forwarded = await forwardMessages(reply, asked(body), to.sink, origin, silent)
  return { ...to, forwarded, settled: reply.settled }
}

describe('a stream through the fast lane', () => {
  test('R-03 R-63 goes out byte for byte but for the model’s name, and ends with done', async () => {
    const { text, writes, head: begun, forwarded, settled } = await forward([rich])
    expect(text()).toBe(rich.replace('"claude"', '"up:m"') + DONE)
    expect(writes.at(-1)?.toString()).toBe(DONE)
    expect(begun()).toMatchObject({ status: 200, headers: { 'content-type': 'text/event-stream; charset=utf-8' } })
    expect(forwarded).toMatchObject({
      tokens: { input: 12, output: 9, cacheRead: 3, cacheWrite: 0, reasoning: 0 },
      finish: 'tool_calls',
      fault: undefined,
    })
    expect(settled()).toBe(true)
  })

  test('BR-020 what goes out is the same wherever the bytes are cut, with any line end', async () => {
    for (const text of [rich, rich.replaceAll('\n', '\r\n')]) {
      const bytes = Buffer.from(text)
      const uncut = (await forward([bytes])).text()
      expect((await forward(Array.from(bytes, (byte) => Buffer.of(byte)))).text()).toBe(uncut)
      await fc.assert(
        fc.asyncProperty(fc.uniqueArray(fc.nat(bytes.length), { maxLength: 8 }), async (cuts) => {
          const ends = [...cuts.sort((a, b) => a - b), bytes.length]
          const chunks = ends.map((end, i) => bytes.subarray(ends[i - 1] ?? 0, end))
          expect((await forward(chunks)).text()).toBe(uncut)
        }),
        { numRuns: 25 },
      )
    }
  })

  test('BR-031 BR-035 an error that comes first is thrown with its meaning, a beginning alone is no answer', async () => {
    const error = { type: 'error', error: { type: 'rate_limit_error', message: 'slow down' } }
    const begun = { type: 'message_start', message: head }
    for (const events of [[error], [begun, { type: 'ping' }, error]]) {
      expect(await faultOf(forward([frames(...events)]))).toMatchObject({
        failure: 'rate_limited',
        message: 'slow down',
      })
    }
    for (const text of ['', ': ping\n\n', frames(begun), frames({ type: 'ping' })])
      expect(await faultOf(forward([text]))).toMatchObject({ failure: 'upstream' })
    expect(await faultOf(forward(['<html>login</html>'], { stream: true }, 'text/html'))).toMatchObject({
      failure: 'upstream',
    })
  })

  test('R-62 BR-001 BR-033 an error after words, or an end amid them, ends it with an error event', async () => {
    const cut = rich.slice(0, rich.indexOf('event: content_block_stop'))
    for (const more of [
      '',
      frames({ type: 'error', error: { type: 'overloaded_error', message: 'busy' } }),
      'event: conte',
    ]) {
      const { text, forwarded } = await forward([cut + more])
      expect(text()).toBe(cut.replace('"claude"', '"up:m"') + FAILED)
      expect(forwarded.fault?.failure).toMatch(/upstream|unavailable/)
      expect(forwarded.tokens).toMatchObject({ input: 12 })
    }
  })

  test('BR-023 a turn with a call ends for it, and a complete one without its last frames gets them', async () => {
    const said = rich.replace('"stop_reason":"tool_use"', '"stop_reason":"end_turn"')
    expect((await forward([said])).text()).toContain('"stop_reason":"tool_use"')
    const short = rich.slice(0, rich.indexOf('event: message_stop'))
    for (const more of ['', 'data: [DONE]\n\n'])
      expect((await forward([short + more])).text()).toBe(rich.replace('"claude"', '"up:m"') + DONE)
  })

  test('a server that names no events and counts nothing is put right for clients', async () => {
    const { usage: _, ...bare } = head
    const nameless = frames(
      { type: 'message_start', message: bare },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'x'.repeat(400) } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' } },
      { type: 'message_stop' },
    ).replace(/event: \w+\n/g, '')
    const { text, forwarded } = await forward([nameless])
    expect(text().match(/^event: \w+$/gm)).toHaveLength(7)
    expect(text()).toContain('"usage":{"input_tokens":0,"output_tokens":0}')
    expect(forwarded.tokens).toBeUndefined()
    expect(forwarded.outputCharacters).toBeGreaterThan(350)
    expect(forwarded.outputCharacters).toBeLessThan(600)
  })

  test('is open to Messages turns over this wire that can come to no pause, and to nothing else', () => {
    const models = modelsAt({ url: 'http://127.0.0.1:9' }, { type: 'anthropic-compatible' })
    const { provider } = models.resolve('up:m')
    expect(canForward(provider, asked().turn)).toBe(true)
    expect(canForward(provider, { ...asked().turn, dialect: 'chat' })).toBe(false)
    expect(canForward(provider, asked({ tools: [{ type: 'web_search_20250305', name: 'web_search' }] }).turn)).toBe(
      false,
    )
  })
})

/** The same answer, not streamed. */
const wholeAnswer = {
  ...head,
  container: { id: 'c1' },
  content: [
    { type: 'thinking', thinking: 'hm é😀', signature: 's1' },
    { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'q' } },
    {
      type: 'web_search_tool_result',
      tool_use_id: 'srvtoolu_1',
      content: [{ type: 'web_search_result', url: 'u', encrypted_content: 'e' }],
    },
    {
      type: 'text',
      text: 'say "message_stop" and "error":1 [DONE]\n\n',
      citations: [{ type: 'web_search_result_location', url: 'u' }],
    },
    { type: 'compaction', content: 'summary' },
    { type: 'tool_use', id: 'toolu_1', name: 'f', input: { a: 'é😀' }, caller: { type: 'direct' } },
  ],
  stop_reason: 'tool_use',
  usage: { ...head.usage, output_tokens: 9, iterations: [{ type: 'message' }] },
  context_management: { applied_edits: [] },
}

describe('an answer of an upstream of the same dialect, read and written again', () => {
  const json = 'application/json'
  const turn = asked({ stream: true }).turn
  const reading = (chunks: (string | Buffer)[]) => (tell: Tell<ModelEvent>) =>
    streamed(replyOf(chunks), messagesReader(origin, silent), origin, tell)

  test('has every block and member that came, streamed or not, whichever way it came', async () => {
    const answers = [
      reading([rich]),
      (tell: Tell<ModelEvent>) =>
        whole(replyOf([JSON.stringify(wholeAnswer)], json), messagesReader(origin, silent), origin, tell),
    ]
    for (const answer of answers)
      expect(renderMessages(await collectAnswer(answer), turn)).toEqual({ ...wholeAnswer, model: 'up:m' })

    const writer = messagesStream(turn)
    let text = ''
    for (const event of await toldBy(reading([rich]))) text += writer.push(event)
    const rewritten = reading([text + writer.end()])
    expect(renderMessages(await collectAnswer(rewritten), turn)).toEqual({ ...wholeAnswer, model: 'up:m' })
  })

  test('BR-020 is the same stream for the client wherever the upstream’s bytes are cut, over either wire', async () => {
    const said = (delta: JsonObject, finish: string | null = null) => chunk(delta, finish)
    const chat = sse(
      said({ role: 'assistant', content: '' }),
      said({ reasoning_content: 'hm é' }),
      said({ content: 'say 😀' }),
      said({ tool_calls: [{ index: 0, id: 'c0', type: 'function', function: { name: 'f', arguments: '{"a":' } }] }),
      said({ tool_calls: [{ index: 1, id: 'c1', type: 'function', function: { name: 'g', arguments: '{"b":"é' } }] }),
      said({
        tool_calls: [
          { index: 0, function: { arguments: '1}' } },
          { index: 1, function: { arguments: '"}' } },
        ],
      }),
      said({}, 'tool_calls'),
      '[DONE]',
    )
    const written = async (read: Telling<ModelEvent>): Promise<string> => {
      const writer = messagesStream(turn)
      let text = ''
      for (const event of await toldBy(read)) text += writer.push(event)
      return (text + writer.end()).replace(/msg_[0-9a-f]{24}/, 'msg_x')
    }
    const readers = {
      [rich]: reading,
      [chat]: (chunks: Buffer[]) => (tell: Tell<ModelEvent>) =>
        chatStreamed(replyOf(chunks), chatReader(chatOrigin, silent), chatOrigin, tell),
    }
    for (const [text, read] of Object.entries(readers)) {
      for (const bytes of [Buffer.from(text), Buffer.from(text.replaceAll('\n', '\r\n'))]) {
        const uncut = await written(read([bytes]))
        expect(mistakesIn(eventsIn(uncut))).toEqual([])
        for (let at = 1; at < bytes.length; at += 7)
          expect(await written(read([bytes.subarray(0, at), bytes.subarray(at)]))).toBe(uncut)
        expect(await written(read(Array.from(bytes, (byte) => Buffer.of(byte))))).toBe(uncut)
      }
    }
  })

  test('goes through the fast lane when it is not streamed, and whichever way it came when that was not asked', async () => {
    const body = JSON.stringify(wholeAnswer)
    const { text, head: begun, forwarded } = await forward([body], {}, json)
    expect(text()).toBe(body.replace('"claude"', '"up:m"'))
    expect(begun()).toMatchObject({ status: 200, headers: { 'content-length': String(Buffer.byteLength(text())) } })
    expect(forwarded).toMatchObject({ tokens: { input: 12, output: 9, cacheRead: 3 }, finish: 'tool_calls' })

    expect(JSON.parse((await forward([rich], {}, 'text/event-stream')).text())).toEqual({
      ...wholeAnswer,
      model: 'up:m',
    })
    const converted = (await forward([body], { stream: true }, json)).text()
    expect(converted.endsWith(`event: message_stop\ndata: {"type":"message_stop"}\n\n${DONE}`)).toBe(true)

    for (const broken of ['', '[]', '{"type":"message"}', '{"type":"error","error":{"type":"api_error"}}'])
      expect(await faultOf(forward([broken], {}, json))).toMatchObject({ failure: 'upstream' })
    const ended = await forward(
      [JSON.stringify({ ...wholeAnswer, stop_reason: 'end_turn', usage: undefined })],
      {},
      json,
    )
    expect(JSON.parse(ended.text())).toMatchObject({ stop_reason: 'tool_use', usage: { output_tokens: 0 } })
  })
})

test('headers by which the client says which form of the API it speaks reach the provider, its key does not', async () => {
  const fake = await fakeAnthropic([says('a'), says('b')], { apiKey: 'sk-right' })
  const models = modelsAt(fake, { type: 'anthropic', apiKey: 'sk-right' })
  const request = asked()
  const headers = { 'anthropic-beta': 'x-2025-01-01', 'anthropic-version': '2026-10-21' }
  expect(saidIn(await answerOf(models, { ...request, turn: { ...request.turn, headers } }))).toHaveLength(1)
  await answerOf(models, request)
  expect(fake.requests.map(({ headers: sent }) => [sent['anthropic-version'], sent['anthropic-beta']])).toEqual([
    ['2026-10-21', 'x-2025-01-01'],
    ['2023-06-01', undefined],
  ])
  await models.close()
  await fake.close()
})

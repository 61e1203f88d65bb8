import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { answerCollector } from '../../src/conversation/collect.ts'
import type { ModelEvent } from '../../src/conversation/events.ts'
import type { JsonObject } from '../../src/conversation/turn.ts'
import { chatReader } from '../../src/models/openai-chat/events.ts'
import { streamed, whole } from '../../src/models/openai-chat/reply.ts'
import { UpstreamFault } from '../../src/models/upstream-fault.ts'
import { toldBy } from '../told.ts'
import { chunk, faultOf, origin, replyOf, saidIn, silent, sse } from './asking.ts'

async function read(chunks: (string | Buffer)[]): Promise<ModelEvent[]> {
  return toldBy((tell) => streamed(replyOf(chunks), chatReader(origin, silent), origin, tell))
}

async function readWhole(body: JsonObject): Promise<ModelEvent[]> {
  const reply = replyOf([JSON.stringify(body)], 'application/json')
  return toldBy((tell) => whole(reply, chatReader(origin, silent), origin, tell))
}

function answerOf(events: ModelEvent[]) {
  const collector = answerCollector()
  for (const event of events) collector.push(event)
  return collector.answer()
}

const call = (members: JsonObject) => chunk({ tool_calls: [members as never] })
const finishOf = (events: ModelEvent[]) => answerOf(events).finish

/** Every block opens once, speaks only while it is open, and closes once. */
function expectWellFormed(events: ModelEvent[]): void {
  const state = new Map<number, 'open' | 'closed'>()
  for (const event of events) {
    if (event.type === 'open') expect(state.get(event.index)).toBe(undefined)
    if (event.type === 'delta' || event.type === 'signature' || event.type === 'close')
      expect(state.get(event.index)).toBe('open')
    if (event.type === 'open') state.set(event.index, 'open')
    if (event.type === 'close') state.set(event.index, 'closed')
  }
  expect([...state.values()].every((one) => one === 'closed')).toBe(true)
  expect([...state.keys()]).toEqual([...state.keys()].map((_, i) => i))
  expect(events.at(-1)?.type).toBe('finish')
}

describe('a Chat stream as events', () => {
  test('text, usage with cached and reasoning tokens, and a finish come out in order', async () => {
    const usage = {
      prompt_tokens: 1200,
      completion_tokens: 20,
      total_tokens: 1220,
      prompt_tokens_details: { cached_tokens: 1000 },
      completion_tokens_details: { reasoning_tokens: 5 },
    }
    const events = await read([
      sse(
        chunk({ role: 'assistant', content: '' }),
        chunk({ content: 'Hel' }),
        chunk({ content: 'lo' }),
        chunk({}, 'stop'),
        { ...chunk({}), choices: [], usage },
        '[DONE]',
      ),
    ])
    expect(events).toEqual([
      { type: 'start', id: 'c1', created: 1_792_000_000, model: 'm', extra: {} },
      { type: 'open', index: 0, block: { kind: 'text' } },
      { type: 'delta', index: 0, text: 'Hel' },
      { type: 'delta', index: 0, text: 'lo' },
      { type: 'close', index: 0 },
      {
        type: 'usage',
        tokens: { input: 200, output: 20, cacheRead: 1000, cacheWrite: 0, reasoning: 5 },
        raw: { dialect: 'chat', value: usage },
      },
      { type: 'finish', reason: 'stop', raw: 'stop' },
    ])
  })

  test.each<[string, JsonObject, { input: number; cacheRead: number; cacheWrite: number }]>([
    ['none', { prompt_tokens: 9 }, { input: 9, cacheRead: 0, cacheWrite: 0 }],
    ['beside the details', { prompt_tokens: 9, prompt_cache_hit_tokens: 4 }, { input: 5, cacheRead: 4, cacheWrite: 0 }],
    ['on top', { prompt_tokens: 9, cached_tokens: 9 }, { input: 0, cacheRead: 9, cacheWrite: 0 }],
    [
      'written',
      { prompt_tokens: 9, prompt_tokens_details: { cached_tokens: 2, cache_write_tokens: 3 } },
      { input: 4, cacheRead: 2, cacheWrite: 3 },
    ],
    [
      'more than there is',
      { prompt_tokens: 9, prompt_tokens_details: { cached_tokens: 12 } },
      { input: 0, cacheRead: 9, cacheWrite: 0 },
    ],
    [
      'nonsense',
      { prompt_tokens: 9, prompt_tokens_details: { cached_tokens: -1 } },
      { input: 9, cacheRead: 0, cacheWrite: 0 },
    ],
  ])('BR-147 input excludes cached tokens: %s', async (_, usage, counts) => {
    const events = await read([
      sse(chunk({ content: 'x' }, 'stop', { usage: { completion_tokens: 1, ...usage } }), '[DONE]'),
    ])
    expect(events.find(({ type }) => type === 'usage')).toMatchObject({ tokens: { ...counts, output: 1 } })
  })

  test('usage is found in the choice and under x_groq too, and the last count holds', async () => {
    for (const last of [
      {
        ...chunk({}),
        choices: [{ index: 0, delta: {}, finish_reason: 'stop', usage: { prompt_tokens: 3, completion_tokens: 4 } }],
      },
      { ...chunk({}, 'stop'), x_groq: { usage: { prompt_tokens: 3, completion_tokens: 4 } } },
      { ...chunk({}, 'stop'), usage: { prompt_tokens: 3, completion_tokens: 4 } },
    ]) {
      const first = { ...chunk({ content: 'a' }), usage: { prompt_tokens: 3, completion_tokens: 1 } }
      const events = await read([sse(first, last, '[DONE]')])
      expect(events.filter(({ type }) => type === 'usage')).toMatchObject([{ tokens: { input: 3, output: 4 } }])
    }
  })

  test('BR-005 fragments of parallel calls that are mixed up come apart again', async () => {
    const events = await read([
      sse(
        call({ index: 0, id: 'c0', type: 'function', function: { name: 'f', arguments: '{"a":' } }),
        call({ index: 1, id: 'c1', type: 'function', function: { name: 'g', arguments: '{"b":' } }),
        call({ index: 0, function: { arguments: '1}' } }),
        call({ index: 1, function: { arguments: '2}' } }),
        chunk({}, 'tool_calls'),
        '[DONE]',
      ),
    ])
    expectWellFormed(events)
    expect(saidIn(answerOf(events))).toEqual([
      { kind: 'call', id: 'c0', name: 'f', text: '{"a":1}' },
      { kind: 'call', id: 'c1', name: 'g', text: '{"b":2}' },
    ])
    expect(finishOf(events).reason).toBe('tool_calls')
  })

  test('BR-007 arguments that come before id and name wait for them', async () => {
    const events = await read([
      sse(
        call({ index: 0, function: { arguments: '{"q":' } }),
        call({ index: 0, id: 'c9', function: { name: 'lookup', arguments: '"x"}' } }),
        chunk({}, 'tool_calls'),
        '[DONE]',
      ),
    ])
    expectWellFormed(events)
    expect(events.find(({ type }) => type === 'open')).toMatchObject({
      block: { kind: 'call', id: 'c9', name: 'lookup' },
    })
    expect(saidIn(answerOf(events))).toEqual([{ kind: 'call', id: 'c9', name: 'lookup', text: '{"q":"x"}' }])
  })

  test('BR-007 a call that never gets a name is an error of the turn', async () => {
    const fault = await faultOf(
      read([sse(call({ index: 0, id: 'c9', function: { arguments: '{}' } }), chunk({}, 'tool_calls'), '[DONE]')]),
    )
    expect(fault).toBeInstanceOf(UpstreamFault)
    expect(fault.status).toBe(502)
    expect(fault.message).toContain('without a name')
  })

  test.each<[string, JsonObject[]]>([
    [
      'without an index, both in one chunk',
      [
        chunk({
          tool_calls: [
            { id: 'a', type: 'function', function: { name: 'f', arguments: '{"n":1}' } },
            { id: 'b', type: 'function', function: { name: 'f', arguments: '{"n":2}' } },
          ],
        }),
      ],
    ],
    [
      'without an index, in two chunks',
      [
        call({ id: 'a', type: 'function', function: { name: 'f', arguments: '{"n":1}' } }),
        call({ id: 'b', type: 'function', function: { name: 'f', arguments: '{"n":2}' } }),
      ],
    ],
    [
      'all numbered 0',
      [
        call({ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{"n":1}' } }),
        call({ index: 0, id: 'b', type: 'function', function: { name: 'f', arguments: '{"n":2}' } }),
      ],
    ],
    [
      'with empty ids later',
      [
        call({ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{"n"' } }),
        call({ index: 0, id: '', function: { name: '', arguments: ':1}' } }),
        call({ index: 1, id: 'b', type: 'function', function: { name: 'f', arguments: '{"n":2}' } }),
      ],
    ],
    [
      'continued by id alone',
      [
        call({ id: 'a', type: 'function', function: { name: 'f', arguments: '{"n"' } }),
        call({ id: 'b', type: 'function', function: { name: 'f', arguments: '{"n":2}' } }),
        call({ id: 'a', function: { arguments: ':1}' } }),
      ],
    ],
    [
      'with arguments as an object',
      [
        call({ index: 0, id: 'a', function: { name: 'f', arguments: { n: 1 } } }),
        call({ index: 1, id: 'b', function: { name: 'f', arguments: { n: 2 } } }),
      ],
    ],
  ])('BR-036 calls %s keep apart', async (_, chunks) => {
    const events = await read([sse(...chunks, chunk({}, 'tool_calls'), '[DONE]')])
    expectWellFormed(events)
    expect(saidIn(answerOf(events))).toEqual([
      { kind: 'call', id: 'a', name: 'f', text: '{"n":1}' },
      { kind: 'call', id: 'b', name: 'f', text: '{"n":2}' },
    ])
  })

  test('BR-036 calls without ids get one each, made once', async () => {
    const events = await read([
      sse(
        chunk({
          tool_calls: [
            { function: { name: 'f', arguments: '{"n":1}' } },
            { function: { name: 'f', arguments: '{"n":' } },
          ],
        }),
        call({ function: { arguments: '2}' } }),
        chunk({}, 'stop'),
        '[DONE]',
      ),
    ])
    const said = saidIn(answerOf(events)) as { id: string; text: string }[]
    expect(said.map(({ text }) => text)).toEqual(['{"n":1}', '{"n":2}'])
    expect(new Set(said.map(({ id }) => id)).size).toBe(2)
    for (const { id } of said) expect(id).toMatch(/^call_[0-9a-f]{24}$/)
  })

  test('BR-036 two calls that came with one id get two', async () => {
    const same = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }
    const events = await readWhole({
      ...chunk({}),
      choices: [
        {
          index: 0,
          message: { role: 'assistant', content: null, tool_calls: [same, same] },
          finish_reason: 'tool_calls',
        },
      ],
    })
    const ids = (saidIn(answerOf(events)) as { id: string }[]).map(({ id }) => id)
    expect(ids[0]).toBe('a')
    expect(new Set(ids).size).toBe(2)
  })

  test('BR-024 a call without arguments is the first block, is closed, and has an empty object', async () => {
    const events = await read([
      sse(
        chunk({ role: 'assistant', content: '' }),
        call({ index: 0, id: 'a', type: 'function', function: { name: 'now' } }),
        chunk({}, 'tool_calls'),
        '[DONE]',
      ),
    ])
    expectWellFormed(events)
    expect(saidIn(answerOf(events))).toEqual([{ kind: 'call', id: 'a', name: 'now', text: '{}' }])
  })

  test.each<[string | null, string, string]>([
    ['tool_calls', 'tool_calls', 'the tool reason'],
    ['stop', 'tool_calls', 'a plain stop'],
    [null, 'tool_calls', 'no reason and [DONE]'],
    ['function_call', 'tool_calls', 'the old word'],
    ['brand_new', 'tool_calls', 'an unknown word'],
    ['length', 'length', 'a cut'],
    ['content_filter', 'content_filter', 'a filter'],
  ])('BR-023 a turn with a call that ends with %s is %s, streamed or not', async (raw, reason) => {
    const tool_calls = [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }]
    const ended = raw === null ? [] : [chunk({}, raw)]
    expect(
      finishOf(await read([sse(chunk({ content: 'ok' }), chunk({ tool_calls }), ...ended, '[DONE]')])).reason,
    ).toBe(reason)
    const message = { role: 'assistant', content: 'ok', tool_calls }
    expect(
      finishOf(await readWhole({ ...chunk({}), choices: [{ index: 0, message, finish_reason: raw }] })).reason,
    ).toBe(reason)
  })

  test.each([
    ['stop', 'stop'],
    ['eos', 'stop'],
    ['max_tokens', 'length'],
    ['model_length', 'length'],
    ['brand_new', 'unknown'],
    ['constructor', 'unknown'],
  ])('BR-026 the reason %s is %s', async (raw, reason) => {
    const events = await read([sse(chunk({ content: 'x' }), chunk({}, raw), '[DONE]')])
    expect(finishOf(events)).toEqual({ reason, raw })
  })

  test('BR-027 a role repeated in each chunk changes nothing', async () => {
    const events = await read([
      sse(
        chunk({ role: 'assistant', content: 'a' }),
        chunk({ role: 'assistant', content: 'b' }),
        chunk({ role: 'assistant' }, 'stop'),
        '[DONE]',
      ),
    ])
    expect(events.filter(({ type }) => type === 'start')).toHaveLength(1)
    expect(saidIn(answerOf(events))).toEqual([{ kind: 'text', text: 'ab' }])
  })

  test('thinking comes as reasoning_content, as reasoning or as content parts, and alternates with text in order', async () => {
    const events = await read([
      sse(
        chunk({ reasoning_content: 'A' }),
        chunk({ content: 'x' }),
        chunk({ reasoning: 'B' }),
        chunk({
          content: [
            { type: 'thinking', thinking: [{ type: 'text', text: 'C' }] },
            { type: 'text', text: 'y' },
          ],
        }),
        chunk({}, 'stop'),
        '[DONE]',
      ),
    ])
    expectWellFormed(events)
    expect(saidIn(answerOf(events))).toEqual([
      { kind: 'thinking', text: 'A' },
      { kind: 'text', text: 'x' },
      { kind: 'thinking', text: 'BC' },
      { kind: 'text', text: 'y' },
    ])
  })

  test('what nobody here knows is kept: members of the answer, of the choice and of the delta, said once', async () => {
    const events = await read([
      sse(
        { ...chunk({}), choices: [], prompt_filter_results: [1] },
        chunk({ content: 'x', annotations: [{ a: 1 }] }, null, {
          system_fingerprint: 'fp',
          citations: ['u'],
          obfuscation: 'zz',
        }),
        chunk({ content: 'y' }, null, { system_fingerprint: 'fp', citations: ['u'] }),
        {
          ...chunk({}),
          citations: ['u', 'v'],
          choices: [{ index: 0, delta: {}, logprobs: { content: [1] }, finish_reason: 'stop' }],
        },
        '[DONE]',
      ),
    ])
    expect(events[0]).toMatchObject({
      type: 'start',
      extra: { prompt_filter_results: [1], system_fingerprint: 'fp', citations: ['u'] },
    })
    expect(events.flatMap((event) => (event.type === 'extra' ? [event.value] : []))).toEqual([
      { choices: [{ index: 0, delta: { annotations: [{ a: 1 }] } }] },
      { citations: ['u', 'v'] },
      { choices: [{ index: 0, logprobs: { content: [1] } }] },
    ])
  })

  test('a call of a custom tool is passed on whole', async () => {
    const events = await read([
      sse(
        call({ index: 0, id: 'k', type: 'custom', custom: { name: 'grep', input: 'fo' } }),
        call({ index: 0, type: 'custom', custom: { input: 'o' } }),
        chunk({}, 'tool_calls'),
        '[DONE]',
      ),
    ])
    expectWellFormed(events)
    expect(saidIn(answerOf(events))).toEqual([
      { kind: 'other', dialect: 'chat', value: { id: 'k', type: 'custom', custom: { name: 'grep', input: 'foo' } } },
    ])
  })
})

describe('a Chat stream that fails', () => {
  test.each<[string, string[], string]>([
    ['zero bytes', [], 'answered with nothing'],
    ['only comments', [': ping\n\n: ping\n\n'], 'answered with nothing'],
    ['only [DONE]', [sse('[DONE]')], 'answered with nothing'],
    ['a role and [DONE]', [sse(chunk({ role: 'assistant', content: '' }), '[DONE]')], 'answered with nothing'],
    ['no choices', [sse({ ...chunk({}), choices: [] }, '[DONE]')], 'answered with nothing'],
    ['no JSON', ['data: <html>\n\n'], 'could not be read'],
    ['a chunk of another shape', [sse({ choices: 'x' })], 'could not be read'],
    ['a body that breaks off', [sse(chunk({ content: 'Hel' }))], 'broke off'],
    [
      'half a last frame',
      [sse(chunk({ content: 'Hel' })), 'data: {"choices":[{"index":0,"delta":{},"finish'],
      'broke off',
    ],
    ['a reason that says error', [sse(chunk({ content: 'Hel' }), chunk({}, 'error'), '[DONE]')], 'broke off'],
    ['a second choice', [sse({ ...chunk({}), choices: [{ index: 1, delta: { content: 'x' } }] })], 'could not be read'],
  ])('BR-018 BR-033 %s is a failure of the upstream', async (_, chunks, text) => {
    const fault = await faultOf(read(chunks))
    expect(fault).toBeInstanceOf(UpstreamFault)
    expect(fault).toMatchObject({ failure: 'upstream', retryable: true })
    expect(fault.message).toContain(text)
  })

  test('a stream without [DONE] is whole when a reason came', async () => {
    expect(finishOf(await read([sse(chunk({ content: 'x' }), chunk({}, 'stop'))])).reason).toBe('stop')
    expect(finishOf(await read([`${sse(chunk({ content: 'x' }, 'stop'))}data: [DONE]`])).reason).toBe('stop')
  })

  test.each<[string, JsonObject, object]>([
    [
      'a code',
      { error: { message: 'slow down', code: 429 } },
      { failure: 'rate_limited', status: 429, message: 'slow down', upstreamStatus: 429 },
    ],
    [
      'a word',
      { error: { message: 'busy', type: 'overloaded_error' } },
      { failure: 'unavailable', status: 503, upstreamStatus: 529 },
    ],
    [
      'a server error',
      { error: { message: 'stack trace', type: 'server_error' } },
      { failure: 'upstream', status: 502, message: 'the model provider failed' },
    ],
    ['a text', { error: 'kaput' }, { failure: 'upstream', status: 502 }],
    [
      'our account',
      { error: { message: 'You exceeded your current quota', code: 'insufficient_quota' } },
      { failure: 'upstream', status: 502, message: "the model provider refused this gateway's account" },
    ],
    [
      'too long a prompt',
      { error: { message: 'maximum context length is 8 tokens', code: 'context_length_exceeded' } },
      { failure: 'invalid_request', status: 400, retryable: false },
    ],
  ])('BR-031 BR-035 an error as the first frame keeps its meaning: %s', async (_, frame, expected) => {
    expect(await faultOf(read([sse(frame)]))).toMatchObject(expected)
    expect(await faultOf(read([`event: error\n${sse(frame)}`]))).toMatchObject(expected)
    expect(await faultOf(readWhole(frame))).toMatchObject(expected)
  })

  test('BR-001 what came before an error has been said', async () => {
    const events: ModelEvent[] = []
    const reply = replyOf([sse(chunk({ content: 'Hel' }), { error: { message: 'busy', type: 'overloaded_error' } })])
    const reading = toldBy((tell) => streamed(reply, chatReader(origin, silent), origin, tell), events)
    await expect(reading).rejects.toMatchObject({ failure: 'unavailable' })
    expect(events.map(({ type }) => type)).toEqual(['start', 'open', 'delta'])
  })
})

describe('an answer that is not streamed', () => {
  test('gives the same blocks as a streamed one', async () => {
    const message = {
      role: 'assistant',
      content: 'Hello',
      refusal: null,
      reasoning_content: 'plan',
      annotations: [],
      tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }],
    }
    const events = await readWhole({
      ...chunk({}),
      object: 'chat.completion',
      choices: [{ index: 0, message, logprobs: null, finish_reason: 'tool_calls' }],
      usage: { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 },
    })
    expectWellFormed(events)
    expect(saidIn(answerOf(events))).toEqual([
      { kind: 'thinking', text: 'plan' },
      { kind: 'text', text: 'Hello' },
      { kind: 'call', id: 'a', name: 'f', text: '{"a":1}' },
    ])
    expect(answerOf(events).usage?.tokens).toMatchObject({ input: 3, output: 4 })
  })

  test.each([
    ['an empty body', ''],
    ['an HTML page', '<html>login</html>'],
    ['another JSON', '{"ok":true}'],
    ['no choices', '{"choices":[]}'],
  ])('BR-018 %s is a failure of the upstream', async (_, body) => {
    const reply = replyOf([body], 'application/json')
    const reading = toldBy((tell) => whole(reply, chatReader(origin, silent), origin, tell))
    expect(await faultOf(reading)).toMatchObject({ failure: 'upstream' })
  })
})

const STREAM = Buffer.from(
  sse(
    { error: null, ...chunk({ role: 'assistant', content: '' }) },
    chunk({ reasoning_content: 'hm 漢' }),
    chunk({ content: 'a "quoted" 😀 | ; && \\ text' }),
    call({ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{"cmd":"echo \\"' } }),
    call({ index: 0, function: { arguments: 'é😀\\" | tr ; && 漢字"}' } }),
    chunk({}, 'tool_calls'),
    { ...chunk({}), choices: [], usage: { prompt_tokens: 3, completion_tokens: 4 } },
    '[DONE]',
  ).replaceAll('\n\n', '\r\n\r\n'),
)

test('BR-020 BR-033 the events are the same wherever the bytes are cut', async () => {
  const uncut = await read([STREAM])
  expect(answerOf(uncut).items).toHaveLength(3)
  expect(await read(Array.from(STREAM, (byte) => Buffer.of(byte)))).toEqual(uncut)
  for (let at = 1; at < STREAM.length; at++)
    expect(await read([STREAM.subarray(0, at), STREAM.subarray(at)])).toEqual(uncut)
})

test('BR-020 BR-005 whatever is said in whatever pieces, cut anywhere, is put together again', async () => {
  const said = fc.array(fc.record({ call: fc.nat(2), text: fc.string({ unit: 'grapheme', minLength: 1 }) }), {
    minLength: 1,
    maxLength: 8,
  })
  await fc.assert(
    fc.asyncProperty(said, fc.array(fc.nat(3000), { maxLength: 6 }), async (pieces, cuts) => {
      const chunks = pieces.map(({ call: index, text }, i) => {
        const first = pieces.findIndex((piece) => piece.call === index) === i
        return call({
          index,
          ...(first && { id: `id${index}`, type: 'function' }),
          function: { ...(first && { name: 'f' }), arguments: text },
        })
      })
      const bytes = Buffer.from(sse(...chunks, chunk({}, 'tool_calls'), '[DONE]'))
      const at = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)).sort((a, b) => a - b), bytes.length]
      const events = await read(at.slice(1).map((end, i) => bytes.subarray(at[i], end)))
      expectWellFormed(events)
      const order = [...new Set(pieces.map((piece) => piece.call))]
      expect(saidIn(answerOf(events))).toEqual(
        order.map((index) => ({
          kind: 'call',
          id: `id${index}`,
          name: 'f',
          text: pieces.flatMap((piece) => (piece.call === index ? piece.text.toWellFormed() : [])).join(''),
        })),
      )
    }),
    { numRuns: 60 },
  )
})

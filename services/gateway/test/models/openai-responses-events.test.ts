import { fakeOpenAiResponses, openAiResponsesStream, type ScriptedAnswer } from '@tollgate/testing'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Answer, answerCollector } from '../../src/conversation/collect.ts'
import type { ModelEvent } from '../../src/conversation/events.ts'
import type { JsonObject } from '../../src/conversation/turn.ts'
import { responsesReader } from '../../src/models/openai-responses/events.ts'
import { streamed, whole } from '../../src/models/openai-responses/reply.ts'
import { UpstreamFault } from '../../src/models/upstream-fault.ts'
import { toldBy } from '../told.ts'
import { answerOf, origin as chatOrigin, chatRequest, faultOf, modelsAt, replyOf, saidIn, silent } from './asking.ts'

const origin = { ...chatOrigin, wire: 'openai-responses' as const }

async function read(chunks: (string | Buffer)[], mediaType = 'text/event-stream'): Promise<ModelEvent[]> {
  const reply = replyOf(chunks, mediaType)
  const reader = responsesReader(origin, silent)
  return toldBy((tell) => (mediaType === 'application/json' ? whole : streamed)(reply, reader, origin, tell))
}

function collected(events: ModelEvent[]): Answer {
  const collector = answerCollector()
  for (const event of events) collector.push(event)
  return collector.answer()
}
const said = async (...events: JsonObject[]) => collected(await read([frames(...events)]))

const frames = (...events: JsonObject[]): string =>
  events
    .map((event, at) => `event: ${String(event.type)}\ndata: ${JSON.stringify({ sequence_number: at, ...event })}\n\n`)
    .join('')
const created = { type: 'response.created', response: { id: 'resp_1', model: 'm', created_at: 7, output: [] } }
const completed = (more: JsonObject = {}) => ({
  type: 'response.completed',
  response: { id: 'resp_1', model: 'm', status: 'completed', output: [], ...more },
})
const added = (output_index: number, item: JsonObject) => ({ type: 'response.output_item.added', output_index, item })
const done = (output_index: number, item: JsonObject) => ({ type: 'response.output_item.done', output_index, item })
const call = (more: JsonObject = {}) => ({
  type: 'function_call',
  id: 'fc_1',
  call_id: 'k1',
  name: 'sum',
  arguments: '',
  ...more,
})
const ARGS = '{"x":2,"y":9}'
const message = (text: string, annotations: JsonObject[] = []) => ({
  type: 'message',
  id: 'msg_1',
  role: 'assistant',
  phase: 'final_answer',
  content: [{ type: 'output_text', text, annotations }],
})
const words = (delta: string) => ({
  type: 'response.output_text.delta',
  output_index: 0,
  item_id: 'msg_1',
  content_index: 0,
  delta,
})

const SCRIPT: ScriptedAnswer = {
  native: [
    {
      item: { type: 'code_interpreter_call', id: 'ci_1', code: 'print(1)', container_id: 'cntr_1', outputs: null },
      events: [
        { type: 'response.code_interpreter_call.in_progress' },
        { type: 'response.code_interpreter_call_code.delta', delta: 'print', obfuscation: 'zz' },
        { type: 'response.code_interpreter_call_code.delta', delta: '(1)' },
        { type: 'response.something_new', unheard: { of: [1] } },
      ],
    },
  ],
  says: [
    { thinking: 'Let me häve 😀 a look.' },
    { text: 'Hellö, wörld 😀!' },
    { call: { id: 'call_1', name: 'f', input: { q: 'é😀' } } },
  ],
  usage: {
    input_tokens: 12_000,
    input_tokens_details: { cached_tokens: 9_000, cache_write_tokens: 100 },
    output_tokens: 800,
    output_tokens_details: { reasoning_tokens: 300 },
    total_tokens: 12_800,
  },
}
const BODY = { model: 'm', include: ['reasoning.encrypted_content'] }
const STREAM = Buffer.from(openAiResponsesStream(SCRIPT, BODY))

describe('a Responses answer as events', () => {
  test.each([true, false])('its items keep their order, and what each held: streamed %s', async (stream) => {
    const fake = await fakeOpenAiResponses([SCRIPT])
    const models = modelsAt(fake, { type: 'openai-responses' })
    const answer = await answerOf(
      models,
      chatRequest({ stream, tools: [{ type: 'function', function: { name: 'f' } }] }),
    )
    await models.close()
    await fake.close()
    expect(fake.refusals).toEqual([])
    const item = SCRIPT.native?.[0]?.item
    expect(saidIn(answer)).toEqual([
      { kind: 'other', dialect: 'responses', value: item },
      { kind: 'thinking', text: 'Let me häve 😀 a look.' },
      { kind: 'text', text: 'Hellö, wörld 😀!' },
      { kind: 'call', id: 'call_1', name: 'f', text: '{"q":"é😀"}' },
    ])
    const blocks = answer.items.flatMap((one) => (one.type === 'block' ? [one] : []))
    expect(blocks[1]?.signature).toMatch(/^otari_rs_[0-9a-f]{16}:rs_up_1_0:enc_1_0$/)
    expect(blocks.map((one) => one.whole?.value.id)).toEqual([undefined, 'rs_up_1_0', 'msg_up_1_1', 'fc_up_1_2'])
    expect(blocks[2]?.whole?.value).toMatchObject({ phase: 'final_answer', status: 'completed' })
    expect(answer.usage?.tokens).toEqual({
      input: 2_900,
      output: 800,
      cacheRead: 9_000,
      cacheWrite: 100,
      reasoning: 300,
    })
    expect(answer.finish).toEqual({ reason: 'tool_calls', raw: undefined })
    expect(answer).toMatchObject({ id: 'resp_up_1', created: 1_792_000_000 })
  })

  test('events of a provider’s own items, known or not, go on unchanged but for their number', async () => {
    const events = await read([STREAM])
    const own = events.flatMap((event) => (event.type === 'extra' ? [event.value] : []))
    expect(own.map(({ type }) => type)).toEqual([
      'response.output_item.added',
      'response.code_interpreter_call.in_progress',
      'response.code_interpreter_call_code.delta',
      'response.code_interpreter_call_code.delta',
      'response.something_new',
    ])
    expect(own[2]).toMatchObject({ item_id: 'ci_1', delta: 'print', obfuscation: 'zz' })
    expect(own[4]).toMatchObject({ item_id: 'ci_1', unheard: { of: [1] } })
    expect(own.every((value) => !('sequence_number' in value))).toBe(true)
  })

  test('BR-020 BR-034 the events are the same wherever the bytes are cut', async () => {
    const uncut = await read([STREAM])
    expect(collected(uncut).items).toHaveLength(4)
    expect(await read(Array.from(STREAM, (byte) => Buffer.of(byte)))).toEqual(uncut)
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(STREAM.length), { maxLength: 5 }), async (cuts) => {
        const at = [0, ...cuts.toSorted((one, other) => one - other), STREAM.length]
        expect(await read(at.slice(1).map((end, i) => STREAM.subarray(at[i], end)))).toEqual(uncut)
      }),
      { numRuns: 60 },
    )
  })

  test.each([
    ['in the done event alone', [{ type: 'response.function_call_arguments.done', output_index: 0, arguments: ARGS }]],
    [
      'in deltas and the done event',
      [
        { type: 'response.function_call_arguments.delta', output_index: 0, delta: '{"x":2,' },
        { type: 'response.function_call_arguments.delta', item_id: 'fc_1', delta: '"y":9}' },
        { type: 'response.function_call_arguments.done', output_index: 0, arguments: ARGS },
      ],
    ],
    [
      'cut short in the deltas',
      [{ type: 'response.function_call_arguments.delta', output_index: 0, delta: '{"x":2,' }],
    ],
    ['in the finished item alone', []],
  ])('BR-011 arguments %s come once', async (_, inner) => {
    const answer = await said(created, added(0, call()), ...inner, done(0, call({ arguments: ARGS })), completed())
    expect(saidIn(answer)).toEqual([{ kind: 'call', id: 'k1', name: 'sum', text: ARGS }])
    expect(answer.finish.reason).toBe('tool_calls')
  })

  test('BR-007 a call is begun once its name is known; one without arguments has an empty object, one without a name fails', async () => {
    const late = { ...call(), name: '' }
    const early = { type: 'response.function_call_arguments.delta', output_index: 0, delta: ARGS }
    const named = await said(created, added(0, late), early, done(0, call({ arguments: ARGS })), completed())
    expect(saidIn(named)).toEqual([{ kind: 'call', id: 'k1', name: 'sum', text: ARGS }])
    const bare = await said(created, added(0, call()), done(0, call()), completed())
    expect(saidIn(bare)).toMatchObject([{ text: '{}' }])
    const nameless = frames(created, added(0, late), done(0, late), completed())
    expect((await faultOf(read([nameless]))).message).toContain('without a name')
  })

  test('BR-012 a finished text is not the end of the turn', async () => {
    const events = await read([
      frames(
        created,
        added(0, { ...message(''), content: [] }),
        words('Hi'),
        done(0, message('Hi')),
        added(1, call()),
        done(1, call({ arguments: ARGS })),
        completed(),
      ),
    ])
    expect(events.filter(({ type }) => type === 'finish')).toEqual([
      { type: 'finish', reason: 'tool_calls', raw: undefined },
    ])
    expect(events.at(-1)?.type).toBe('finish')
  })

  test('text that no delta brought, annotations and refusals are taken from the finished item, once each', async () => {
    const cites = { type: 'url_citation', url: 'https://u1', title: 't1', start_index: 0, end_index: 2 }
    const note = { type: 'response.output_text.annotation.added', output_index: 0, content_index: 0, annotation: cites }
    const whole = message('A. B.', [cites, { ...cites, url: 'https://u2' }])
    const answer = await said(
      created,
      added(0, { ...whole, content: [] }),
      words('A. '),
      note,
      done(0, whole),
      completed(),
    )
    expect(saidIn(answer)).toEqual([{ kind: 'text', text: 'A. B.' }])
    expect(answer.extras.map(({ value }) => (value.annotation as JsonObject).url)).toEqual(['https://u1', 'https://u2'])
    const refused = { ...message(''), content: [{ type: 'refusal', refusal: 'No.' }] }
    expect(saidIn(await said(created, added(0, refused), done(0, refused), completed()))).toEqual([
      { kind: 'refusal', text: 'No.' },
    ])
  })

  test('thoughts in several parts are told apart; reasoning without words or a record is for this dialect alone', async () => {
    const thought = (at: number, delta: string) => ({
      type: 'response.reasoning_summary_text.delta',
      output_index: 0,
      summary_index: at,
      delta,
    })
    const item = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'enc' }
    const two = await said(created, added(0, item), thought(0, 'One.'), thought(1, 'Two.'), done(0, item), completed())
    expect(saidIn(two)).toEqual([{ kind: 'thinking', text: 'One.\n\nTwo.' }])
    const empty = { type: 'reasoning', id: 'rs_2', summary: [] }
    expect(saidIn(await said(created, added(0, empty), done(0, empty), completed()))).toEqual([
      { kind: 'other', dialect: 'responses', value: empty },
    ])
    const open = { type: 'reasoning', id: 'rs_3', summary: [], content: [{ type: 'reasoning_text', text: 'Hm.' }] }
    expect(saidIn(await said(created, added(0, open), done(0, open), completed()))).toEqual([
      { kind: 'thinking', text: 'Hm.' },
    ])
  })

  test.each([
    ['max_output_tokens', 'length'],
    ['content_filter', 'content_filter'],
    ['something_new', 'unknown'],
  ])('BR-026 incomplete for %s is %s', async (why, reason) => {
    const end = {
      type: 'response.incomplete',
      response: { id: 'r', status: 'incomplete', incomplete_details: { reason: why } },
    }
    const answer = await said(created, added(0, call()), { ...end })
    expect(answer.finish).toEqual({ reason, raw: why })
  })

  test('what servers of the field leave out or add is no matter', async () => {
    const answer = await said(
      { ...completed(), type: 'response.unheard_of' },
      created,
      { type: 'response.rate_limits.updated', limits: 3 },
      added(0, { type: 'message', role: 'assistant', content: [] }),
      { type: 'response.output_text.delta', delta: 'Hi', output_index: 0 },
      done(0, { type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hi' }] }),
      completed({ usage: null }),
    )
    expect(saidIn(answer)).toEqual([{ kind: 'text', text: 'Hi' }])
    expect(answer.usage).toBeUndefined()
    const nameless = frames(created, words('x'), completed()).replace(/^event: .*\n/gm, '')
    expect(collected(await read([`${nameless}data: [DONE]\n\n`])).items).toEqual([])
  })
})

describe('a Responses answer that fails', () => {
  const failed = (error: JsonObject) => ({ type: 'response.failed', response: { id: 'r', status: 'failed', error } })
  test.each<[string, JsonObject[], string, string]>([
    [
      'is limited',
      [created, failed({ code: 'rate_limit_exceeded', message: 'slow down' })],
      'rate_limited',
      'slow down',
    ],
    ['is refused', [created, failed({ code: 'invalid_prompt', message: 'bad words' })], 'invalid_request', 'bad words'],
    [
      'fails',
      [created, failed({ code: 'server_error', message: 'at 10.0.0.1' })],
      'upstream',
      'the model provider failed',
    ],
    [
      'ends in an error event',
      [created, { type: 'error', code: 'rate_limit_exceeded', message: 'slow' }],
      'rate_limited',
      'slow',
    ],
    [
      'ends in a wrapped error event',
      [{ type: 'error', error: { type: 'rate_limit_error', message: 'slow' } }],
      'rate_limited',
      'slow',
    ],
    ['breaks off', [created, added(0, call())], 'upstream', "the model provider's answer broke off"],
    ['says nothing', [], 'upstream', 'the model provider answered with nothing'],
  ])('BR-031 one that %s is that fault', async (_, events, failure, text) => {
    const fault = await faultOf(read([frames(...events)]))
    expect(fault).toBeInstanceOf(UpstreamFault)
    expect(fault).toMatchObject({ failure, message: text })
  })

  test('BR-018 a body that is no response is a failure of the upstream', async () => {
    for (const body of ['', '<html>', '{}', '[]'])
      expect(await faultOf(read([body], 'application/json'))).toMatchObject({ failure: 'upstream' })
    const failure = JSON.stringify({
      id: 'r',
      status: 'failed',
      output: [],
      error: { code: 'server_error', message: 'x' },
    })
    expect(await faultOf(read([failure], 'application/json'))).toMatchObject({ failure: 'upstream' })
  })

  test('BR-043 a limit keeps its status and when to come back', async () => {
    const limited = {
      status: 429,
      headers: { 'retry-after': '7', 'content-type': 'application/json', 'x-request-id': 'r' },
      body: JSON.stringify({ error: { message: 'Rate limit reached', type: 'tokens', code: 'rate_limit_exceeded' } }),
    }
    const fake = await fakeOpenAiResponses([limited])
    const models = modelsAt(fake, { type: 'openai-responses' })
    const fault = await faultOf(answerOf(models, chatRequest({})))
    await models.close()
    await fake.close()
    expect(fault).toMatchObject({
      failure: 'rate_limited',
      message: 'Rate limit reached',
      headers: { 'retry-after': '7' },
    })
    expect(fault).not.toHaveProperty('headers.x-request-id')
  })
})

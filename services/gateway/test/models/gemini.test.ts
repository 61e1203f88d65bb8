import { fakeGemini, geminiStream, type ScriptedAnswer, says } from '@tollgate/testing'
import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { answerCollector } from '../../src/conversation/collect.ts'
import type { ModelEvent } from '../../src/conversation/events.ts'
import type { JsonObject, Turn } from '../../src/conversation/turn.ts'
import { parseMessages } from '../../src/dialects/messages/parse.ts'
import { parseResponses } from '../../src/dialects/responses/parse.ts'
import { geminiReader } from '../../src/models/gemini/events.ts'
import { streamed, whole } from '../../src/models/gemini/provider.ts'
import { geminiBody, geminiPath } from '../../src/models/gemini/request.ts'
import { geminiSchema } from '../../src/models/gemini/schema.ts'
import { NO_RESULT } from '../../src/models/history.ts'
import { signatureOf } from '../../src/models/signatures.ts'
import { toldBy } from '../told.ts'
import { answerOf, origin as chatOrigin, chatRequest, faultOf, modelsAt, replyOf, saidIn, silent } from './asking.ts'

const origin = { ...chatOrigin, wire: 'gemini' as const }

async function read(chunks: (string | Buffer)[], mediaType = 'text/event-stream'): Promise<ModelEvent[]> {
  const reply = replyOf(chunks, mediaType)
  const reader = geminiReader(origin, silent)
  return toldBy((tell) => (mediaType === 'application/json' ? whole : streamed)(reply, reader, origin, tell))
}
function collected(events: ModelEvent[]) {
  const collector = answerCollector()
  for (const event of events) collector.push(event)
  return collector.answer()
}
const frames = (...pieces: JsonObject[]): string => pieces.map((one) => `data: ${JSON.stringify(one)}\r\n\r\n`).join('')
const piece = (parts: JsonObject[], finishReason?: string): JsonObject => ({
  candidates: [{ content: { role: 'model', parts }, ...(finishReason && { finishReason }), index: 0 }],
})
const said = async (...pieces: JsonObject[]) => collected(await read([frames(...pieces)]))
const signed = (record: string) => signatureOf('gm', 'up', record)

const SCRIPT: ScriptedAnswer = {
  says: [
    { thinking: 'Let me häve 😀 a look.', signature: 'sig1' },
    { call: { id: 'c1', name: 'f', input: { q: 'é😀' } } },
    { call: { id: '', name: 'g', input: {} } },
    { text: 'Hellö, wörld 😀!' },
  ],
  usage: {
    promptTokenCount: 12_000,
    cachedContentTokenCount: 9_000,
    toolUsePromptTokenCount: 50,
    candidatesTokenCount: 500,
    thoughtsTokenCount: 300,
    totalTokenCount: 12_850,
  },
}
const STREAM = Buffer.from(geminiStream(SCRIPT))

describe('a Gemini answer as events', () => {
  test.each([true, false])(
    'BR-003 its parts keep their order, signatures with their calls: streamed %s',
    async (stream) => {
      const fake = await fakeGemini([SCRIPT], { apiKey: 'key-a' })
      const models = modelsAt(fake, { type: 'gemini', apiKey: 'key-a' })
      const functions = ['f', 'g'].map((name) => ({ type: 'function', function: { name } }))
      const answer = await answerOf(models, chatRequest({ stream, tools: functions }))
      await models.close()
      await fake.close()
      expect(fake.refusals).toEqual([])
      expect(saidIn(answer)).toEqual([
        { kind: 'thinking', text: 'Let me häve 😀 a look.' },
        { kind: 'call', id: 'c1', name: 'f', text: '{"q":"é😀"}' },
        { kind: 'call', id: expect.stringMatching(/^call_otari_[0-9a-f]{24}$/), name: 'g', text: '{}' },
        { kind: 'text', text: 'Hellö, wörld 😀!' },
      ])
      const [thought] = answer.items
      expect(thought?.type === 'block' && thought.signature).toBe(signed('call:sig1'))
      expect(answer.usage?.tokens).toEqual({
        input: 3_050,
        output: 800,
        cacheRead: 9_000,
        cacheWrite: 0,
        reasoning: 300,
      })
      expect(answer).toMatchObject({ id: 'gemini_up_1', finish: { reason: 'tool_calls', raw: 'STOP' } })
    },
  )

  test('BR-020 the events are the same wherever the bytes are cut', async () => {
    const plain = (events: ModelEvent[]) => JSON.stringify(events).replace(/call_otari_[0-9a-f]+/g, 'made_up')
    const uncut = plain(await read([STREAM]))
    expect(plain(await read(Array.from(STREAM, (byte) => Buffer.of(byte))))).toBe(uncut)
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(STREAM.length), { maxLength: 5 }), async (cuts) => {
        const at = [0, ...cuts.toSorted((one, other) => one - other), STREAM.length]
        expect(plain(await read(at.slice(1).map((end, i) => STREAM.subarray(at[i], end))))).toBe(uncut)
      }),
      { numRuns: 40 },
    )
  })

  test('a signature of a call without a thought gets an empty one; one of a thought stays with it', async () => {
    const call = { functionCall: { name: 'f', args: {} }, thoughtSignature: 's' }
    const bare = await said(piece([call], 'STOP'))
    expect(bare.items).toMatchObject([{ start: { kind: 'thinking' }, text: '', signature: signed('call:s') }, {}])
    const thought = await said(piece([{ text: 'Hm.', thought: true, thoughtSignature: 't' }, { text: 'Yes.' }], 'STOP'))
    expect(thought.items).toMatchObject([{ text: 'Hm.', signature: signed('thought:t') }, { text: 'Yes.' }])
  })

  test.each([
    ['STOP', 'stop'],
    ['MAX_TOKENS', 'length'],
    ['SAFETY', 'content_filter'],
    ['PROHIBITED_CONTENT', 'content_filter'],
    ['RECITATION', 'content_filter'],
    ['MALFORMED_FUNCTION_CALL', 'unknown'],
    ['SOMETHING_NEW', 'unknown'],
  ])('BR-026 %s is %s', async (raw, reason) => {
    expect((await said(piece([{ text: 'x' }], raw))).finish).toEqual({ reason, raw })
  })

  test('a prompt that is blocked is an answer cut short by a filter, and its tokens count', async () => {
    const blocked = { promptFeedback: { blockReason: 'SAFETY' }, usageMetadata: { promptTokenCount: 4 } }
    const answer = await said(blocked)
    expect(answer).toMatchObject({ items: [], finish: { reason: 'content_filter' }, usage: { tokens: { input: 4 } } })
  })

  test('parts and members nobody here knows are passed over', async () => {
    const answer = await said(
      { ...piece([{ unheard: 1 }, { text: 'Hi' }]), modelStatus: {} },
      piece([{ text: '', thoughtSignature: 's' }], 'STOP'),
    )
    expect(saidIn(answer)).toEqual([{ kind: 'text', text: 'Hi' }])
  })
})

describe('a Gemini answer that fails', () => {
  test.each<[string, string, string, string]>([
    ['says nothing', '', 'upstream', 'the model provider answered with nothing'],
    ['breaks off', frames(piece([{ text: 'x' }])), 'upstream', "the model provider's answer broke off"],
    ['is no JSON', 'data: <html>\r\n\r\n', 'upstream', "the model provider's answer could not be read"],
    [
      'has a nameless call',
      frames(piece([{ functionCall: {} }])),
      'upstream',
      'the model provider sent a tool call without a name',
    ],
    [
      'fails within',
      frames({ error: { code: 503, message: 'at 10.0.0.1', status: 'UNAVAILABLE' } }),
      'unavailable',
      'the model provider is overloaded',
    ],
  ])('BR-018 BR-031 one that %s is that fault', async (_, bytes, failure, message) => {
    expect(await faultOf(read([bytes]))).toMatchObject({ failure, message })
  })

  const status = async (code: number, error: JsonObject) => {
    const body = JSON.stringify({ error: { code, ...error } })
    const fake = await fakeGemini([{ status: code, headers: { 'content-type': 'application/json' }, body }])
    const models = modelsAt(fake, { type: 'gemini' })
    const fault = await faultOf(answerOf(models, chatRequest({})))
    await models.close()
    await fake.close()
    return fault
  }

  test('BR-043 a limit that says when to come back is no empty account; one that does not is', async () => {
    const message = 'You exceeded your current quota, please check your plan and billing details.'
    const details = [{ '@type': 'type.googleapis.com/google.rpc.Help' }, { '@type': 'RetryInfo', retryDelay: '17.2s' }]
    expect(await status(429, { message, status: 'RESOURCE_EXHAUSTED', details })).toMatchObject({
      failure: 'rate_limited',
      retryAfterSeconds: 18,
      headers: { 'retry-after': '18' },
    })
    expect(await status(429, { message, status: 'RESOURCE_EXHAUSTED' })).toMatchObject({ failure: 'upstream' })
  })

  test('a key that is refused is this gateway’s account, though the status says 400', async () => {
    const refused = await status(400, { message: 'API key not valid. Please pass a valid API key.' })
    expect(refused).toMatchObject({ failure: 'upstream', message: "the model provider refused this gateway's account" })
    expect(await status(400, { message: 'Unknown name "x"' })).toMatchObject({ failure: 'invalid_request' })
  })
})

const ofTurn = (turn: Turn, model = 'gemini-3-pro') => {
  const { messages, tools, toolChoice, parallelToolCalls, stream } = turn
  return geminiBody({ turn, model, messages, tools, toolChoice, parallelToolCalls, stream }, 'up')
}
const ofChat = (body: JsonObject, model = 'gemini-3-pro') => geminiBody(chatRequest(body, { model }), 'up')
const ofMessages = (body: JsonObject, model?: string) =>
  ofTurn(
    parseMessages({ model: 'up:m', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }], ...body }, 100, {}),
    model,
  )
const config = (body: JsonObject) => body.generationConfig

describe('a body for Gemini', () => {
  test.each<[string, JsonObject, JsonObject, string?]>([
    [
      'limits',
      { max_tokens: 5, temperature: 1.5, top_p: 0.5, stop: 'x' },
      { maxOutputTokens: 5, temperature: 1.5, topP: 0.5, stopSequences: ['x'] },
    ],
    [
      'penalties and seed',
      { frequency_penalty: 1, presence_penalty: 0, seed: 3 },
      { frequencyPenalty: 1, presencePenalty: 0, seed: 3 },
    ],
    [
      'effort as a level',
      { reasoning_effort: 'low' },
      { thinkingConfig: { thinkingLevel: 'LOW', includeThoughts: true } },
    ],
    [
      'effort as a budget',
      { reasoning_effort: 'high' },
      { thinkingConfig: { thinkingBudget: 24_576, includeThoughts: true } },
      'gemini-2.5-pro',
    ],
    [
      'no effort',
      { reasoning_effort: 'none' },
      { thinkingConfig: { thinkingBudget: 0, includeThoughts: false } },
      'gemini-2.5-flash',
    ],
    ['JSON', { response_format: { type: 'json_object' } }, { responseMimeType: 'application/json' }],
    [
      'BR-051 a schema',
      {
        response_format: {
          type: 'json_schema',
          json_schema: { name: 'n', schema: { type: 'object', properties: { a: { const: 1 } } } },
        },
      },
      {
        responseMimeType: 'application/json',
        responseJsonSchema: { type: 'object', properties: { a: { enum: [1] } } },
      },
    ],
  ])('carries %s', (_, members, wanted, model) => {
    expect(config(ofChat(members, model))).toEqual(wanted)
  })

  test.each<[string, () => unknown]>([
    ['logit_bias', () => ofChat({ logit_bias: { 1: 2 } })],
    ['n', () => ofChat({ n: 2 })],
    ['unheard_of', () => ofChat({ unheard_of: 1 })],
    ['service_tier', () => ofChat({ service_tier: 'flex' })],
    ['top_k', () => ofMessages({ top_k: 3 })],
    ['output_config.format', () => ofMessages({ output_config: { format: { type: 'x' } } })],
    [
      'parallel_tool_calls',
      () => ofChat({ tools: [{ type: 'function', function: { name: 'f' } }], parallel_tool_calls: false }),
    ],
    [
      'web_search_preview',
      () => ofTurn(parseResponses({ model: 'up:m', input: 'x', tools: [{ type: 'web_search_preview' }] }, 9).turn),
    ],
    [
      'text.format',
      () => ofTurn(parseResponses({ model: 'up:m', input: 'x', text: { format: { type: 'grammar' } } }, 9).turn),
    ],
  ])('refuses %s by its name', (name, make) => {
    expect(make).toThrowError(new RegExp(`'${name}'`))
  })

  test('thinking of a Messages client is a budget where the model takes one, and is shown', () => {
    const thinking = { type: 'enabled', budget_tokens: 5_000 }
    const wanted = { thinkingBudget: 5_000, includeThoughts: true }
    expect(config(ofMessages({ thinking }, 'gemini-2.5-pro'))).toMatchObject({ thinkingConfig: wanted })
    expect(config(ofMessages({ thinking }))).toMatchObject({
      thinkingConfig: { thinkingLevel: 'MEDIUM', includeThoughts: true },
    })
    expect(config(ofMessages({ thinking: { type: 'adaptive' } }))).toMatchObject({
      thinkingConfig: { includeThoughts: true },
    })
  })

  test('a conversation becomes contents: results by name and in order, system apart, neighbours as one', () => {
    const call = (id: string, name: string, args: string) => ({
      id,
      type: 'function',
      function: { name, arguments: args },
    })
    const body = ofChat({
      messages: [
        { role: 'system', content: 'Be brief.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Hi' },
            { type: 'image_url', image_url: { url: 'data:image/png;base64,AA==' } },
          ],
        },
        { role: 'user', content: [{ type: 'input_audio', input_audio: { data: 'AA==', format: 'wav' } }] },
        {
          role: 'assistant',
          content: 'Let me see.',
          tool_calls: [call('c1', 'f', '{"a":1}'), call('call_otari_1', 'g', '{"broken')],
        },
        { role: 'tool', tool_call_id: 'call_otari_1', content: '2' },
        { role: 'tool', tool_call_id: 'c1', content: '{"deg":21}' },
        { role: 'developer', content: 'And kind.' },
      ],
    })
    expect(body.systemInstruction).toEqual({ parts: [{ text: 'Be brief.' }, { text: 'And kind.' }] })
    expect(body.contents).toEqual([
      {
        role: 'user',
        parts: [
          { text: 'Hi' },
          { inlineData: { mimeType: 'image/png', data: 'AA==' } },
          { inlineData: { mimeType: 'audio/wav', data: 'AA==' } },
        ],
      },
      {
        role: 'model',
        parts: [
          { text: 'Let me see.' },
          {
            functionCall: { id: 'c1', name: 'f', args: { a: 1 } },
            thoughtSignature: 'skip_thought_signature_validator',
          },
          { functionCall: { name: 'g', args: {} } },
        ],
      },
      {
        role: 'user',
        parts: [
          { functionResponse: { id: 'c1', name: 'f', response: { output: '{"deg":21}' } } },
          { functionResponse: { name: 'g', response: { output: '2' } } },
        ],
      },
    ])
  })

  test('BR-017 BR-050 signatures go back with what they came with, others go; a call without a result gets one', () => {
    const thinking = (text: string, signature: string) => ({ type: 'thinking', thinking: text, signature })
    const use = (id: string) => ({ type: 'tool_use', id, name: 'f', input: {} })
    const messages = [
      { role: 'user', content: 'hi' },
      {
        role: 'assistant',
        content: [
          thinking('Hm.', signed('thought:t')),
          thinking('', signatureOf('gm', 'another', 'call:x')),
          thinking('of another vendor', 'sig'),
          thinking('', signed('call:s')),
          use('t1'),
          use('t2'),
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: 'no', is_error: true }] },
    ]
    const { contents } = ofMessages({ messages, tools: [{ name: 'f', input_schema: { type: 'object' } }] })
    expect(contents).toMatchObject([
      {},
      {
        parts: [
          { text: 'Hm.', thought: true, thoughtSignature: 't' },
          { functionCall: { id: 't1' }, thoughtSignature: 's' },
          { functionCall: { id: 't2' } },
        ],
      },
      {
        parts: [
          { functionResponse: { id: 't1', name: 'f', response: { error: 'no' } } },
          { functionResponse: { id: 't2', name: 'f', response: { error: NO_RESULT } } },
        ],
      },
    ])
    expect(JSON.stringify(ofMessages({ messages, tools: [] }, 'gemini-2.5-pro'))).not.toContain('skip_thought')
  })

  test('functions and the choice among them', () => {
    const tools = ['f', 'g'].map((name) => ({
      type: 'function',
      function: {
        name,
        description: 'd',
        parameters: { type: 'object', properties: name === 'f' ? { a: { type: 'string' } } : {} },
      },
    }))
    const body = (tool_choice?: string | JsonObject) =>
      ofChat({ tools, ...(tool_choice !== undefined && { tool_choice }) })
    expect(body().tools).toEqual([
      {
        functionDeclarations: [
          {
            name: 'f',
            description: 'd',
            parametersJsonSchema: { type: 'object', properties: { a: { type: 'string' } } },
          },
          { name: 'g', description: 'd' },
        ],
      },
    ])
    expect([body(), body('auto')].map(({ toolConfig }) => toolConfig)).toEqual([undefined, undefined])
    expect(body('none').toolConfig).toEqual({ functionCallingConfig: { mode: 'NONE' } })
    expect(body('required').toolConfig).toEqual({ functionCallingConfig: { mode: 'ANY' } })
    expect(body({ type: 'function', function: { name: 'g' } }).toolConfig).toEqual({
      functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['g'] },
    })
  })

  test('what the vendor does not know of JSON Schema is told in words', () => {
    expect(
      geminiSchema({
        $schema: 'x',
        type: 'object',
        definitions: { d: { type: 'string', pattern: '^a' } },
        properties: {
          a: { $ref: '#/definitions/d' },
          b: { oneOf: [{ type: 'string' }, { type: 'null' }], default: 'x' },
          c: { allOf: [{ type: 'number' }], multipleOf: 2, description: 'Even.' },
          d: { type: ['string', 'null'], format: 'date' },
        },
        required: ['a'],
        additionalProperties: false,
      }),
    ).toEqual({
      type: 'object',
      $defs: { d: { type: 'string', description: '(pattern: "^a")' } },
      properties: {
        a: { $ref: '#/$defs/d' },
        b: { anyOf: [{ type: 'string' }, { type: 'null' }] },
        c: { type: 'number', description: 'Even. (multipleOf: 2)' },
        d: { type: ['string', 'null'], format: 'date' },
      },
      required: ['a'],
      additionalProperties: false,
    })
  })

  test('the path holds the model, whatever it is named', () => {
    expect(geminiPath('gemini-3-pro', true)).toBe('/models/gemini-3-pro:streamGenerateContent?alt=sse')
    expect(geminiPath('gemini-3-pro', false)).toBe('/models/gemini-3-pro:generateContent')
    expect(geminiPath('tunedModels/a b', false)).toBe('/tunedModels/a%20b:generateContent')
  })
})

test('the instance named for the vendor needs no more than its key', async () => {
  const fake = await fakeGemini([says('Hi')], { apiKey: 'key-a' })
  const models = modelsAt(fake, { type: 'gemini', apiKey: 'key-a' })
  onTestFinished(async () => {
    await models.close()
    await fake.close()
  })
  expect(saidIn(await answerOf(models, chatRequest({})))).toEqual([{ kind: 'text', text: 'Hi' }])
  expect(fake.requests[0]?.headers.authorization).toBeUndefined()
})

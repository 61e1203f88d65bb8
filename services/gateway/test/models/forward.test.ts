import { callsTools, fakeOpenAi, openAiStream, says } from '@tollgate/testing'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/conversation/turn.ts'
import { forwardChat } from '../../src/models/openai-chat/forward.ts'
import { canForward } from '../../src/models/provider.ts'
import { chatRequest, chunk, faultOf, modelsAt, origin, replyOf, silent, sinkOf, soon, sse } from './asking.ts'

const asked = (body: JsonObject = {}) => chatRequest({ stream: true, stream_options: { include_usage: true }, ...body })

async function forward(chunks: (string | Buffer)[], body: JsonObject = {}, mediaType?: string) {
  const to = sinkOf()
  const reply = replyOf(chunks, mediaType)
  const forwarded = await forwardChat(reply, asked(body), to.sink, origin, silent)
  return { ...to, forwarded, settled: reply.settled }
}

const FAILED =
  'data: {"error":{"message":"An error occurred during streaming","type":"server_error"}}\n\ndata: [DONE]\n\n'
const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7 }
const usageChunk = { ...chunk({}), choices: [], usage }
const role = chunk({ role: 'assistant', content: '' })
/** As OpenAI sends it: usage null in every chunk, escaped quotes in texts that look like members. */
const proper = sse(
  { ...role, usage: null },
  { ...chunk({ content: 'say "usage":{"a":1} and "error":1 and [DONE]\n\n' }), usage: null },
  { ...chunk({ content: 'é😀' }), usage: null },
  { ...chunk({}, 'stop'), usage: null },
  usageChunk,
  '[DONE]',
)

describe('a stream through the fast lane', () => {
  test('goes out byte for byte, whole reads at a time, with usage and finish read in passing', async () => {
    const { text, writes, head, forwarded, settled } = await forward([proper])
    expect(text()).toBe(proper)
    expect(writes.map(String)).toEqual([proper.replace(sse('[DONE]'), ''), sse('[DONE]')])
    expect(head()).toMatchObject({
      status: 200,
      headers: { 'content-type': 'text/event-stream; charset=utf-8', 'x-accel-buffering': 'no' },
    })
    expect(forwarded).toMatchObject({
      tokens: { input: 3, output: 4, cacheRead: 0, cacheWrite: 0, reasoning: 0 },
      finish: 'stop',
      status: 200,
      fault: undefined,
    })
    expect(settled()).toBe(true)
  })

  test('the usage chunk is withheld from a client that did not ask for it, and nothing else is', async () => {
    const { text, forwarded } = await forward([proper], { stream_options: {} })
    expect(text()).toBe(proper.replace(sse(usageChunk), ''))
    expect(forwarded.tokens).toMatchObject({ input: 3, output: 4 })
  })

  test('usage on a chunk with an answer in it stays where it is', async () => {
    const bytes = sse(role, { ...chunk({ content: 'x' }, 'stop'), usage }, '[DONE]')
    const { text, forwarded } = await forward([bytes], { stream_options: {} })
    expect(text()).toBe(bytes)
    expect(forwarded.tokens).toMatchObject({ output: 4 })
  })

  test('a part of a frame waits for the rest of it, and a whole one for nothing', async () => {
    const at = proper.indexOf('é') - 20
    const { writes } = await forward([proper.slice(0, at), proper.slice(at)])
    expect(writes).toHaveLength(3)
    expect(writes[0]?.toString().endsWith('\n\n')).toBe(true)
    expect(Buffer.concat(writes).toString()).toBe(proper)
  })

  test('BR-020 what goes out is the same wherever the bytes are cut, with any line end', async () => {
    for (const body of [{}, { stream_options: {} }]) {
      for (const text of [proper, proper.replaceAll('\n', '\r\n')]) {
        const bytes = Buffer.from(text)
        const uncut = await forward([bytes], body)
        expect(uncut.text()).toContain('é😀')
        expect(uncut.forwarded.tokens).toMatchObject({ input: 3 })
        const bytewise = await forward(
          Array.from(bytes, (byte) => Buffer.of(byte)),
          body,
        )
        expect(bytewise.text()).toBe(uncut.text())
        for (let at = 1; at < bytes.length; at += 3) {
          const cut = await forward([bytes.subarray(0, at), bytes.subarray(at)], body)
          expect(cut.text()).toBe(uncut.text())
          expect({ ...cut.forwarded, firstByteAt: 0 }).toEqual({ ...uncut.forwarded, firstByteAt: 0 })
        }
      }
    }
  })

  test('BR-020 any text in any pieces passes, cut anywhere', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: 'binary' }), { maxLength: 6 }),
        fc.array(fc.nat(2000), { maxLength: 6 }),
        async (texts, cuts) => {
          const bytes = Buffer.from(
            sse(role, ...texts.map((content) => chunk({ content })), chunk({}, 'stop'), usageChunk, '[DONE]'),
          )
          const at = [0, ...cuts.map((cut) => Math.min(cut, bytes.length)).sort((a, b) => a - b), bytes.length]
          const { text, forwarded } = await forward(at.slice(1).map((end, i) => bytes.subarray(at[i], end)))
          expect(text()).toBe(bytes.toString())
          expect(forwarded).toMatchObject({ finish: 'stop', tokens: { output: 4 } })
        },
      ),
      { numRuns: 100 },
    )
  })

  test('a client that reads slowly is waited for', async () => {
    const to = sinkOf({ slowMs: 5 })
    let ahead = 0
    const pulled = async function* () {
      for (const content of ['a', 'b', 'c']) {
        ahead = Math.max(ahead, pulledCount++ - to.writes.length)
        yield Buffer.from(sse(chunk({ content })))
      }
      yield Buffer.from(sse(chunk({}, 'stop'), '[DONE]'))
    }
    let pulledCount = 0
    await forwardChat({ ...replyOf([]), chunks: pulled }, asked(), to.sink, origin, silent)
    expect(ahead).toBe(0)
  })

  test('P-50 without usage the length of what was said is known, about', async () => {
    const said = 'x'.repeat(400)
    const { forwarded } = await forward([openAiStream({ says: [{ text: said }], usage: null }, {})])
    expect(forwarded.tokens).toBe(undefined)
    expect(forwarded.outputCharacters).toBeGreaterThan(350)
    expect(forwarded.outputCharacters).toBeLessThan(550)
  })
})

describe('a stream that fails in the fast lane', () => {
  test.each<[string, string[], string | undefined, object]>([
    ['zero bytes', [], undefined, { failure: 'upstream', message: 'the model provider answered with nothing' }],
    ['only comments', [': ping\n\n', ': ping\n\n'], undefined, { failure: 'upstream' }],
    ['only [DONE]', [sse('[DONE]')], undefined, { failure: 'upstream' }],
    ['HTML as it says', ['<html>login</html>'], 'text/html', { failure: 'upstream' }],
    ['HTML as SSE', ['<html>\n\n<p>data: x</p></html>\n\n'], undefined, { failure: 'upstream' }],
    ['no JSON', ['data: <html>\n\n'], undefined, { failure: 'upstream' }],
    ['only usage', [sse(usageChunk, '[DONE]')], undefined, { failure: 'upstream' }],
    [
      'an error first',
      [': hi\n\n', sse({ error: { message: 'slow down', code: 429 } })],
      undefined,
      { failure: 'rate_limited', message: 'slow down' },
    ],
    [
      'an error event first',
      [`event: error\n${sse({ message: 'busy', type: 'overloaded_error' })}`],
      undefined,
      { failure: 'unavailable' },
    ],
  ])('BR-018 BR-031 before its first byte is thrown and sends nothing: %s', async (_, chunks, mediaType, expected) => {
    const to = sinkOf()
    expect(await faultOf(forwardChat(replyOf(chunks, mediaType), asked(), to.sink, origin, silent))).toMatchObject(
      expected,
    )
    expect(to.head()).toBe(undefined)
    expect(to.writes).toEqual([])
  })

  test.each<[string, string[], string]>([
    [
      'an error frame',
      [sse(role, chunk({ content: 'Hel' }), { error: { message: 'secret', type: 'overloaded_error' } })],
      'unavailable',
    ],
    [
      'an error frame in a read of its own',
      [sse(role, chunk({ content: 'Hel' })), sse({ error: { message: 'secret' } })],
      'upstream',
    ],
    ['an error event', [sse(role, chunk({ content: 'Hel' })), `event: error\n${sse({ error: 'secret' })}`], 'upstream'],
    ['the end of the body', [sse(role, chunk({ content: 'Hel' }))], 'upstream'],
    [
      'half a frame',
      [sse(role, chunk({ content: 'Hel' })), 'data: {"choices":[{"delta":{"content":"secret'],
      'upstream',
    ],
  ])('BR-001 R-62 after its first byte ends in the dialect’s own words: %s', async (_, chunks, failure) => {
    const { text, forwarded, settled } = await forward(chunks)
    expect(text()).toBe(sse(role, chunk({ content: 'Hel' })) + FAILED)
    expect(forwarded.fault).toMatchObject({ failure })
    expect(forwarded.finish).toBe(undefined)
    expect(settled()).toBe(false)
  })

  test('a missing [DONE] after a reason is put in', async () => {
    const bytes = sse(role, chunk({ content: 'x' }, 'stop'))
    for (const end of ['', 'data: [DONE]', 'data: [DONE]\n', 'data:[DONE]']) {
      const { text, forwarded } = await forward([bytes, end])
      expect(text()).toBe(`${bytes}data: [DONE]\n\n`)
      expect(forwarded).toMatchObject({ finish: 'stop', fault: undefined })
    }
  })

  test('a connection that is cut tells the client, and one the client leaves tells nobody', async () => {
    const fake = await fakeOpenAi([
      says('Hello there', { cutAfterBytes: 900 }),
      says('Hello there', { stallAfterBytes: 900 }),
    ])
    const models = modelsAt(fake, { type: 'openai-compatible' })
    const { provider } = models.resolve('up:m')
    const request = asked()
    if (!canForward(provider, request.turn)) throw new Error('the fast lane is closed')

    const cut = sinkOf()
    expect((await provider.forward(request, cut.sink, soon())).fault).toMatchObject({ failure: 'upstream' })
    expect(cut.text().endsWith(FAILED)).toBe(true)

    const left = sinkOf()
    const gone = new AbortController()
    const forwarding = provider.forward(request, left.sink, { ...soon(), signal: gone.signal })
    await expect.poll(() => left.writes.length).toBeGreaterThan(0)
    gone.abort()
    expect((await forwarding).fault).toMatchObject({ failure: 'cancelled' })
    expect(left.text()).not.toContain('error')
    await expect.poll(() => fake.aborted()).toBe(1)
    await models.close()
    await fake.close()
  })
})

describe('what strict clients stumble over is put right on the way', () => {
  const dataOf = (text: string) =>
    text.split('\n\n').flatMap((frame) => (frame.startsWith('data: {') ? [JSON.parse(frame.slice(6))] : []))
  const call = (members: JsonObject) => chunk({ tool_calls: [members] })

  test.each([
    ['tool_calls', 'tool_calls'],
    ['stop', 'tool_calls'],
    [null, 'tool_calls'],
    ['length', 'length'],
  ])('BR-023 a turn with a call that ends with %s ends with %s', async (raw, reason) => {
    const calls = [call({ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } })]
    const { text, forwarded } = await forward([
      sse(role, chunk({ content: 'ok' }), ...calls, ...(raw === null ? [] : [chunk({}, raw)]), '[DONE]'),
    ])
    const reasons = dataOf(text())
      .map(({ choices }) => choices[0]?.finish_reason)
      .filter(Boolean)
    expect(reasons).toEqual([reason])
    expect(forwarded.finish).toBe(reason)
    expect(text().endsWith('data: [DONE]\n\n')).toBe(true)
  })

  test('BR-023 a plain end without a reason gets one', async () => {
    const { text } = await forward([sse(role, chunk({ content: 'ok' }), '[DONE]')])
    expect(dataOf(text()).at(-1)).toEqual(chunk({}, 'stop'))
  })

  test('BR-027 BR-038 there is one role, in the first chunk, whether the upstream repeats it or leaves it out', async () => {
    for (const deltas of [
      [
        { role: 'assistant', content: 'a' },
        { role: 'assistant', content: 'b' },
      ],
      [{ content: 'a' }, { content: 'b' }],
    ]) {
      const { text } = await forward([sse(...deltas.map((delta) => chunk(delta)), chunk({}, 'stop'), '[DONE]')])
      expect(dataOf(text()).map(({ choices }) => choices[0].delta.role)).toEqual(['assistant', undefined, undefined])
      expect(
        dataOf(text())
          .map(({ choices }) => choices[0].delta.content)
          .join(''),
      ).toBe('ab')
    }
  })

  test('BR-036 calls without index, id or type get them, stably', async () => {
    const { text } = await forward([
      sse(
        role,
        chunk({
          tool_calls: [
            { function: { name: 'f', arguments: '{"n":1}' } },
            { id: 'b', function: { name: 'f', arguments: '{"n"' } },
          ],
        }),
        call({ id: '', function: { arguments: ':2}' } }),
        chunk({}, 'tool_calls'),
        '[DONE]',
      ),
    ])
    const fragments = dataOf(text()).flatMap(({ choices }) => choices[0].delta.tool_calls ?? [])
    expect(fragments).toEqual([
      {
        index: 0,
        id: expect.stringMatching(/^call_\w+$/),
        type: 'function',
        function: { name: 'f', arguments: '{"n":1}' },
      },
      { index: 1, id: 'b', type: 'function', function: { name: 'f', arguments: '{"n"' } },
      { index: 1, function: { arguments: ':2}' } },
    ])
  })

  test('calls that are in order go out as they came', async () => {
    const bytes = openAiStream(
      {
        says: [
          { text: 'ok' },
          { call: { id: 'a', name: 'f', input: { q: 'é' } } },
          { call: { id: 'b', name: 'g', input: {} } },
        ],
      },
      { stream_options: { include_usage: true } },
    )
    const { text, forwarded } = await forward([bytes])
    expect(text()).toBe(bytes)
    expect(forwarded.finish).toBe('tool_calls')
  })

  test('several choices pass, each mended by itself', async () => {
    const of = (index: number, delta: JsonObject, finish_reason: string | null = null) => ({
      ...chunk({}),
      choices: [{ index, delta, finish_reason }],
    })
    const bytes = sse(
      of(0, { role: 'assistant' }),
      of(1, { role: 'assistant' }),
      of(0, { content: 'a' }),
      of(1, { content: 'b' }),
      of(0, {}, 'stop'),
      of(1, {}, 'length'),
      '[DONE]',
    )
    expect((await forward([bytes], { n: 2 })).text()).toBe(bytes)
  })
})

describe('an answer that is not streamed', () => {
  test('goes out byte for byte, with usage read in passing', async () => {
    const body = ` {"id":"x","choices":[{"index":0,"message":{"role":"assistant","content":"é"},"finish_reason":"stop"}],\n"usage":${JSON.stringify(usage)},"big":12345678901234567890}`
    const { text, head, forwarded } = await forward([body], { stream: false, stream_options: null }, 'application/json')
    expect(text()).toBe(body)
    expect(head()).toEqual({
      status: 200,
      headers: { 'content-type': 'application/json; charset=utf-8', 'content-length': String(Buffer.byteLength(body)) },
    })
    expect(forwarded).toMatchObject({ tokens: { input: 3, output: 4 }, finish: 'stop', fault: undefined })
  })

  test('BR-023 BR-036 a call in it has an id and the tool reason', async () => {
    const message = { role: 'assistant', content: 'ok', tool_calls: [{ function: { name: 'f', arguments: '{}' } }] }
    const body = JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }] })
    const { text } = await forward([body], { stream: false, stream_options: null }, 'application/json')
    expect(JSON.parse(text()).choices[0]).toMatchObject({
      finish_reason: 'tool_calls',
      message: {
        tool_calls: [
          { id: expect.stringMatching(/^call_/), type: 'function', function: { name: 'f', arguments: '{}' } },
        ],
      },
    })
  })

  test.each([
    ['nothing', '', 'upstream'],
    ['HTML', '<html>', 'upstream'],
    ['no choices', '{}', 'upstream'],
    ['an empty list of choices', '{"choices":[]}', 'upstream'],
    ['an error inside a 200', '{"error":{"message":"slow down","code":"rate_limit_exceeded"}}', 'rate_limited'],
  ])('BR-018 %s is a failure with a status of its own', async (_, body, failure) => {
    const to = sinkOf()
    const request = chatRequest({})
    expect(
      await faultOf(forwardChat(replyOf([body], 'application/json'), request, to.sink, origin, silent)),
    ).toMatchObject({
      failure,
    })
    expect(to.head()).toBe(undefined)
  })
})

describe('a server that does not do as it was asked', () => {
  const message = { role: 'assistant', content: 'Hello' }
  const whole = {
    ...chunk({}),
    object: 'chat.completion',
    choices: [{ index: 0, message, finish_reason: 'stop' }],
    usage,
  }

  test('an answer that is not streamed becomes a stream for a client that wants one', async () => {
    const { text, head, forwarded } = await forward([JSON.stringify(whole)], {}, 'application/json')
    expect(head()).toMatchObject({ headers: { 'content-type': 'text/event-stream; charset=utf-8' } })
    expect(text()).toContain('"delta":{"content":"Hello"}')
    expect(text()).toContain(`"usage":${JSON.stringify(usage)}`)
    expect(text().endsWith('data: [DONE]\n\n')).toBe(true)
    expect(forwarded).toMatchObject({ tokens: { input: 3, output: 4 }, finish: 'stop', outputCharacters: 5 })
  })

  test('a stream becomes an answer for a client that wants none', async () => {
    const { text, head, forwarded } = await forward([proper], { stream: false, stream_options: null })
    expect(head()).toMatchObject({ headers: { 'content-type': 'application/json; charset=utf-8' } })
    expect(JSON.parse(text())).toMatchObject({ object: 'chat.completion', choices: [{ finish_reason: 'stop' }], usage })
    expect(forwarded).toMatchObject({ tokens: { input: 3, output: 4 }, finish: 'stop' })
  })
})

test('the fast lane is open for a Chat client of a Chat upstream only, and the upstream sees a proper request', async () => {
  const fake = await fakeOpenAi([callsTools([{ name: 'mine', input: {} }]), says('x')])
  const models = modelsAt(fake, { type: 'openai' })
  const { provider } = models.resolve('up:m')
  const request = asked({ tools: [{ type: 'function', function: { name: 'mine' } }] })
  expect(canForward(provider, { ...request.turn, dialect: 'messages' })).toBe(false)
  if (!canForward(provider, request.turn)) throw new Error('the fast lane is closed')
  const to = sinkOf()
  expect(await provider.forward(request, to.sink, soon())).toMatchObject({
    finish: 'tool_calls',
    tokens: { input: 11, output: 7 },
  })
  expect(fake.refusals).toEqual([])
  await models.close()
  await fake.close()
})

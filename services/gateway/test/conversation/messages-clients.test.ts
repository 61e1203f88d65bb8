import Anthropic from '@anthropic-ai/sdk'
import { anthropicStream, callsTools, says } from '@tollgate/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hit } from '../brokers.ts'
import { eventsIn, mistakesIn, openMessagesRig, wires } from './messages-rig.ts'

let rig: Awaited<ReturnType<typeof openMessagesRig>>
beforeAll(async () => {
  rig = await openMessagesRig()
}, 60_000)
afterAll(() => rig.close())

const weather = { name: 'get_weather', description: 'Weather', input_schema: { type: 'object', properties: {} } }
const time = { type: 'custom', name: 'now', input_schema: { type: 'object' } }
const searching = { type: 'otari_web_search' }
const OURS = /^otari_srvtoolu_[0-9a-f]{32}$/

/** Kinds and contents of an answer's blocks, without the members that only some upstreams send. */
const saidIn = ({ content }: { content: object[] }) =>
  (content as Record<string, unknown>[]).map(({ type, text, thinking, signature, id, name, input }) =>
    JSON.parse(JSON.stringify({ type, text, thinking, signature: signature || undefined, id, name, input })),
  )

describe.each(wires)('the vendor’s client over the %s wire', (wire) => {
  const over =
    (streamed: boolean) =>
    (ask = {}, headers = {}) =>
      rig.ask(wire, streamed, ask, headers)

  describe.each([false, true])('streamed: %s', (streamed) => {
    const ask = over(streamed)

    test('R-03 reads a text answer under the model’s name as it asked for it', async () => {
      rig.play(says('Hellö wörld 😀'))
      const message = await ask({ system: 'Be brief.', temperature: 0.5, stop_sequences: ['END'] })
      expect(message).toMatchObject({
        id: expect.stringMatching(/^msg_/),
        type: 'message',
        role: 'assistant',
        model: `${wire}:m`,
        content: [{ type: 'text', text: 'Hellö wörld 😀' }],
        stop_reason: 'end_turn',
        usage: { input_tokens: 11, output_tokens: 7 },
      })
      expect(rig.fakes[wire].refusals).toEqual([])
      expect(rig.sent(wire)[0]).toMatchObject({ model: 'm', temperature: 0.5 })
      expect(rig.brokers.settled).toMatchObject([
        { status: 'success', endpoint: '/api/v1/messages', tokens: { input: 11, output: 7 }, estimated: false },
      ])
    })

    test('R-02 BR-009 gets the calls of its own tools, several in a turn, as the model made them', async () => {
      const calls = [
        { id: 'toolu_a', name: 'get_weather', input: { city: 'Oslo "x"' } },
        { id: 'toolu_b', name: 'now', input: {} },
      ]
      rig.play(callsTools(calls, { first: [{ text: 'Let me see.' }] }))
      const message = await ask({ tools: [weather, time] })
      expect(saidIn(message)).toEqual([
        { type: 'text', text: 'Let me see.' },
        ...calls.map((call) => ({ type: 'tool_use', ...call })),
      ])
      expect(message.stop_reason).toBe('tool_use')

      rig.play(says('Sunny.'))
      const results = calls.map(({ id }) => ({ type: 'tool_result' as const, tool_use_id: id, content: 'fine' }))
      const answered = await ask({
        tools: [weather, time],
        messages: [
          { role: 'user', content: 'hi' },
          { role: 'assistant', content: message.content },
          { role: 'user', content: [...results, { type: 'text', text: 'And?' }] },
        ],
      })
      expect(rig.fakes[wire].refusals).toEqual([])
      expect(saidIn(answered)).toEqual([{ type: 'text', text: 'Sunny.' }])
    })

    test('R-01 R-23 R-31 gets one answer of a searched question, and nothing of the search', async () => {
      rig.play(
        callsTools([{ name: 'web_search', input: { query: 'python' } }], { first: [{ text: 'One moment. ' }] }),
        callsTools([{ name: 'web_search', input: { query: 'release' } }]),
        says('Python 3.14 [1].'),
      )
      const message = await ask({ tools: [searching], tool_choice: { type: 'any' } })
      expect(rig.fakes[wire].refusals).toEqual([])
      expect(saidIn(message)).toEqual([
        { type: 'text', text: 'One moment. ' },
        { type: 'text', text: 'Python 3.14 [1].' },
      ])
      expect(message).toMatchObject({ stop_reason: 'end_turn', usage: { input_tokens: 33, output_tokens: 21 } })
      expect(rig.brokers.asked.search.map(({ query }) => query)).toEqual(['python', 'release'])
      expect(rig.brokers.settled).toMatchObject([{ tokens: { input: 33, output: 21 }, lines: [{}, {}] }])
      // T-28: the choice is released, or the model could never answer
      expect(rig.sent(wire).map(({ tool_choice }) => tool_choice)).toEqual(
        wire === 'anthropic' ? [{ type: 'any' }, { type: 'auto' }, { type: 'auto' }] : ['required', 'auto', 'auto'],
      )
    })

    test('R-33 BR-055 gets its own call of a mixed turn, whose other half the model is shown again', async () => {
      rig.play(
        callsTools([
          { id: 'toolu_a', name: 'web_search', input: { query: 'x' } },
          { id: 'toolu_b', name: 'get_weather', input: { city: 'Oslo' } },
        ]),
      )
      const tools = [searching, weather]
      const message = await ask({ tools })
      expect(saidIn(message)).toEqual([
        { type: 'tool_use', id: 'toolu_b', name: 'get_weather', input: { city: 'Oslo' } },
      ])
      expect(message.stop_reason).toBe('tool_use')

      rig.play(says('Fine.'))
      await ask({
        tools,
        messages: [
          { role: 'user', content: 'hi' },
          { role: 'assistant', content: message.content },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_b', content: 'rain' }] },
        ],
      })
      expect(rig.fakes[wire].refusals).toEqual([])
      expect(rig.brokers.asked.search).toEqual([])
      const text = JSON.stringify(rig.sent(wire)[0])
      expect(text).toContain('toolu_a')
      expect(text).toContain('Text 1')
      expect(text).toContain('rain')
    })

    test('a call that was cut off ends for the length, and is not run', async () => {
      const cut = { finish: wire === 'anthropic' ? 'max_tokens' : 'length' }
      rig.play(callsTools([{ id: 'toolu_c', name: 'get_weather', input: { city: 'O' } }], cut))
      expect((await ask({ tools: [weather] })).stop_reason).toBe('max_tokens')
      rig.play(callsTools([{ id: 'toolu_c', name: 'web_search', input: { query: 'O' } }], cut))
      expect(await ask({ tools: [searching] })).toMatchObject({ stop_reason: 'max_tokens', content: [] })
      expect(rig.brokers.asked.search).toEqual([])
    })

    test('BR-002 BR-147 cached tokens are counted beside the input', async () => {
      const usage =
        wire === 'anthropic'
          ? { input_tokens: 200, cache_read_input_tokens: 1000, cache_creation_input_tokens: 0, output_tokens: 20 }
          : { prompt_tokens: 1200, completion_tokens: 20, prompt_tokens_details: { cached_tokens: 1000 } }
      rig.play(says('x', { usage }))
      expect((await ask()).usage).toMatchObject({
        input_tokens: 200,
        cache_read_input_tokens: 1000,
        output_tokens: 20,
      })
      expect(rig.brokers.settled[0]?.tokens).toMatchObject({ input: 200, cacheRead: 1000, output: 20 })
    })

    test('an upstream without usage is counted by its length, and the client gets a usage all the same', async () => {
      rig.play(says('x'.repeat(400), { usage: null }))
      expect((await ask()).usage).toMatchObject({ output_tokens: expect.any(Number) })
      expect(rig.brokers.settled[0]).toMatchObject({ status: 'success', estimated: true })
      const { output } = rig.brokers.settled[0]!.tokens
      expect(output).toBeGreaterThan(80)
      expect(output).toBeLessThan(240)
    })

    test('an error before the first byte is a status and an error that the client knows', async () => {
      const body = JSON.stringify({ type: 'error', error: { type: 'rate_limit_error', message: 'slow down' } })
      rig.play({ status: 429, headers: { 'retry-after': '7', 'content-type': 'application/json' }, body })
      const error = await ask().catch((thrown: unknown) => thrown)
      expect(error).toBeInstanceOf(Anthropic.RateLimitError)
      expect(error).toMatchObject({
        status: 429,
        error: { detail: { type: 'error', error: { type: 'rate_limit_error', message: 'slow down' } } },
      })
      expect((error as { headers: Headers }).headers.get('retry-after')).toBe('7')
      expect(rig.brokers.settled).toMatchObject([{ status: 'error', error: 'rate_limited' }])
    })
  })

  test('R-03 R-30 R-63 a stream has one message, its blocks one after the other, and ends with done', async () => {
    for (const tools of [[weather], [searching, weather]]) {
      rig.play(
        callsTools(
          [
            { id: 'toolu_a', name: 'get_weather', input: { a: 1 } },
            { id: 'toolu_b', name: 'get_weather', input: {} },
          ],
          { first: [{ text: 'Hm.' }] },
        ),
      )
      const reply = await rig.post(wire, { stream: true, tools })
      expect(reply.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
      const events = eventsIn(await reply.text())
      expect(mistakesIn(events)).toEqual([])
      expect(events.at(-1)).toEqual({ event: 'done' })
      expect(events.at(-2)).toEqual({ event: 'message_stop', type: 'message_stop' })
      expect(events.filter(({ event }) => event === 'content_block_start').map(({ index }) => index)).toEqual([0, 1, 2])
    }
  })

  test('R-62 BR-001 an error after the first byte ends the stream with an error event and nothing after it', async () => {
    const whole = anthropicStream({ says: [{ text: 'Hello' }] }, { model: 'm' })
    const cut =
      wire === 'anthropic'
        ? `${whole.slice(0, whole.indexOf('event: content_block_stop'))}event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}\n\n`
        : 'data: {"id":"c","choices":[{"index":0,"delta":{"role":"assistant","content":"Hello"}}]}\n\ndata: {"error":{"message":"busy"}}\n\n'
    for (const tools of [[], [searching]]) {
      rig.play({ headers: { 'content-type': 'text/event-stream' }, body: cut })
      const events = eventsIn(await (await rig.post(wire, { stream: true, tools })).text())
      expect(
        events
          .filter(({ delta }) => delta?.text)
          .map(({ delta }) => delta?.text)
          .join(''),
      ).toBe('Hello')
      expect(events.at(-1)).toEqual({
        event: 'error',
        type: 'error',
        error: { type: 'api_error', message: 'An error occurred during streaming' },
      })
      expect(events.some(({ event }) => event === 'message_stop' || event === 'done')).toBe(false)
      expect(rig.brokers.settled).toMatchObject([{ status: 'error' }])
    }
  })

  test('R-20 R-21 R-22 a search in the vendor’s own vocabulary comes back as a pair of blocks, streamed or not', async () => {
    const tools = [{ type: 'web_search_20250305', name: 'web_search' }]
    const headers = { 'otari-web-search': 'otari' }
    const script = () =>
      rig.play(
        callsTools([{ name: 'web_search', input: { query: 'python' } }], { first: [{ text: 'Let me check.' }] }),
        says('Python 3.14.'),
      )
    rig.brokers.search = async () => ({
      status: 'ok',
      label: 'exa:main',
      hits: [{ ...hit(1), date: '2026-10-05' }, hit(2)],
    })
    script()
    const stream = eventsIn(await (await rig.post(wire, { stream: true, tools }, headers)).text())
    expect(mistakesIn(stream)).toEqual([])
    const starts = stream.flatMap(({ content_block: block }) => (block ? [block] : []))
    expect(starts.map(({ type }) => type)).toEqual(['text', 'server_tool_use', 'web_search_tool_result', 'text'])
    const kinds = stream.filter(({ index }) => index === 1 || index === 2).map(({ event }) => event)
    expect(kinds).toEqual(['content_block_start', 'content_block_stop', 'content_block_start', 'content_block_stop'])

    for (const streamed of [false, true]) {
      script()
      const { content } = await rig.ask(wire, streamed, { tools }, headers)
      const id = (content[1] as { id: string }).id
      expect(id).toMatch(OURS)
      expect(content).toMatchObject([
        { type: 'text', text: 'Let me check.' },
        { type: 'server_tool_use', id, name: 'web_search', input: { query: 'python' } },
        {
          type: 'web_search_tool_result',
          tool_use_id: id,
          content: [
            {
              type: 'web_search_result',
              url: 'https://site.test/1',
              title: 'Title 1',
              page_age: '2026-10-05',
              encrypted_content: '',
            },
            { type: 'web_search_result', url: 'https://site.test/2', title: 'Title 2', encrypted_content: '' },
          ],
        },
        { type: 'text', text: 'Python 3.14.' },
      ])

      // what the client echoes of it reaches no model
      rig.play(says('Yes.'))
      await rig.ask(wire, streamed, {
        messages: [
          { role: 'user', content: 'hi' },
          { role: 'assistant', content },
          { role: 'user', content: 'Sure?' },
        ],
      })
      expect(rig.fakes[wire].refusals).toEqual([])
      expect(JSON.stringify(rig.sent(wire))).not.toContain('otari_')
    }
  })
})

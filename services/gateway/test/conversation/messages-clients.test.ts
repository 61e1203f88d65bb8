import { setTimeout as sleep } from 'node:timers/promises'
import Anthropic from '@anthropic-ai/sdk'
import { Fault } from '@tollgate/contracts'
import { anthropicStream, callsTools, says } from '@tollgate/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hit } from '../brokers.ts'
import { eventsIn, mistakesIn } from './messages-events.ts'
import { openMessagesRig, wires } from './messages-rig.ts'

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

describe.each([false, true])('over the vendor’s own wire, streamed: %s', (streamed) => {
  const ask = (params = {}, headers = {}) => rig.ask('anthropic', streamed, params, headers)

  test('BR-003 BR-015 thinking is replayed with its signature around a call of ours, and shown once in order', async () => {
    const first = [
      { thinking: 'A', signature: 'sig-1' },
      { text: 'x' },
      { redacted: 'opaque' },
      { thinking: 'B', signature: 'sig-2' },
    ]
    rig.play(callsTools([{ id: 'toolu_1', name: 'web_search', input: { query: 'q' } }], { first }), {
      says: [{ thinking: 'C', signature: 'sig-3' }, { text: 'Done.' }],
    })
    const thinking = { type: 'enabled', budget_tokens: 1_024 }
    const message = await ask({ thinking, tools: [searching] })
    expect(rig.fakes.anthropic.refusals).toEqual([])
    expect(saidIn(message)).toEqual([
      { type: 'thinking', thinking: 'A', signature: 'sig-1' },
      { type: 'text', text: 'x' },
      { type: 'redacted_thinking' },
      { type: 'thinking', thinking: 'B', signature: 'sig-2' },
      { type: 'thinking', thinking: 'C', signature: 'sig-3' },
      { type: 'text', text: 'Done.' },
    ])
    const second = rig.sent('anthropic')[1]?.messages as object[] | undefined
    expect(second?.[1]).toEqual({
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'A', signature: 'sig-1' },
        { type: 'text', text: 'x' },
        { type: 'redacted_thinking', data: 'opaque' },
        { type: 'thinking', thinking: 'B', signature: 'sig-2' },
        { type: 'tool_use', id: 'toolu_1', name: 'web_search', input: { query: 'q' } },
      ],
    })

    // and the client’s own history of it is taken back
    rig.play(says('Yes.'))
    await ask({
      thinking,
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: message.content },
        { role: 'user', content: 'Sure?' },
      ],
    })
    expect(rig.fakes.anthropic.refusals).toEqual([])
  })

  test('BR-056 a pause in the provider’s own tools is gone on from, and the answer is one', async () => {
    const paused = {
      id: 'msg_p',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [
        { type: 'text', text: 'Searching. ' },
        { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'q' } },
      ],
      stop_reason: 'pause_turn',
      usage: { input_tokens: 5, output_tokens: 2 },
    }
    const json = { headers: { 'content-type': 'application/json' }, body: JSON.stringify(paused) }
    const tools = [{ type: 'web_search_20250305', name: 'web_search' }]
    rig.play(json, says('Found it.'))
    const message = await ask({ tools })
    expect(message).toMatchObject({
      stop_reason: 'end_turn',
      content: [...paused.content, { type: 'text', text: 'Found it.' }],
      usage: { input_tokens: 16, output_tokens: 9 },
    })
    expect(rig.fakes.anthropic.refusals).toEqual([])
    expect(rig.sent('anthropic')[1]?.messages).toEqual([
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: paused.content },
    ])
    expect(rig.sent('anthropic')[0]?.tools).toEqual(tools)
    // at the bound the client is told as the vendor would tell it
    rig.play(json)
    expect((await ask({ tools, max_tool_iterations: 1 })).stop_reason).toBe('pause_turn')
  })

  test('BR-043 an overloaded provider is a 529, and its quota headers reach its clients', async () => {
    rig.play({
      status: 529,
      headers: { 'retry-after': '3', 'anthropic-ratelimit-unified-status': 'rejected', 'set-cookie': 'a=b' },
      body: JSON.stringify({ type: 'error', error: { type: 'overloaded_error', message: 'busy' } }),
    })
    const error = (await ask().catch((thrown: unknown) => thrown)) as { status: number; headers: Headers }
    expect(error.status).toBe(529)
    expect(Object.fromEntries(error.headers)).toMatchObject({
      'retry-after': '3',
      'anthropic-ratelimit-unified-status': 'rejected',
    })
    expect(error.headers.has('set-cookie')).toBe(false)
  })
})

test('BR-017 what another vendor’s model thought is shown, and its echo is no thinking of Anthropic’s', async () => {
  for (const streamed of [false, true]) {
    rig.play(
      callsTools([{ id: 'toolu_1', name: 'get_weather', input: {} }], {
        first: [{ thinking: 'hm' }, { text: 'Let me see.' }],
      }),
    )
    const { content } = await rig.ask('openai-chat', streamed, { tools: [weather] })
    expect(content.map(({ type }) => type)).toEqual(['thinking', 'text', 'tool_use'])
    for (const provider of wires) {
      rig.play(says('Fine.'))
      await rig.ask(provider, streamed, {
        tools: [weather],
        thinking: { type: 'enabled', budget_tokens: 1_024 },
        messages: [
          { role: 'user', content: 'hi' },
          { role: 'assistant', content },
          { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'rain' }] },
        ],
      })
      expect(rig.fakes[provider].refusals).toEqual([])
      expect(JSON.stringify(rig.sent(provider)[0]?.messages)).not.toContain('hm')
    }
  }
})

test('R-64 BR-025 pings keep a stream alive while a tool runs, never within a frame and none after the end', async () => {
  const { settings } = rig.gateway
  const { search } = rig.brokers
  const { streamingKeepaliveIntervalMs } = settings
  settings.streamingKeepaliveIntervalMs = 20
  rig.brokers.search = async (...asked) => {
    await sleep(300)
    return search(...asked)
  }
  rig.play(callsTools([{ name: 'web_search', input: { query: 'q' } }], { first: [{ text: 'Wait.' }] }), says('Done.'))
  const events = eventsIn(await (await rig.post('openai-chat', { stream: true, tools: [searching] })).text())
  rig.brokers.search = search
  settings.streamingKeepaliveIntervalMs = streamingKeepaliveIntervalMs
  expect(mistakesIn(events)).toEqual([])
  const pings = events.filter(({ event }) => event === 'ping')
  expect(pings.length).toBeGreaterThan(1)
  expect(pings.every(({ type }) => type === 'ping')).toBe(true)
  expect(events.at(-1)?.event).toBe('done')
})

test('BR-055 a mixed turn by the vendor’s keyword is shown again to the model when its echo comes back', async () => {
  const tools = [{ type: 'web_search_20250305', name: 'web_search' }, weather]
  const headers = { 'otari-web-search': 'otari' }
  for (const streamed of [false, true]) {
    rig.play(
      callsTools([
        { id: 'toolu_s', name: 'web_search', input: { query: `x ${streamed}` } },
        { id: 'toolu_w', name: 'get_weather', input: {} },
      ]),
    )
    const { content } = await rig.ask('anthropic', streamed, { tools }, headers)
    expect(content.map(({ type }) => type).sort()).toEqual(['server_tool_use', 'tool_use', 'web_search_tool_result'])
    rig.play(says('Fine.'))
    const result = { type: 'tool_result' as const, tool_use_id: 'toolu_w', content: 'rain' }
    await rig.ask(
      'anthropic',
      streamed,
      {
        tools,
        messages: [
          { role: 'user', content: 'hi' },
          { role: 'assistant', content },
          { role: 'user', content: [result] },
        ],
      },
      headers,
    )
    expect(rig.fakes.anthropic.refusals).toEqual([])
    expect(rig.brokers.asked.search).toEqual([])
    expect(rig.sent('anthropic')[0]?.messages).toMatchObject([
      { role: 'user' },
      {
        role: 'assistant',
        content: [
          { type: 'tool_use', id: 'toolu_s' },
          { type: 'tool_use', id: 'toolu_w' },
        ],
      },
      { role: 'user', content: [{ tool_use_id: 'toolu_s', content: expect.stringContaining('Text 1') }, result] },
    ])
  }
})

describe('the API beside its answers', () => {
  test('the vendor’s client of beta features reads both ways, and its features reach the vendor', async () => {
    for (const [provider, tools] of [
      ['anthropic', []],
      ['anthropic', [searching]],
      ['openai-chat', []],
    ] as const) {
      const params = {
        model: `${provider}:m`,
        max_tokens: 100,
        messages: [{ role: 'user' as const, content: 'hi' }],
        tools: tools as never,
        betas: ['context-management-2025-06-27'],
      }
      rig.play(says('Hello.'), says('Hello.'))
      const whole = await rig.sdk.beta.messages.create(params)
      const streamed = await rig.sdk.beta.messages.stream(params).finalMessage()
      for (const message of [whole, streamed])
        expect(message).toMatchObject({ model: `${provider}:m`, content: [{ type: 'text', text: 'Hello.' }] })
      expect(rig.fakes[provider].requests.map(({ headers }) => headers['anthropic-beta'])).toEqual(
        provider === 'anthropic' ? [params.betas[0], params.betas[0]] : [undefined, undefined],
      )
    }
  })

  test('BR-029 tokens are counted by a provider that counts, and estimated for any other, tools included', async () => {
    const messages = [{ role: 'user' as const, content: 'x'.repeat(400) }]
    const schema = { type: 'object' as const, properties: { a: { type: 'string', description: 'd'.repeat(4_000) } } }
    const tools = [{ name: 'f', input_schema: schema }]
    const count = async (provider: string, more = {}) =>
      (await rig.sdk.messages.countTokens({ model: `${provider}:m`, messages, ...more })).input_tokens
    rig.play()
    const sent = JSON.stringify([undefined, messages, tools]).length
    expect(await count('anthropic', { tools })).toBe(sent)
    expect(rig.fakes.anthropic.refusals).toEqual([])
    expect(rig.sent('anthropic')).toEqual([{ model: 'm', messages, tools }])
    for (const provider of ['openai-chat', 'compatible']) {
      const bare = await count(provider)
      expect(bare).toBe(101)
      expect((await count(provider, { tools })) - bare).toBeGreaterThan(1_000)
      const image = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'A'.repeat(1e6) } }
      expect(await count(provider, { messages: [{ role: 'user', content: [image] }] })).toBeLessThan(2_000)
    }
    // a tool of ours counts as the model would be shown it
    expect(await count('openai-chat', { tools: [searching] })).toBeGreaterThan(130)
    expect(rig.brokers.asked.reserved).toEqual([])
    expect(rig.brokers.settled).toEqual([])
  })

  test.each([
    ['/api/v1/messages', { messages: [] }, 422, expect.any(Array)],
    ['/api/v1/messages/count_tokens', { messages: [] }, 422, expect.any(Array)],
    ['/api/v1/messages', { model: 'nobody:m' }, 404, 'not_found_error'],
    ['/api/v1/messages/count_tokens', { model: 'nobody:m' }, 404, 'not_found_error'],
    ['/api/v1/messages', { tools: [{ type: 'otari_web_fetch', extra: 1 }] }, 400, 'invalid_request_error'],
    ['/v1/messages', { model: 'openai-chat:m', top_k: 3 }, 400, 'invalid_request_error'],
    [
      '/api/v1/messages',
      { model: 'openai-chat:m', tools: [{ type: 'foo_20990101', name: 'foo' }] },
      400,
      'invalid_request_error',
    ],
  ])('R-60 R-65 %s with %j is a %i', async (path, body, status, type) => {
    rig.play()
    const reply = await rig.post('anthropic', body, {}, path)
    expect(reply.status).toBe(status)
    expect(await reply.json()).toEqual(
      typeof type === 'string'
        ? { detail: { type: 'error', error: { type, message: expect.any(String) } } }
        : { detail: type },
    )
    expect([...rig.sent('anthropic'), ...rig.sent('openai-chat')]).toEqual([])
  })

  test('R-60 R-61 prices that are missing and keys that are wrong are told in this dialect', async () => {
    const { reserve } = rig.brokers
    rig.brokers.reserve = async () => {
      throw new Fault('pricing_required', 'no price')
    }
    rig.play()
    const unpriced = await rig.post('anthropic', { tools: [searching] })
    rig.brokers.reserve = reserve
    expect([unpriced.status, await unpriced.json()]).toEqual([
      402,
      { detail: { type: 'error', error: { type: 'api_error', message: 'no price' } }, code: 'pricing_required' },
    ])
    const unknown = await rig.post('anthropic', {}, { 'otari-key': 'gw-wrong' })
    expect([unknown.status, await unknown.json()]).toMatchObject([
      401,
      { detail: { error: { type: 'authentication_error' } } },
    ])
  })

  test('A-05 with the master key a user is named as metadata.user_id', async () => {
    rig.play()
    const reply = await rig.post('anthropic', {}, { 'otari-key': rig.gateway.masterKey })
    expect([reply.status, JSON.stringify(await reply.json())]).toEqual([
      400,
      expect.stringContaining("'metadata.user_id' field is required"),
    ])
  })

  test('R-56 C-04 code by the vendor’s keyword comes back as a pair, and is told in words when it is echoed', async () => {
    const tools = [{ type: 'code_execution_20250825', name: 'code_execution' }]
    for (const streamed of [false, true]) {
      rig.play(callsTools([{ name: 'code_execution', input: { code: 'print(1)' } }]), says('It is 1.'))
      const { content } = await rig.ask('openai-chat', streamed, { tools })
      expect(content).toMatchObject([
        {
          type: 'server_tool_use',
          id: expect.stringMatching(OURS),
          name: 'code_execution',
          input: { code: 'print(1)' },
        },
        {
          type: 'code_execution_tool_result',
          content: { type: 'code_execution_result', stdout: '1\n', stderr: '', return_code: 0, content: [] },
        },
        { type: 'text', text: 'It is 1.' },
      ])
      for (const provider of wires) {
        rig.play(says('Yes.'))
        await rig.ask(provider, streamed, {
          messages: [
            { role: 'user', content: 'hi' },
            { role: 'assistant', content },
            { role: 'user', content: 'Sure?' },
          ],
        })
        expect(rig.fakes[provider].refusals).toEqual([])
        const text = JSON.stringify(rig.sent(provider))
        expect(text).toContain('I ran this code')
        expect(text).toContain('print(1)')
        expect(text).not.toContain('otari_')
      }
    }
  })

  test('BR-053 L-06 a model that keeps searching is told to answer, and its calls never reach the client', async () => {
    for (const provider of wires) {
      const searches = () => callsTools([{ name: 'web_search', input: { query: 'x' } }])
      rig.play(searches(), searches(), says('Enough.'))
      const message = await rig.ask(provider, true, { tools: [searching], max_tool_iterations: 3, system: 'S' })
      expect(message).toMatchObject({ stop_reason: 'end_turn', content: [{ type: 'text', text: 'Enough.' }] })
      expect(rig.fakes[provider].refusals).toEqual([])
      expect(JSON.stringify(rig.sent(provider)[2])).toContain('No more tool calls are available')
      rig.play(searches())
      const stuck = await rig.post(provider, { tools: [searching], max_tool_iterations: 1 })
      expect([stuck.status, JSON.stringify(await stuck.json())]).toEqual([
        422,
        expect.stringContaining('max_tool_iterations=1'),
      ])
    }
  })

  test('two turns of one conversation give the vendor bodies with the same beginning, with hints and tools of ours', async () => {
    const first = { role: 'user' as const, content: 'one' }
    const body = {
      system: [{ type: 'text', text: 'S', cache_control: { type: 'ephemeral' } }],
      tools: [searching, weather],
    }
    rig.play(says('A'), says('B'))
    await rig.ask('anthropic', false, { ...body, messages: [first] })
    await rig.ask('anthropic', false, {
      ...body,
      messages: [first, { role: 'assistant', content: 'A' }, { role: 'user', content: 'two' }],
    } as never)
    const [one = '', two = ''] = rig.fakes.anthropic.requests.map(({ text }) => text)
    const shared = one.slice(0, one.indexOf(']', one.indexOf('"messages"')))
    expect(shared).toContain('one')
    expect(two.startsWith(shared)).toBe(true)
    const [{ system, tools }, later] = rig.sent('anthropic') as [Record<string, unknown>, Record<string, unknown>]
    expect([later.system, later.tools]).toEqual([system, tools])
  })
})

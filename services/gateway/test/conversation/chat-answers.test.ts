import { Fault } from '@tollgate/contracts'
import { callsTools, fakeMcpServer, type ScriptedReply, says } from '@tollgate/testing'
import OpenAI from 'openai'
import { describe, expect, onTestFinished, test } from 'vitest'
import { chatFunction } from '../turns.ts'
import { chunksOf, contentOf, framesOf, PATH, startGateway } from './gateway.ts'

const search = { type: 'otari_web_search' }
const weather = chatFunction('get_weather')
const messages = [{ role: 'user', content: 'Latest stable Python?' }]
const body = (more: object = {}) => ({ model: 'fake:gpt', messages, ...more })
const streamed = (more: object = {}) => body({ stream: true, stream_options: { include_usage: true }, ...more })
const asks = (query: string) => callsTools([{ name: 'web_search', input: { query }, id: `call_${query}` }])

describe('a chat with a search', () => {
  const script = () => [asks('one'), asks('two'), says('Python 3.14.0 [1].')]

  test('R-01 R-40 answers whole: the final message, the sum of usage, every search', async () => {
    const { send, firstKey, fake } = await startGateway(script())
    const { status, body: answer } = await send<Record<string, unknown>>('POST', PATH, {
      key: firstKey,
      body: body({ tools: [search] }),
    })
    expect(status).toBe(200)
    expect(answer).toMatchObject({
      object: 'chat.completion',
      model: 'fake:gpt',
      choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Python 3.14.0 [1].' } }],
      usage: { prompt_tokens: 33, completion_tokens: 21, total_tokens: 54 },
      otari_tool_calls: [
        {
          id: 'call_one',
          type: 'web_search',
          status: 'completed',
          query: 'one',
          sources: [{ url: 'https://site.test/1' }, {}],
        },
        { id: 'call_two', type: 'web_search', status: 'completed', query: 'two' },
      ],
    })
    expect(JSON.stringify(answer)).not.toContain('tool_calls":[{"id":"call_one","type":"function"')
    expect(fake.refusals).toEqual([])
    expect(fake.requests[0]?.body).toMatchObject({
      messages: [{ role: 'system', content: expect.stringContaining('- web_search:') }, ...messages],
      tools: [{ type: 'function', function: { name: 'web_search' } }],
    })
  })

  test('R-03 R-42 R-47 streams one answer that the official client reads', async () => {
    const { url, firstKey } = await startGateway(script())
    const client = new OpenAI({ baseURL: `${url}/api/v1`, apiKey: firstKey, maxRetries: 0 })
    const stream = client.chat.completions.stream(streamed({ tools: [search] }) as never)
    const completion = await stream.finalChatCompletion()
    expect(completion.choices[0]).toMatchObject({ finish_reason: 'stop', message: { content: 'Python 3.14.0 [1].' } })
    expect(completion.usage).toMatchObject({ prompt_tokens: 33, completion_tokens: 21 })
  })

  test('BR-058 a stream with a tool ends like any other, and is settled once with each call once', async () => {
    const withTool = await startGateway(script())
    const without = await startGateway([says('Python 3.14.0 [1].')])
    const [one, other] = await Promise.all([
      withTool.send('POST', PATH, { key: withTool.firstKey, body: streamed({ tools: [search] }) }),
      without.send('POST', PATH, { key: without.firstKey, body: streamed() }),
    ])
    for (const { text, headers } of [one, other]) {
      expect(headers.get('content-type')).toMatch(/^text\/event-stream/)
      expect(headers.get('cache-control')).toBe('no-cache')
      expect(headers.get('x-accel-buffering')).toBe('no')
      const chunks = chunksOf(text)
      expect(new Set(chunks.map(({ id }) => id)).size).toBe(1)
      expect(chunks.filter(({ choices }) => choices.some((choice) => choice.finish_reason !== null))).toHaveLength(1)
      expect(chunks.filter(({ usage }) => usage)).toHaveLength(1)
      expect(framesOf(text).at(-1)).toBe('[DONE]')
      expect(contentOf(text)).toBe('Python 3.14.0 [1].')
    }
    const reports = chunksOf(one.text).flatMap((chunk) => (chunk.otari_tool_calls ? [chunk] : []))
    expect(reports.map(({ choices, otari_tool_calls }) => [choices, otari_tool_calls?.map(({ id }) => id)])).toEqual([
      [[], ['call_one']],
      [[], ['call_two']],
    ])
    expect(withTool.brokers.settled).toMatchObject([
      { status: 'success', tokens: { input: 33, output: 21 }, lines: [{ outcome: 'ok' }, { outcome: 'ok' }] },
    ])
    expect(without.brokers.settled).toMatchObject([{ status: 'success', tokens: { input: 11, output: 7 }, lines: [] }])
  })

  test.each(['otari_tool_calls', 'otari_tool_activity'])(
    'R-45 a client that sends %s back with its message has it removed, and nothing else',
    async (field) => {
      const { send, firstKey, fake } = await startGateway(() => says('3.14.1'))
      const said = { role: 'assistant', content: 'Python 3.14.0 [1].', refusal: null }
      const reports = [{ id: 'call_one', type: 'web_search', status: 'completed', query: 'one', sources: [] }]
      const conversation = [...messages, { ...said, [field]: reports }, { role: 'user', content: 'And now?' }]
      for (const more of [{}, { stream: true }, { tools: [search] }]) {
        const { status } = await send('POST', PATH, { key: firstKey, body: body({ ...more, messages: conversation }) })
        expect(status).toBe(200)
        expect(fake.requests.at(-1)?.body).toMatchObject({ messages: expect.arrayContaining([said]) })
        expect(JSON.stringify(fake.requests.at(-1)?.body)).not.toContain(field)
      }
    },
  )

  test('BR-070 does the same streamed and whole', async () => {
    const { send, firstKey, brokers, fake } = await startGateway((_body, round) => script()[round % 3] ?? says(''))
    const whole = await send<{ choices: { message: { content: string } }[] }>('POST', PATH, {
      key: firstKey,
      body: body({ tools: [search] }),
    })
    const stream = await send('POST', PATH, { key: firstKey, body: streamed({ tools: [search] }) })
    expect(contentOf(stream.text)).toBe(whole.body.choices[0]?.message.content)
    expect(fake.requests).toHaveLength(6)
    expect(brokers.asked.search.map(({ query }) => query)).toEqual(['one', 'two', 'one', 'two'])
  })
})

describe('the playground', () => {
  const PLAYGROUND = '/api/v1/playground/chat/completions'
  const FIELD = 'otari_tool_activity'
  const tools = [search, { type: 'otari_web_fetch' }, { type: 'otari_code_execution' }]
  const called = callsTools([
    { name: 'web_search', input: { query: 'one' }, id: 'call_s' },
    { name: 'web_fetch', input: { url: 'https://site.test/a' }, id: 'call_f' },
    { name: 'code_execution', input: { code: 'print(1)' }, id: 'call_c' },
    { name: 'list_issues', input: { state: 'open' }, id: 'call_m' },
  ])
  /** A gateway, and a server with one tool for its requests to name. */
  async function startPlayground(script: ScriptedReply[]) {
    const served = await startGateway(script)
    const server = await fakeMcpServer()
    server.tools = [{ name: 'list_issues', run: () => '#12 is open' }]
    onTestFinished(() => server.close())
    served.brokers.fetch = async () => ({ status: 'failed', failure: 'timeout', label: 'builtin:builtin_fetch' })
    return { ...served, request: streamed({ tools, mcp_servers: [{ name: 'github', url: server.url }] }) }
  }
  type Shown = { id: string; choices: unknown[]; [FIELD]?: { id: string; phase: string; result?: string } }
  const shownIn = (text: string) => (chunksOf(text) as unknown as Shown[]).filter((chunk) => FIELD in chunk)

  test('R-05 has a chunk of its own before and after every call that runs here, in one stream with the rest', async () => {
    const { send, firstKey: key, request, brokers, fake } = await startPlayground([called, says('Done.')])
    const { status, text } = await send('POST', PLAYGROUND, { key, body: request })
    expect([status, contentOf(text), framesOf(text).at(-1)]).toEqual([200, 'Done.', '[DONE]'])
    expect(new Set(chunksOf(text).map(({ id }) => id)).size).toBe(1)
    const shown = shownIn(text)
    expect(shown.every(({ choices }) => choices.length === 0)).toBe(true)
    const told = ['completed', 'failed', 'completed', 'completed']
    const started = [
      ['call_s', 'web_search', { query: 'one' }],
      ['call_f', 'web_fetch', { url: 'https://site.test/a' }],
      ['call_c', 'code_execution', { code: 'print(1)' }],
      ['call_m', 'list_issues', { state: 'open' }],
    ]
    expect(shown.map((chunk) => chunk[FIELD])).toEqual(
      started.flatMap(([id, tool, input], at) => [
        { id, phase: 'start', tool, input },
        { id, phase: 'end', tool, status: told[at], result: expect.any(String) },
      ]),
    )
    // what the model reads is what the page shows
    const results = (fake.requests[1]!.body.messages as { role: string; content: string }[]).filter(
      ({ role }) => role === 'tool',
    )
    expect(shown.flatMap((chunk) => chunk[FIELD]?.result ?? [])).toEqual(results.map(({ content }) => content))
    expect(chunksOf(text).filter((chunk) => chunk.otari_tool_calls)).toHaveLength(2)
    expect(brokers.settled).toMatchObject([{ status: 'success', tenancy: { user: 'default' } }])
    expect(brokers.settled[0]?.endpoint).toBe(PLAYGROUND)
  })

  test('R-05 shows a call while it runs', async () => {
    const { url, firstKey, brokers, request } = await startPlayground([asks('one'), says('Done.')])
    let finish = () => {}
    brokers.search = () =>
      new Promise((resolve) => {
        finish = () => resolve({ status: 'ok', label: 'exa:main', hits: [] })
      })
    const response = await fetch(`${url}${PLAYGROUND}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${firstKey}`, 'content-type': 'application/json' },
      body: JSON.stringify(request),
    })
    let text = ''
    for await (const piece of response.body!.pipeThrough(new TextDecoderStream())) {
      text += piece
      if (!text.includes('"phase":"start"')) continue
      await expect.poll(() => brokers.asked.search.length).toBe(1)
      finish()
    }
    expect(shownIn(text).map((chunk) => chunk[FIELD]?.phase)).toEqual(['start', 'end'])
  })

  test('R-05 and no other route says a word of it, nor does this one where nothing is streamed', async () => {
    const script = [called, says('Done.')]
    const { send, firstKey: key, request } = await startPlayground(Array.from({ length: 5 }, () => script).flat())
    const { messages: _, stream_options: __, ...asked } = request as Record<string, unknown>
    const answers = [
      await send('POST', PATH, { key, body: request }),
      await send('POST', '/v1/chat/completions', { key, body: request }),
      await send('POST', PLAYGROUND, { key, body: { ...request, stream: false, stream_options: undefined } }),
      await send('POST', '/api/v1/messages', { key, body: { ...asked, messages, max_tokens: 100 } }),
      await send('POST', '/api/v1/responses', { key, body: { ...asked, input: 'hi' } }),
    ]
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200])
    for (const { text } of answers) expect([text.includes('Done.'), text.includes(FIELD)]).toEqual([true, false])
  })

  test('R-05 R-65 refuses whom and what the public route refuses, in the same words', async () => {
    const { send, firstKey: key } = await startPlayground([])
    const refusalOf = async (path: string, given: { key?: string; body: object }) => {
      const { status, body } = await send('POST', path, given)
      return [status, body]
    }
    for (const given of [
      { body: streamed() },
      { key, body: { model: 'fake:gpt' } },
      { key, body: body({ model: 'none:m' }) },
    ])
      expect(await refusalOf(PLAYGROUND, given)).toEqual(await refusalOf(PATH, given))
  })
})

test('BR-060 L-12 a mixed turn shows the client the same call, streamed and whole', async () => {
  const mixed = callsTools([
    { name: 'web_search', input: { query: 'x' }, id: 'call_a' },
    { name: 'get_weather', input: { city: 'Oslo' }, id: 'call_b' },
  ])
  const { url, firstKey, fake } = await startGateway(() => mixed)
  const client = new OpenAI({ baseURL: `${url}/api/v1`, apiKey: firstKey, maxRetries: 0 })
  const request = body({ tools: [search, weather] }) as never
  const whole = await client.chat.completions.create(request as OpenAI.ChatCompletionCreateParamsNonStreaming)
  const gathered = await client.chat.completions.stream(request).finalChatCompletion()
  for (const { choices } of [whole, gathered]) {
    expect(choices[0]?.finish_reason).toBe('tool_calls')
    expect(choices[0]?.message.tool_calls).toMatchObject([
      { id: 'call_b', type: 'function', function: { name: 'get_weather', arguments: '{"city":"Oslo"}' } },
    ])
    expect(choices[0]?.message.tool_calls).toHaveLength(1)
  }
  expect(fake.refusals).toEqual([])
})

test('BR-055 the next request shows the upstream one message with both calls, and both results', async () => {
  const mixed = callsTools([
    { name: 'web_search', input: { query: 'x' }, id: 'call_a' },
    { name: 'get_weather', input: { city: 'Oslo' }, id: 'call_b' },
  ])
  const { send, firstKey, fake, brokers } = await startGateway([mixed, says('7 degrees.')])
  const tools = [search, weather]
  const first = await send<{ choices: { message: object }[] }>('POST', PATH, { key: firstKey, body: body({ tools }) })
  const said = first.body.choices[0]?.message
  const next = [...messages, said, { role: 'tool', tool_call_id: 'call_b', content: '7' }]
  await send('POST', PATH, { key: firstKey, body: body({ tools, messages: next }) })
  const upstream = fake.requests[1]?.body.messages as {
    role: string
    tool_calls?: { id: string }[]
    tool_call_id?: string
  }[]
  expect(upstream.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'tool', 'tool'])
  expect(upstream[2]?.tool_calls?.map(({ id }) => id)).toEqual(['call_a', 'call_b'])
  expect(upstream.slice(3).map(({ tool_call_id }) => tool_call_id)).toEqual(['call_a', 'call_b'])
  expect(brokers.asked.search).toHaveLength(1)
  expect(fake.refusals).toEqual([])
})

test('R-04 a chat with code shows nothing but the answer', async () => {
  const script = () => [callsTools([{ name: 'code_execution', input: { code: 'print(1)' } }]), says('1')]
  const { send, firstKey, brokers } = await startGateway((_body, round) => script()[round % 2] ?? says(''))
  const tools = [{ type: 'otari_code_execution' }]
  const whole = await send('POST', PATH, { key: firstKey, body: body({ tools }) })
  const stream = await send('POST', PATH, { key: firstKey, body: streamed({ tools }) })
  for (const { text } of [whole, stream]) expect(text).not.toMatch(/otari_|tool_calls|print\(/)
  expect(brokers.asked.exec).toHaveLength(2)
  await expect.poll(() => brokers.asked.closed).toEqual(['s1', 's2'])
})

test('T-33 a body without a tool of ours goes upstream as it came but for the model, and comes back in its bytes', async () => {
  const { send, firstKey, fake } = await startGateway([says('Hello.')])
  const sent = body({ tools: [weather], seed: 7, metadata: { a: 'b' }, temperature: 0.5 })
  const { body: answer } = await send<object>('POST', PATH, { key: firstKey, body: sent })
  expect(fake.requests[0]?.body).toEqual({ ...sent, model: 'gpt' })
  expect(answer).toMatchObject({ id: 'chatcmpl-up-1', system_fingerprint: 'fp_fake' })
})

describe('a refusal', () => {
  test('P-15 R-61 for want of a price is a 402 with its code, and no model is asked', async () => {
    const { send, firstKey, brokers, fake } = await startGateway([says('A')])
    brokers.reserve = async () => {
      throw new Fault('pricing_required', "The gateway tool 'web_search' has no pricing")
    }
    for (const stream of [false, true]) {
      const { status, body: told } = await send('POST', PATH, {
        key: firstKey,
        body: body({ tools: [search], stream }),
      })
      expect([status, told]).toEqual([
        402,
        { detail: "The gateway tool 'web_search' has no pricing", code: 'pricing_required' },
      ])
    }
    expect(fake.requests).toEqual([])
  })

  test.each([
    ['no credential', {}, {}, 401],
    ['a body of the wrong form', { messages: 'hi' }, {}, 422],
    ['a model nobody has', { model: 'ghost:x' }, {}, 404],
    ['max_tool_iterations out of range', { max_tool_iterations: 26 }, {}, 422],
    ['a header outside its words', {}, { 'otari-web-search': 'yes' }, 400],
    ['an unknown member of a declaration', { tools: [{ ...search, foo: 1 }] }, {}, 400],
    [
      'max_uses spelled as a fraction',
      '{"model":"fake:gpt","messages":[{"role":"user","content":"x"}],"tools":[{"type":"otari_web_search","max_uses":5.0}]}',
      {},
      400,
    ],
  ])('T-32 R-65 for %s comes before everything that costs', async (what, more, headers, expected) => {
    const { send, firstKey, brokers, fake } = await startGateway([says('A')])
    const given = typeof more === 'string' ? more : body(more)
    const key = what === 'no credential' ? {} : { key: firstKey }
    const { status } = await send('POST', PATH, { ...key, headers, body: given })
    expect(status).toBe(expected)
    expect([fake.requests.length, brokers.asked.reserved.length, brokers.asked.opened.length]).toEqual([0, 0, 0])
  })

  test('A-07 A-05 R-65 for the model or the user comes before one for a declaration', async () => {
    const { send, masterKey, makeKey } = await startGateway([says('A')])
    const { key } = await makeKey({ allowed_models: ['other:*'] })
    const tools = [{ ...search, foo: 1 }]
    const denied = await send('POST', PATH, { key, body: body({ tools }) })
    expect([denied.status, denied.body]).toEqual([
      403,
      { detail: "Model 'fake:gpt' is not permitted for this API key." },
    ])
    const nobody = await send('POST', PATH, { key: masterKey, body: body({ tools }) })
    expect(nobody.status).toBe(400)
    expect(nobody.body).toEqual({ detail: "When using master key, 'user' field is required in request body" })
  })

  test('A-18 R-65 for too many requests is the last, and gives the money back', async () => {
    const { send, firstKey, brokers, fake } = await startGateway(() => says('A'), { rateLimitRpm: 1 })
    expect((await send('POST', PATH, { key: firstKey, body: body() })).status).toBe(200)
    const second = await send('POST', PATH, { key: firstKey, body: body() })
    expect([second.status, second.body]).toEqual([429, { detail: 'Rate limit exceeded' }])
    expect(Number(second.headers.get('retry-after'))).toBeGreaterThan(0)
    expect([fake.requests.length, brokers.asked.released.length, brokers.settled.length]).toEqual([1, 1, 1])
  })

  test('X-29 of a full sandbox passes on when to come back', async () => {
    const { send, firstKey, brokers, fake } = await startGateway([says('A')])
    brokers.open = async () => {
      throw new Fault('unavailable', 'pool', { retryAfterSeconds: 30 })
    }
    const tools = [{ type: 'otari_code_execution' }]
    const { status, headers, body: told } = await send('POST', PATH, { key: firstKey, body: streamed({ tools }) })
    expect([status, headers.get('retry-after'), told]).toEqual([
      503,
      '30',
      { detail: 'code_execution sandbox temporarily unavailable. Retry later.' },
    ])
    expect(fake.requests).toEqual([])
    expect(brokers.asked.released).toHaveLength(1)
  })
})

describe('a failure of the upstream', () => {
  const broken = {
    status: 500,
    headers: { 'content-type': 'application/json' },
    body: '{"error":{"message":"secret"}}',
  }

  test.each([
    ['without tools', {}],
    ['with tools', { tools: [search] }],
  ])('R-66 before the first byte is a status, %s, streamed or not', async (_what, more) => {
    const { send, firstKey, brokers } = await startGateway(() => broken)
    for (const request of [body(more), streamed(more)]) {
      const { status, text, headers } = await send('POST', PATH, { key: firstKey, body: request })
      expect(status).toBe(502)
      expect(headers.get('content-type')).toMatch(/^application\/json/)
      expect(text).not.toContain('secret')
    }
    expect(brokers.settled.map(({ status, tokens }) => [status, tokens.output])).toEqual([
      ['error', 0],
      ['error', 0],
    ])
  })

  test('BR-001 R-62 in the middle of a stream is told in it, and what came before stays', async () => {
    const half = { says: [{ text: 'Hello there, this is long' }], cutAfterBytes: 700 }
    for (const more of [{}, { tools: [search] }]) {
      const { send, firstKey, brokers } = await startGateway([half])
      const { status, text } = await send('POST', PATH, { key: firstKey, body: streamed(more) })
      expect(status).toBe(200)
      expect(contentOf(text)).toMatch(/^Hello/)
      expect(framesOf(text).slice(-2)).toEqual([
        { error: { message: 'An error occurred during streaming', type: 'server_error' } },
        '[DONE]',
      ])
      expect(chunksOf(text).some(({ choices }) => choices?.some((choice) => choice.finish_reason))).toBe(false)
      expect(brokers.settled).toMatchObject([{ status: 'error', estimated: true }])
    }
  })

  test('P-46 after tools ran keeps their charge, and the sandbox is closed', async () => {
    const { send, firstKey, brokers } = await startGateway([
      callsTools([{ name: 'code_execution', input: { code: 'x' } }]),
      broken,
    ])
    const { status } = await send('POST', PATH, {
      key: firstKey,
      body: body({ tools: [{ type: 'otari_code_execution' }] }),
    })
    expect(status).toBe(502)
    expect(brokers.settled).toMatchObject([{ status: 'error', lines: { length: 1 }, tokens: { input: 11, output: 7 } }])
    await expect.poll(() => brokers.asked.closed).toEqual(['s1'])
  })

  test('L-09 of a model that never ends is a 422, or the end of its stream', async () => {
    const { send, firstKey } = await startGateway(() => asks('again'))
    const more = { tools: [search], max_tool_iterations: 2 }
    const whole = await send('POST', PATH, { key: firstKey, body: body(more) })
    expect([whole.status, whole.body]).toEqual([422, { detail: 'Exceeded max_tool_iterations=2' }])
    const stream = await send('POST', PATH, { key: firstKey, body: streamed(more) })
    expect([stream.status, framesOf(stream.text).at(-1)]).toEqual([200, '[DONE]'])
    expect(chunksOf(stream.text).at(-1)?.error?.message).toBe('An error occurred during streaming')
  })

  test('L-22 the 11th fetch of a request that declares fetch alone ends it in 422, or in its stream', async () => {
    const fetches = () => callsTools([{ name: 'web_fetch', input: { url: 'https://a.test/' } }])
    const { send, firstKey, brokers } = await startGateway(fetches, { webSearchMaxCalls: 20 })
    const more = { tools: [{ type: 'otari_web_fetch' }], max_tool_iterations: 25 }
    const whole = await send('POST', PATH, { key: firstKey, body: body(more) })
    expect([whole.status, whole.body]).toEqual([422, { detail: 'Web Retrieval is limited to 10 calls per request' }])
    const stream = await send('POST', PATH, { key: firstKey, body: streamed(more) })
    expect(framesOf(stream.text).slice(-2)).toEqual([
      { error: { message: 'An error occurred during streaming', type: 'server_error' } },
      '[DONE]',
    ])
    expect(chunksOf(stream.text).some(({ choices }) => choices?.some((choice) => choice.finish_reason))).toBe(false)
    expect(brokers.settled.map(({ status, lines }) => [status, lines.length])).toEqual([
      ['error', 10],
      ['error', 10],
    ])
  })
})

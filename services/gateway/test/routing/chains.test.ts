import { createServer } from 'node:net'
import { noSuchContainer } from '@tollgate/contracts'
import { openLog } from '@tollgate/telemetry'
import { type FakeModel, fakeAnthropic, fakeOpenAi, type ScriptedReply, says } from '@tollgate/testing'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { failureKinds } from '../../src/models/failure-kind.ts'
import { type ModelRegistry, openModels } from '../../src/models/registry.ts'
import type { RoutingPolicy } from '../../src/routing/routing.ts'
import { silent } from '../brokers.ts'
import { contentOf, framesOf, openWith, PATH, rawPost } from '../conversation/gateway.ts'

const names = ['one', 'two', 'claude', 'clone'] as const
type Name = (typeof names)[number]

const rests = { retryOn: failureKinds }
const policy = (candidates: string[], more: Partial<RoutingPolicy> = {}): RoutingPolicy => ({
  candidates: candidates.map((model) => ({ model })),
  coolDownMs: 0,
  ...rests,
  ...more,
})
const policies = {
  chain: policy(['one:m', 'two:m']),
  mixed: policy(['one:m', 'claude:m']),
  back: policy(['claude:m', 'one:m']),
  twins: policy(['claude:m', 'clone:m']),
  gone: policy(['gone:m', 'two:m']),
  three: policy(['one:m', 'claude:m', 'two:m']),
  quick: policy(['one:m', 'two:m'], { attemptTimeoutMs: 1_500 }),
  picky: policy(['one:m', 'two:m'], { retryOn: ['rate_limit'] }),
  resting: policy(['one:r', 'two:r'], { coolDownMs: 60_000 }),
  tired: policy(['one:t', 'two:t'], { coolDownMs: 60_000 }),
  blamed: policy(['one:b', 'two:b'], { coolDownMs: 60_000 }),
}

let fakes: Record<Name, FakeModel>
let models: ModelRegistry
let gateway: Awaited<ReturnType<typeof openWith>>
const replies: Record<Name, () => ScriptedReply> = {
  one: () => says('one'),
  two: () => says('two'),
  claude: () => says('claude'),
  clone: () => says('clone'),
}
const lines: string[] = []

beforeAll(async () => {
  fakes = {
    one: await fakeOpenAi(() => replies.one(), { compatible: true }),
    two: await fakeOpenAi(() => replies.two(), { compatible: true }),
    claude: await fakeAnthropic(() => replies.claude()),
    clone: await fakeAnthropic(() => replies.clone(), { compatible: true }),
  }
  models = openModels({
    providers: {
      one: { type: 'openai-compatible', apiBase: `${fakes.one.url}/v1`, models: [] },
      two: { type: 'openai-compatible', apiBase: `${fakes.two.url}/v1`, models: [] },
      claude: { type: 'anthropic', apiBase: fakes.claude.url, models: [] },
      clone: { type: 'anthropic-compatible', apiBase: fakes.clone.url, models: [] },
      gone: { type: 'openai-compatible', apiBase: `http://127.0.0.1:${await freePort()}/v1`, models: [] },
    },
    demo: false,
    log: silent,
  })
  const log = openLog({ service: 'gateway', level: 'info', write: (line) => lines.push(line) })
  gateway = await openWith(models, {}, undefined, { policies, aliases: { best: 'chain' } }, {}, log)
})

afterAll(async () => {
  await gateway.close()
  await models.close()
  await Promise.all(Object.values(fakes).map((fake) => fake.close()))
})

beforeEach(() => {
  for (const name of names) {
    replies[name] = () => says(name)
    fakes[name].requests.length = 0
    fakes[name].refusals.length = 0
  }
  lines.length = 0
  gateway.brokers.settled.length = 0
  for (const calls of Object.values(gateway.brokers.asked)) if (Array.isArray(calls)) calls.length = 0
})

const ask = (model: string, stream: boolean, more: object = {}) =>
  gateway.send<{ choices: { message: { content: string } }[]; detail: string }>('POST', PATH, {
    key: gateway.firstKey,
    body: { model, messages: [{ role: 'user', content: 'hi' }], stream, ...more },
  })
const message = (model: string, more: object = {}, headers: Record<string, string> = {}) =>
  gateway.send<{ content: { text?: string }[]; detail: { error: { message: string } } }>('POST', '/api/v1/messages', {
    key: gateway.firstKey,
    headers,
    body: { model, max_tokens: 50, messages: [{ role: 'user', content: 'hi' }], ...more },
  })
const answerIn = ({ text, body }: Awaited<ReturnType<typeof ask>>, stream: boolean): string | undefined =>
  stream ? contentOf(text) : body.choices[0]?.message.content
const asked = () => names.flatMap((name) => (fakes[name].requests.length > 0 ? [name] : []))

const status = (code: number, headers: Record<string, string> = {}): ScriptedReply => ({
  status: code,
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify({ error: { message: `status ${code}`, type: 'some_error' } }),
})
const stream = (body: string): ScriptedReply => ({ headers: { 'content-type': 'text/event-stream' }, body })
const role =
  'data: {"id":"x","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}\n\n'

describe('before anything went out, another model answers', () => {
  const failing: [string, ScriptedReply, string][] = [
    ['a 500', status(500), 'upstream'],
    ['a 503', status(503), 'unavailable'],
    ['a 529', status(529), 'unavailable'],
    ['a 429 that says days', status(429, { 'retry-after': '180000' }), 'rate_limited'],
    ['a 401 of the deployment’s key', status(401), 'upstream'],
    ['a 404', status(404), 'not_found'],
    ['an empty 200', { body: '' }, 'upstream'],
    ['a login page', { headers: { 'content-type': 'text/html' }, body: '<html>login</html>' }, 'upstream'],
    ['a redirect', { status: 302, headers: { location: 'http://127.0.0.1:1/' }, body: '' }, 'upstream'],
    ['broken JSON', { body: '{"choices":[' }, 'upstream'],
    ['a connection torn down', { says: [{ text: 'x' }], cutAfterBytes: 5 }, 'upstream'],
    ['an error in a 200', { body: '{"error":{"message":"overloaded","type":"overloaded_error"}}' }, 'unavailable'],
  ]
  test.each(
    failing.flatMap(([what, reply, error]) =>
      ['chain', 'mixed'].flatMap((model) => [false, true].map((streamed) => ({ what, reply, error, model, streamed }))),
    ),
  )('L-37 P-45 after $what: $model, streamed $streamed', async ({ reply, error, model, streamed }) => {
    replies.one = () => reply
    const answered = await ask(model, streamed)
    const second = model === 'chain' ? 'two' : 'claude'
    expect([answered.status, answerIn(answered, streamed)]).toEqual([200, second])
    expect(asked()).toEqual(['one', second])
    expect(gateway.brokers.settled).toMatchObject([
      {
        status: 'success',
        provider: second,
        model: 'm',
        tenancy: { attempt: 1 },
        absorbed: [{ attempt: 0, provider: 'one', model: 'm', error }],
      },
    ])
  })

  test.each([
    ['BR-031 an error as the first event', stream('data: {"error":{"message":"no","code":500}}\n\n')],
    ['pings alone', stream(': ping\n\n: ping\n\n')],
    ['BR-030 a role and then nothing', { ...stream(role), cutAfterBytes: Buffer.byteLength(role) }],
    ['a done that nothing came before', stream('data: [DONE]\n\n')],
  ])('L-37 %s', async (_what, reply) => {
    replies.one = () => reply
    for (const model of ['chain', 'mixed']) {
      const { status: code, text } = await ask(model, true)
      expect([code, contentOf(text)]).toEqual([200, model === 'chain' ? 'two' : 'claude'])
      expect(framesOf(text).filter((frame) => frame === '[DONE]')).toHaveLength(1)
    }
  })

  test('L-37 after a frame that is larger than any answer', async () => {
    replies.claude = () => stream(`data: {"type":"${'x'.repeat(17 * 1024 * 1024)}`)
    const answered = await ask('back', true)
    expect([answered.status, answerIn(answered, true)]).toEqual([200, 'one'])
    expect(asked()).toEqual(['one', 'claude'])
  })

  test('L-37 after a stream that says it is done without having begun, on the lane of bytes', async () => {
    replies.claude = () => stream('event: message_stop\ndata: {"type":"message_stop"}\n\n')
    const { status: code, text } = await message('twins', { stream: true })
    expect([code, text.includes('"text":"clone"'), asked()]).toEqual([200, true, ['claude', 'clone']])

    replies.clone = replies.claude
    expect(await message('twins', { stream: true })).toMatchObject({ status: 502 })
  })

  test('L-37 a provider that cannot be reached, and one that does not begin in its time', async () => {
    expect(answerIn(await ask('gone', false), false)).toBe('two')
    replies.one = () => ({ says: [{ text: 'late' }], stallAfterBytes: 0 })
    const answers = await Promise.all(
      [false, true].map(async (streamed) => answerIn(await ask('quick', streamed), streamed)),
    )
    expect(answers).toEqual(['two', 'two'])
    expect(gateway.brokers.settled.map(({ absorbed }) => absorbed[0]?.error)).toEqual([
      'upstream',
      'timeout',
      'timeout',
    ])
  })

  test('P-45 what the failed attempt said that it used is not billed', async () => {
    const start = {
      type: 'message_start',
      message: {
        id: 'a',
        type: 'message',
        role: 'assistant',
        model: 'm',
        content: [],
        stop_reason: null,
        usage: { input_tokens: 999, output_tokens: 1 },
      },
    }
    replies.claude = () =>
      stream(
        `event: message_start\ndata: ${JSON.stringify(start)}\n\nevent: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n`,
      )
    const { text } = await ask('back', true)
    expect(contentOf(text)).toBe('one')
    expect(gateway.brokers.settled).toMatchObject([
      { provider: 'one', tokens: { input: 11, output: 7 }, estimated: false, absorbed: [{ provider: 'claude' }] },
    ])
  })

  test('a collected answer that breaks off before its first message is whole is asked of the next one', async () => {
    replies.one = () => ({ ...stream(`${role}${role.replace('"content":""', '"content":"Hel"')}`), cutAfterBytes: 400 })
    const answered = await ask('mixed', false)
    expect([answered.status, answerIn(answered, false)]).toEqual([200, 'claude'])
  })

  test('three candidates leave two rows, and with all of them failing the last failure is the answer', async () => {
    replies.one = () => status(500)
    replies.claude = () => status(503)
    expect(answerIn(await ask('three', false), false)).toBe('two')
    replies.two = () => status(429, { 'retry-after': '7' })
    const { status: code, headers } = await ask('three', false)
    expect([code, headers.get('retry-after')]).toEqual([429, '7'])
    expect(
      gateway.brokers.settled.map(({ status: end, provider, absorbed }) => [end, provider, absorbed]),
    ).toMatchObject([
      [
        'success',
        'two',
        [
          { attempt: 0, error: 'upstream' },
          { attempt: 1, error: 'unavailable' },
        ],
      ],
      [
        'error',
        'two',
        [
          { attempt: 0, error: 'upstream' },
          { attempt: 1, error: 'unavailable' },
        ],
      ],
    ])
  })

  test('the second candidate’s bytes pass as they are, members that nobody here knows included', async () => {
    replies.one = () => status(500)
    replies.two = () => stream(`${role.replace('"content":""', '"content":"raw","zeta":{"a":[1]}')}data: [DONE]\n\n`)
    const { text } = await ask('best', true)
    expect(text).toContain('"zeta":{"a":[1]}')
  })

  test('the operator is told of a key that is refused, also without anyone to stand in', async () => {
    for (const model of ['chain', 'one:m']) {
      replies.one = () => status(401)
      lines.length = 0
      expect((await ask(model, false)).status).toBe(model === 'chain' ? 200 : 502)
      const told = lines.map((line) => JSON.parse(line)).filter(({ msg }) => String(msg).includes('api_key'))
      expect(told).toMatchObject([{ level: 'error', provider: 'one', model: 'm' }])
    }
  })
})

describe('nobody else is asked', () => {
  test.each([400, 413, 422])('for a client’s own %i, which cools nothing down', async (code) => {
    replies.one = () => status(code)
    for (let i = 0; i < 4; i++) {
      const { status: told, body } = await ask('blamed', i % 2 === 0)
      expect([told, body.detail]).toEqual([code, `status ${code}`])
    }
    expect(asked()).toEqual(['one'])
    replies.one = () => says('well')
    expect(answerIn(await ask('blamed', false), false)).toBe('well')
  })

  test('for a failure that the policy does not name', async () => {
    replies.one = () => status(500)
    expect((await ask('picky', false)).status).toBe(502)
    replies.one = () => status(429)
    expect(answerIn(await ask('picky', false), false)).toBe('two')
  })

  test('L-37 BR-030 once a byte went out, on either lane', async () => {
    const begun = `${role}${role.replace('"content":""', '"content":"The answer is"')}`
    replies.one = () => ({ ...stream(`${begun}data: `), cutAfterBytes: Buffer.byteLength(begun) + 3 })
    for (const model of ['chain', 'mixed']) {
      const { status: code, text } = await ask(model, true)
      expect([code, contentOf(text)]).toEqual([200, 'The answer is'])
      expect(framesOf(text).slice(-2)).toMatchObject([{ error: { type: 'server_error' } }, '[DONE]'])
    }
    const { text } = await ask('mixed', true, { tools: [{ type: 'otari_web_fetch' }] })
    expect(contentOf(text)).toBe('The answer is')
    expect(asked()).toEqual(['one'])
    expect(gateway.brokers.settled).toMatchObject(
      [0, 1, 2].map(() => ({ status: 'error', provider: 'one', absorbed: [] })),
    )
  })

  test('L-37 in a later round: what ran is not run twice', async () => {
    let round = 0
    const call = { id: 'c1', name: 'web_fetch', input: { url: 'https://a.test/' } }
    replies.one = () => (round++ === 0 ? { says: [{ call }] } : status(500))
    for (const streamed of [false, true]) {
      round = 0
      await ask('chain', streamed, { tools: [{ type: 'otari_web_fetch' }] })
    }
    expect(asked()).toEqual(['one'])
    expect(gateway.brokers.settled).toMatchObject([0, 1].map(() => ({ status: 'error', lines: { length: 1 } })))
  })

  test('BR-149 once the client left: the second attempt is closed, and the row settled', async () => {
    replies.one = () => status(500)
    replies.two = () => ({ says: [{ text: 'never' }], stallAfterBytes: 0 })
    const aborted = fakes.two.aborted()
    const { socket } = rawPost(gateway.url, gateway.firstKey, {
      model: 'chain',
      stream: true,
      messages: [{ role: 'user', content: 'hi' }],
    })
    await expect.poll(() => fakes.two.requests.length).toBe(1)
    socket.destroy()
    await expect.poll(() => fakes.two.aborted()).toBe(aborted + 1)
    await expect
      .poll(() => gateway.brokers.settled)
      .toMatchObject([{ status: 'cancelled', provider: 'two', absorbed: [{ provider: 'one', error: 'upstream' }] }])
  })
})

describe('BR-043 what says when to come back reaches the client', () => {
  test('with its quota headers in the same dialect, and no cookies', async () => {
    replies.two = () =>
      status(429, { 'retry-after-ms': '1500', 'x-ratelimit-remaining-requests': '0', 'set-cookie': 'a=b' })
    replies.one = () => status(500)
    const { status: code, headers, body } = await ask('chain', true)
    expect([code, body.detail]).toEqual([429, 'status 429'])
    expect([headers.get('retry-after'), headers.get('x-ratelimit-remaining-requests')]).toEqual(['2', '0'])
    expect(headers.get('set-cookie')).toBeNull()
    replies.claude = () => status(529, { 'retry-after': '3' })
    const other = await message('claude:h')
    expect([other.status, other.headers.get('retry-after')]).toEqual([529, '3'])
  })
})

describe('a model that keeps failing rests', () => {
  test('after three failures the next one is asked first, until the first is all there is', async () => {
    replies.one = () => status(503)
    for (let i = 0; i < 3; i++) expect(answerIn(await ask('resting', i === 1), i === 1)).toBe('two')
    expect(fakes.one.requests).toHaveLength(3)
    expect(answerIn(await ask('resting', false), false)).toBe('two')
    expect(fakes.one.requests).toHaveLength(3)
    expect(gateway.brokers.settled.at(-1)).toMatchObject({ tenancy: { attempt: 1 }, absorbed: [] })
    const { body } = await gateway.send('POST', '/api/v1/routing/policies/resting/explain', {
      key: gateway.firstKey,
      body: {},
    })
    expect(body).toMatchObject({
      candidates: [
        { model: 'two:r', state: 'ready', cooling_for_ms: null },
        { model: 'one:r', action: 'ask', state: 'cooling' },
      ],
    })
    // the other one fails too: whoever rests is better than nobody
    replies.two = () => status(500)
    replies.one = () => says('back')
    expect(answerIn(await ask('resting', false), false)).toBe('back')
    // and has answered, so that it rests no longer
    replies.two = () => says('two')
    expect(answerIn(await ask('resting', false), false)).toBe('back')
  })

  test('one retry-after is enough; with all of them resting the first is asked all the same', async () => {
    replies.one = () => status(429, { 'retry-after': '60' })
    replies.two = () => status(429, { 'retry-after': '60' })
    expect((await ask('tired', false)).status).toBe(429)
    replies.one = () => says('one')
    fakes.two.requests.length = 0
    expect(answerIn(await ask('tired', true), true)).toBe('one')
    expect(fakes.two.requests).toEqual([])
  })
})

describe('each attempt is planned for itself', () => {
  const search = { type: 'web_search_20250305', name: 'web_search' }
  const code = { type: 'code_execution_20250825', name: 'code_execution' }
  const auto = { 'otari-web-search': 'auto' }
  const toolsOf = (name: Name) => (fakes[name].requests[0]?.body.tools ?? []) as Record<string, unknown>[]
  const skipped = () => gateway.brokers.settled.flatMap(({ absorbed }) => absorbed.map(({ error }) => error))

  test('T-18 BR-069 the native model gets the keyword, its stand-in the gateway’s function', async () => {
    replies.claude = () => status(500)
    const { status: code } = await message('back', { tools: [search] }, auto)
    expect(code).toBe(200)
    expect(toolsOf('claude')).toEqual([search])
    expect(toolsOf('one')).toMatchObject([{ type: 'function', function: { name: 'web_search' } }])
  })

  test('X-05 S-09 what is the provider’s stays so: the stand-in is sent the keyword and refuses it for itself', async () => {
    replies.claude = () => status(500)
    replies.clone = () => status(404)
    const { status: told } = await message('twins', { tools: [code] }, { 'otari-code-execution': 'provider' })
    expect(told).toBe(404)
    expect(toolsOf('clone')).toEqual([code])
    expect(gateway.brokers.asked.opened).toEqual([])
  })

  test('X-14 declared both ways, code runs here on every attempt', async () => {
    const { status: told } = await message('back', { tools: [{ type: 'otari_code_execution' }, code] })
    expect(told).toBe(200)
    expect(toolsOf('claude').map(({ name, type }) => [name, type ?? 'function'])).toEqual([
      ['code_execution', 'function'],
    ])
  })

  test('C-22 C-27 X-17 a container that is no sandbox of ours: whoever would run the code here is passed over', async () => {
    const container = 'container_abc'
    const gone = `Container '${container}' has expired or does not exist.`
    expect((await message('back', { tools: [code], container })).status).toBe(200)
    expect(fakes.claude.requests[0]?.body).toMatchObject({ container, tools: [code] })
    expect(skipped()).toEqual([])

    expect((await message('mixed', { tools: [code], container })).status).toBe(200)
    expect(skipped()).toEqual([`Skipped: ${gone}`])

    // with nobody left the answer is what the provider said, if one was asked, and else the refusal
    replies.claude = () => status(500)
    expect((await message('back', { tools: [code], container })).status).toBe(502)
    expect(skipped().at(-1)).toBe(`Skipped: ${gone}`)
    for (const model of ['one:m', 'chain']) {
      const { status: told, body } = await message(model, { tools: [code], container })
      expect([told, body.detail.error.message]).toEqual([400, gone])
    }
    expect(asked()).toEqual(['claude'])
    expect(gateway.brokers.asked.opened).toEqual([])
  })

  test.each([false, true])(
    'C-13 C-27 a container of another sandbox provider is each attempt’s to miss, and gone where all do (streamed: %s)',
    async (streamed) => {
      const id = `otari_cntr_${'0a'.repeat(16)}`
      const { open } = gateway.brokers
      onTestFinished(() => {
        gateway.brokers.open = open
      })
      gateway.brokers.open = async () => {
        throw noSuchContainer(id)
      }
      const told = await ask('chain', streamed, { container: id, tools: [{ type: 'otari_code_execution' }] })
      expect([told.status, told.body.detail]).toEqual([400, `Container '${id}' has expired or does not exist.`])
      expect(gateway.brokers.asked.opened.map(({ tenancy: { attempt } }) => attempt)).toEqual([0, 1])
      expect([asked(), gateway.brokers.settled]).toEqual([[], []])
    },
  )

  test('X-16 no sandbox is opened where the native model answers', async () => {
    expect((await message('back', { tools: [code] })).status).toBe(200)
    expect(gateway.brokers.asked.opened).toEqual([])
    expect(gateway.brokers.settled).toMatchObject([{ provider: 'claude', lines: [], absorbed: [] }])
  })

  test('X-17 X-18 a candidate that may not run code here is passed over, and refused only where it is the last', async () => {
    const off = (enabled: boolean) =>
      gateway.send('PUT', '/api/v1/workspaces/default/code-execution-policy', {
        key: gateway.masterKey,
        body: { enabled },
      })
    const put = await off(false)
    expect(put.status).toBe(200)
    try {
      expect((await message('back', { tools: [code] })).status).toBe(200)
      expect(skipped()).toEqual([])
      gateway.brokers.settled.length = 0
      replies.claude = () => status(500)
      const failed = await message('back', { tools: [code] })
      expect(failed.status).toBe(502)
      expect(skipped()).toEqual([expect.stringMatching(/^Skipped: /)])
      expect(fakes.one.requests).toEqual([])
      const { status: told } = await message('chain', { tools: [code] })
      expect(told).toBe(403)
    } finally {
      await off(true)
    }
  })

  test('S-13 F-13 a candidate without a price is passed over; all of them without one are a 402', async () => {
    const { brokers } = gateway
    const price = brokers.quote
    const refusing = (...models: string[]) => {
      brokers.quote = async ({ candidates }) => ({
        candidates: candidates.map(({ modelKeys }) => ({
          refusal: models.includes(modelKeys[0]?.key ?? '') ? 'no price' : null,
          estimate: '5',
        })),
      })
    }
    try {
      refusing('one:m')
      expect(answerIn(await ask('chain', false), false)).toBe('two')
      expect(skipped()).toEqual(['Skipped: no price'])
      expect(asked()).toEqual(['two'])
      refusing('one:m', 'two:m')
      const refused = await ask('chain', false)
      expect([refused.status, refused.body.detail]).toEqual([402, 'no price'])
    } finally {
      brokers.quote = price
    }
  })

  test('A-16 as much is set aside as the dearest of the chain may cost', async () => {
    const { brokers } = gateway
    const price = brokers.quote
    brokers.quote = async ({ candidates }) => ({
      candidates: candidates.map((_one, at) => ({ refusal: null, estimate: String(at) })),
    })
    await ask('chain', false)
    brokers.quote = price
    expect(brokers.asked.reserved).toMatchObject([{ provider: 'one', modelKeys: [{ kind: 'model', key: 'two:m' }] }])
  })

  test('what one wire has no form for is asked of a model that has it', async () => {
    const document = { type: 'document', source: { type: 'url', url: 'https://a.test/x.pdf' } }
    const messages = [{ role: 'user', content: [{ type: 'text', text: 'Read' }, document] }]
    const answered = await message('mixed', { messages })
    expect([answered.status, answered.body.content[0]?.text]).toEqual([200, 'claude'])
    expect(skipped()).toEqual([expect.stringMatching(/^Skipped: /)])
    expect((await message('chain', { messages })).status).toBe(400)
  })

  test('A-07 a key’s list holds for what is called', async () => {
    const make = (allowed_models: string[]) => gateway.makeKey({ allowed_models })
    const { key } = await make(['two:*'])
    const post = (of: string, model: string) =>
      gateway.send('POST', PATH, { key: of, body: { model, messages: [{ role: 'user', content: 'hi' }] } })
    expect((await post(key, 'best')).status).toBe(200)
    expect(asked()).toEqual(['two'])
    expect(skipped()).toEqual(["Skipped: Model 'one:m' is not permitted for this API key."])
    const other = await post((await make(['claude:*'])).key, 'best')
    expect([other.status, other.body]).toEqual([403, { detail: "Model 'best' is not permitted for this API key." }])
  })
})

describe('GET and POST /api/v1/routing/policies', () => {
  const get = (path: string) => gateway.send('GET', `/api/v1/routing/policies${path}`, { key: gateway.firstKey })
  const explain = (name: string, body: unknown, key = gateway.firstKey) =>
    gateway.send<{ candidates: object[]; detail: unknown }>('POST', `/api/v1/routing/policies/${name}/explain`, {
      key,
      body,
    })

  test('tell what there is', async () => {
    const { body } = await get('')
    expect(body).toMatchObject({ object: 'list', data: { length: Object.keys(policies).length } })
    expect((await get('/quick')).body).toEqual({
      object: 'routing_policy',
      name: 'quick',
      candidates: [{ model: 'one:m' }, { model: 'two:m' }],
      retry_on: [...failureKinds],
      cool_down_sec: 0,
      attempt_timeout_sec: 1.5,
      aliases: [],
    })
    expect((await get('/chain')).body).toMatchObject({ aliases: ['best'] })
    for (const path of ['/nobody', '/constructor', '/one:m']) expect((await get(path)).status).toBe(404)
  })

  test('explain who would run what, and ask no model', async () => {
    const tools = [
      { type: 'code_execution_20250825', name: 'code_execution' },
      { type: 'otari_web_fetch' },
      { name: 'mine', input_schema: { type: 'object' } },
    ]
    const { body } = await explain('back', { dialect: 'messages', tools, headers: { 'Otari-Code-Execution': 'auto' } })
    const rest = [
      { tool: 'otari_web_fetch', runs_at: 'gateway' },
      { tool: 'mine', runs_at: 'client' },
    ]
    expect(body).toEqual({
      object: 'routing_explanation',
      policy: 'back',
      candidates: [
        {
          model: 'claude:m',
          seat: null,
          action: 'ask',
          why: null,
          state: 'ready',
          cooling_for_ms: null,
          tools: [{ tool: 'code_execution_20250825', runs_at: 'provider' }, ...rest],
        },
        {
          model: 'one:m',
          seat: null,
          action: 'ask',
          why: null,
          state: 'ready',
          cooling_for_ms: null,
          tools: [{ tool: 'code_execution_20250825', runs_at: 'gateway' }, ...rest],
        },
      ],
    })
    expect(asked()).toEqual([])
    expect([gateway.brokers.asked.reserved, gateway.brokers.settled]).toEqual([[], []])
  })

  test('explain why one is skipped, and refuse what the request would be refused for', async () => {
    const { body } = await explain('mixed', {
      dialect: 'chat',
      tools: [{ type: 'code_execution_20250825' }],
      headers: { 'otari-code-execution': 'provider' },
    })
    expect(body.candidates).toMatchObject([
      { model: 'one:m', action: 'ask' },
      { model: 'claude:m', action: 'skip', why: expect.stringContaining('code_execution_20250825'), tools: [] },
    ])
    const odd = await explain('mixed', { headers: { 'otari-web-search': 'sometimes' } })
    expect([odd.status, odd.body.detail]).toEqual([400, 'Otari-Web-Search must be one of auto, otari, provider'])
    expect((await explain('mixed', { dialect: 'grpc' })).status).toBe(422)
    expect((await explain('nobody', {})).status).toBe(404)
    const { key } = await gateway.makeKey({ allowed_models: ['claude:*'] })
    const listed = await explain('mixed', {}, key)
    expect(listed.body.candidates).toMatchObject([{ model: 'one:m', action: 'skip' }, { action: 'ask' }])
    expect((await explain('chain', {}, key)).status).toBe(403)
  })
})

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  const { port } = server.address() as { port: number }
  await new Promise((closed) => server.close(closed))
  return port
}

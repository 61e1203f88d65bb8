import { configSchema } from '@tollgate/config'
import { Fault } from '@tollgate/contracts'
import { describe, expect, test } from 'vitest'
import type { JsonObject } from '../../src/conversation/turn.ts'
import { openAttemptTime } from '../../src/loop/attempt-time.ts'
import { targetOf } from '../../src/loop/keywords.ts'
import { failureKinds, kindOf } from '../../src/models/failure-kind.ts'
import { plainChat } from '../../src/models/openai-chat/quirks.ts'
import { chatBody } from '../../src/models/openai-chat/request.ts'
import { type ProviderType, presetOf, providerTypes, typeNamed, vendorOf } from '../../src/models/presets.ts'
import { openModels } from '../../src/models/registry.ts'
import { faultOfStatus } from '../../src/models/upstream-errors.ts'
import { brokenAnswer, brokenAnswers, UpstreamFault } from '../../src/models/upstream-fault.ts'
import { candidatesOf } from '../../src/routing/candidates.ts'
import { openCoolDowns } from '../../src/routing/cool-down.ts'
import { drawOrder } from '../../src/routing/order.ts'
import { openRouting, type RoutingSettings } from '../../src/routing/routing.ts'
import { silent } from '../brokers.ts'
import { chatRequest, origin } from '../models/asking.ts'

const status = (code: number, headers: Record<string, string> = {}) => faultOfStatus(origin, code, {}, headers)

describe('what a failure of a provider is', () => {
  test.each([
    [400, undefined],
    [413, undefined],
    [422, undefined],
    [401, 'account'],
    [402, 'account'],
    [403, 'account'],
    [404, 'not_found'],
    [408, 'timeout'],
    [418, 'server_error'],
    [429, 'rate_limit'],
    [500, 'server_error'],
    [502, 'server_error'],
    [503, 'server_error'],
    [504, 'timeout'],
    [529, 'server_error'],
    [301, 'broken_answer'],
  ] as const)('status %i is %s', (code, kind) => {
    expect(kindOf(status(code))).toBe(kind)
  })

  test('a closed account is one whatever status says so', () => {
    const body = { error: { type: 'insufficient_quota', message: 'You exceeded your current quota' } }
    expect(kindOf(faultOfStatus(origin, 429, body))).toBe('account')
    expect(kindOf(faultOfStatus(origin, 400, { error: { message: 'Your credit balance is too low' } }))).toBe('account')
  })

  test('what could not be read or reached is told apart', () => {
    for (const kind of Object.keys(brokenAnswers) as (keyof typeof brokenAnswers)[])
      expect([kind, kindOf(brokenAnswer(kind, origin))]).toEqual([
        kind,
        kind === 'unreachable' ? 'connection' : 'broken_answer',
      ])
  })

  test('the config and the code know the same kinds', () => {
    const read = configSchema.parse({ routing: { a: { candidates: ['x:y'] } } })
    expect(read.routing.a?.retry_on.toSorted()).toEqual([...failureKinds].toSorted())
  })
})

describe('the order of candidates', () => {
  type Named = { n: string; weight?: number }
  const [a, b, c, d]: [Named, Named, Named, Named] = [
    { n: 'a' },
    { n: 'b', weight: 3 },
    { n: 'c', weight: 1 },
    { n: 'd' },
  ]
  const order = (draws: number[]) => drawOrder([a, b, c, d], () => draws.shift() ?? 0).map(({ n }) => n)

  test.each([
    [
      [0, 0],
      ['a', 'b', 'c', 'd'],
    ],
    [
      [0.74, 0],
      ['a', 'b', 'c', 'd'],
    ],
    [
      [0.75, 0],
      ['a', 'c', 'b', 'd'],
    ],
    [
      [0.999_999, 0.999_999],
      ['a', 'c', 'b', 'd'],
    ],
  ])('draws %j: %j', (draws, expected) => {
    expect(order(draws)).toEqual(expected)
  })

  test('each of a group comes first as often as its part of the weights says', () => {
    let seed = 1
    const random = () => {
      seed = (seed * 48_271) % 2_147_483_647
      return seed / 2_147_483_647
    }
    const firsts = Array.from({ length: 8_000 }, () => drawOrder([b, c], random)[0]?.n)
    const share = firsts.filter((n) => n === 'b').length / firsts.length
    expect(share).toBeGreaterThan(0.73)
    expect(share).toBeLessThan(0.77)
  })

  test('groups that something stands between do not mix, and without weights nothing is drawn', () => {
    const never = () => {
      throw new Error('drawn')
    }
    expect(drawOrder([a, d], never)).toEqual([a, d])
    expect(drawOrder([], never)).toEqual([])
    expect(drawOrder([b, d, c], () => 0.999).map(({ n }) => n)).toEqual(['b', 'd', 'c'])
  })
})

describe('cool-downs', () => {
  const seat = { provider: { name: 'up' }, model: 'm' }
  function open(random = () => 0) {
    const clock = { now: 1_000_000 }
    return { clock, cool: openCoolDowns(() => clock.now, random) }
  }
  const down = status(503)

  test('a model rests after three failures in a row, and not after two with an answer between', () => {
    const { cool } = open()
    cool.failed(seat, down)
    cool.failed(seat, down)
    cool.answered(seat)
    cool.failed(seat, down)
    cool.failed(seat, down)
    expect(cool.of(seat)).toEqual({ state: 'ready' })
    cool.failed(seat, down)
    expect(cool.of(seat)).toEqual({ state: 'cooling', forMs: 30_000 })
  })

  test('another model of the same provider, and the same of another, are not concerned', () => {
    const { cool } = open()
    for (let i = 0; i < 3; i++) cool.failed(seat, down)
    expect(cool.of({ ...seat, model: 'n' })).toEqual({ state: 'ready' })
    expect(cool.of({ ...seat, provider: { name: 'other' } })).toEqual({ state: 'ready' })
  })

  test.each([400, 413, 422, 404])('a %i punishes nobody', (code) => {
    const { cool } = open()
    for (let i = 0; i < 10; i++) cool.failed(seat, status(code))
    expect(cool.of(seat)).toEqual({ state: 'ready' })
  })

  test('nor does a limit of this gateway’s own', () => {
    const { cool } = open()
    const ours = { retryable: true, retryAfterSeconds: 1, kind: 'busy' } as const
    for (let i = 0; i < 5; i++) cool.failed(seat, new UpstreamFault('unavailable', 'x', origin, ours))
    expect(cool.of(seat)).toEqual({ state: 'ready' })
  })

  test('what says when to come back rests at once, up to five minutes', () => {
    const { cool } = open()
    cool.failed(seat, status(429, { 'retry-after': '45' }))
    expect(cool.of(seat)).toEqual({ state: 'cooling', forMs: 45_000 })
    cool.failed({ ...seat, model: 'n' }, status(429, { 'retry-after': '180000' }))
    expect(cool.of({ ...seat, model: 'n' })).toEqual({ state: 'cooling', forMs: 300_000 })
    cool.failed({ ...seat, model: 'o' }, status(429, { 'retry-after': '1' }))
    expect(cool.of({ ...seat, model: 'o' })).toEqual({ state: 'cooling', forMs: 1_000 })
    cool.failed({ ...seat, model: 'p' }, status(429, { 'retry-after': '0' }))
    expect(cool.of({ ...seat, model: 'p' })).toEqual({ state: 'ready' })
  })

  test('after the rest one request tries it, and the others wait for what becomes of that', () => {
    const { cool, clock } = open()
    for (let i = 0; i < 3; i++) cool.failed(seat, down)
    clock.now += 29_999
    expect(cool.of(seat)).toEqual({ state: 'cooling', forMs: 1 })
    clock.now += 1
    expect(cool.of(seat)).toEqual({ state: 'on_trial' })
    cool.asked(seat)
    expect(cool.of(seat).state).toBe('cooling')
    cool.left(seat)
    expect(cool.of(seat)).toEqual({ state: 'on_trial' })
    cool.asked(seat)
    cool.failed(seat, down)
    expect(cool.of(seat)).toEqual({ state: 'cooling', forMs: 60_000 })
    clock.now += 60_000
    cool.asked(seat)
    cool.answered(seat)
    expect(cool.of(seat)).toEqual({ state: 'ready' })
  })

  test('a trial that nobody ended is over after a while, and one that met a client’s mistake is at once', () => {
    const { cool, clock } = open()
    for (let i = 0; i < 3; i++) cool.failed(seat, down)
    clock.now += 30_000
    cool.asked(seat)
    cool.failed(seat, status(400))
    expect(cool.of(seat)).toEqual({ state: 'on_trial' })
    cool.asked(seat)
    clock.now += 10 * 60_000
    expect(cool.of(seat)).toEqual({ state: 'on_trial' })
  })

  test('failures of a model that is asked while it rests make the rest no longer', () => {
    const { cool } = open()
    for (let i = 0; i < 50; i++) cool.failed(seat, down)
    expect(cool.of(seat)).toEqual({ state: 'cooling', forMs: 30_000 })
  })

  test('a rest has a part of chance, a policy its own length or none', () => {
    const { cool } = open(() => 0.999_999)
    for (let i = 0; i < 3; i++) cool.failed(seat, down, 10_000)
    expect(cool.of(seat)).toEqual({ state: 'cooling', forMs: 12_000 })
    for (let i = 0; i < 9; i++) cool.failed({ ...seat, model: 'n' }, status(429, { 'retry-after': '9' }), 0)
    expect(cool.of({ ...seat, model: 'n' })).toEqual({ state: 'ready' })
  })

  test('a thousand models are remembered, and the one that failed longest ago is forgotten', () => {
    const { cool } = open()
    for (let n = 0; n <= 1_000; n++) for (let i = 0; i < 3; i++) cool.failed({ ...seat, model: String(n) }, down)
    expect(cool.of({ ...seat, model: '0' })).toEqual({ state: 'ready' })
    expect(cool.of({ ...seat, model: '1' }).state).toBe('cooling')
    expect(cool.of({ ...seat, model: '1000' }).state).toBe('cooling')
  })
})

describe('the time of an attempt', () => {
  const fired = (signal: AbortSignal) => new Promise((aborted) => signal.addEventListener('abort', aborted))

  test('begins when the model is asked, and ends when it is over or with the request', async () => {
    const time = openAttemptTime(5, new AbortController().signal)
    await new Promise((later) => setTimeout(later, 30))
    expect(time.late()).toBe(false)
    time.asking()
    await fired(time.signal)
    expect(time.late()).toBe(true)
    const request = new AbortController()
    const other = openAttemptTime(60_000, request.signal)
    request.abort('gone')
    expect([other.signal.aborted, other.signal.reason, other.late()]).toEqual([true, 'gone', false])
    other.end()
  })

  test('counts no more once the answer has begun, but the request’s still does', async () => {
    const request = new AbortController()
    const time = openAttemptTime(5, request.signal)
    time.asking()
    time.began()
    await new Promise((later) => setTimeout(later, 30))
    expect([time.signal.aborted, time.late()]).toEqual([false, false])
    request.abort()
    expect(time.signal.aborted).toBe(true)
    time.end()
    expect(openAttemptTime(undefined, request.signal).signal).toBe(request.signal)
  })
})

describe('names of models', () => {
  const models = openModels({
    providers: { a: { type: 'ollama', models: [] }, b: { type: 'vllm', models: [] } },
    demo: false,
    log: silent,
  })
  const policy = (...candidates: string[]) => ({
    candidates: candidates.map((model) => ({ model })),
    retryOn: failureKinds,
  })
  const settings: RoutingSettings = {
    policies: { fast: policy('a:x', 'b:y') },
    aliases: { quick: 'fast', 'gpt-4': 'b:y' },
  }
  const routing = openRouting(settings, models)

  test.each([
    ['fast', 'fast', ['a:x', 'b:y']],
    ['quick', 'fast', ['a:x', 'b:y']],
    ['gpt-4', undefined, ['b:y']],
    ['a:z', undefined, ['a:z']],
    ['constructor', undefined, ['constructor']],
    ['Fast', undefined, ['Fast']],
  ])('%s', (name, of, candidates) => {
    expect(routing.route(name)).toMatchObject({ policy: of, candidates })
  })

  test.each<[string, RoutingSettings, RegExp]>([
    ['a policy', { policies: { p: policy('a:x', 'c:y') }, aliases: {} }, /^routing\.p: 'c:y'/],
    ['an alias', { policies: {}, aliases: { n: 'nowhere' } }, /^model_aliases\.n: 'nowhere'/],
    ['a name of both', { ...settings, aliases: { fast: 'a:x' } }, /^model_aliases\.fast: a routing policy/],
  ])('%s that leads nowhere stops the start', (_what, given, words) => {
    expect(() => openRouting(given, models)).toThrowError(words)
  })

  test.each<[object, string]>([
    [{ routing: { 'a:b': { candidates: ['x:y'] } } }, 'routing'],
    [{ routing: { a: { candidates: [] } } }, 'candidates'],
    [{ routing: { a: { candidates: ['x y'] } } }, 'candidates'],
    [{ routing: { a: { candidates: [{ model: 'x:y', weight: 0 }] } } }, 'candidates'],
    [{ routing: { a: { candidates: ['x:y'], retry_on: ['bad_request'] } } }, 'retry_on'],
    [{ routing: { a: { candidates: ['x:y'], cool_down_sec: 301 } } }, 'cool_down_sec'],
    [{ routing: { a: { candidates: ['x:y'], attempt_timeout_sec: 0 } } }, 'attempt_timeout_sec'],
    [{ routing: { a: { candidates: ['x:y'], retries: 3 } } }, 'a'],
    [{ model_aliases: { a: 'b c' } }, 'a'],
  ])('the config refuses %j', (given, at) => {
    const { error } = configSchema.safeParse(given)
    expect(error?.issues[0]?.path.concat(error.issues[0].path.length === 1 ? 'routing' : [])).toContain(at)
  })

  const candidates = (name: string, allowedModels: string[] | null) =>
    candidatesOf(routing.route(name), name, { allowedModels }, models, 'chat').map(({ provider, model, refused }) => [
      `${provider.name}:${model}`,
      refused?.message,
    ])

  test('A-07 a list names what is really called: the others are passed over, and none left is a 403', () => {
    expect(candidates('fast', null)).toEqual([
      ['a:x', undefined],
      ['b:y', undefined],
    ])
    expect(candidates('quick', ['b:*'])).toEqual([
      ['a:x', "Model 'a:x' is not permitted for this API key."],
      ['b:y', undefined],
    ])
    expect(candidates('gpt-4', ['b:y'])).toEqual([['b:y', undefined]])
    for (const name of ['fast', 'quick', 'gpt-4', 'a:x', 'nowhere'])
      expect(() => candidates(name, ['c:*'])).toThrowError(
        expect.objectContaining({ status: 403, message: `Model '${name}' is not permitted for this API key.` }),
      )
    expect(() => candidates('fast', [])).toThrowError(Fault)
  })
})

describe('presets of providers', () => {
  test('the config knows the same types', () => {
    for (const type of providerTypes) {
      const known = presetOf(type).base !== undefined
      const read = (more: object) => configSchema.safeParse({ providers: { x: { type, ...more } } }).success
      expect([type, read({}), read({ api_base: 'http://localhost:1/v1' })]).toEqual([type, known, true])
      expect([type, typeNamed(type)]).toEqual([type, known ? type : undefined])
      expect([type, configSchema.safeParse({ providers: { [type]: {} } }).success]).toEqual([type, known])
    }
    expect(configSchema.safeParse({ providers: { x: { type: 'nobody' } } }).success).toBe(false)
  })

  test('each opens with nothing but a key, and those with a local server without one', () => {
    const lines: unknown[] = []
    const log = { ...silent, warn: (line: unknown) => void lines.push(line) } as typeof silent
    const named = providerTypes.filter((type) => presetOf(type).base !== undefined)
    const models = openModels({
      providers: Object.fromEntries(named.map((name) => [name, { models: [] }])),
      demo: false,
      log,
    })
    expect(models.instances().map(({ type }) => type)).toEqual(named)
    const warned = lines.map((line) => (line as { provider: string }).provider)
    expect(warned).toEqual(named.filter((name) => name !== 'ollama' && name !== 'vllm'))
  })

  test.each<[string, ProviderType | 'demo', string]>([
    ['x', 'openai', 'openai'],
    ['x', 'anthropic', 'anthropic'],
    ['x', 'deepseek', 'deepseek'],
    ['deepseek', 'anthropic-compatible', 'deepseek'],
    ['gemini', 'openai-compatible', 'gemini'],
    ['anthropic', 'anthropic-compatible', 'other'],
    ['openai', 'openai-compatible', 'other'],
    ['gemini', 'mistral', 'other'],
    ['demo', 'demo', 'other'],
  ])('X-15 %s of type %s is %s', (name, type, vendor) => {
    expect(vendorOf(name, type)).toBe(vendor)
    const provider = { name, wire: 'openai-chat' as const } as never
    expect(targetOf({ provider, model: 'm', type }).vendor).toBe(vendor)
  })

  const said: JsonObject = {
    messages: [
      { role: 'developer', content: 'Be brief.' },
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'A', reasoning_content: 'hm' },
      { role: 'user', content: 'go on' },
    ],
    max_completion_tokens: 9,
    stream_options: { include_usage: true },
    store: true,
  }
  const sent = (type: ProviderType, body = said) =>
    chatBody(chatRequest(body, { stream: true }), presetOf(type).chat ?? plainChat)

  test.each<[ProviderType, string, boolean, object]>([
    ['openai-compatible', 'developer', true, { max_completion_tokens: 9, stream_options: { include_usage: true } }],
    ['openai', 'developer', true, { max_completion_tokens: 9, stream_options: { include_usage: true } }],
    ['deepseek', 'system', true, { max_tokens: 9, stream_options: { include_usage: true } }],
    ['mistral', 'system', false, { max_tokens: 9 }],
    ['groq', 'developer', false, { max_completion_tokens: 9, stream_options: { include_usage: true } }],
  ])('%s is sent what it takes', (type, role, thinks, members) => {
    const { model, stream, messages, ...rest } = sent(type)
    expect(rest).toEqual({ store: true, ...members })
    expect(messages).toEqual([
      { role, content: 'Be brief.' },
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: 'A', ...(thinks && { reasoning_content: 'hm' }) },
      { role: 'user', content: 'go on' },
    ])
  })

  test('the client’s own old name of the limit wins where it says both', () => {
    expect(sent('mistral', { ...said, max_tokens: 5 })).toMatchObject({ max_tokens: 5 })
    expect(sent('mistral', { ...said, max_tokens: 5 })).not.toHaveProperty('max_completion_tokens')
    expect(new UpstreamFault('timeout', 'x', origin, { retryable: true }).kind).toBeUndefined()
  })
})

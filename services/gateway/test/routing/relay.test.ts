import { type FakeDoors, fakeOpenAiDoors } from '@tollgate/testing'
import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openDiscovery } from '../../src/models/discovery.ts'
import { failureKinds } from '../../src/models/failure-kind.ts'
import { type ModelRegistry, openModels } from '../../src/models/registry.ts'
import { listedModels } from '../../src/routing/listed.ts'
import { openRouting, type RoutingSettings } from '../../src/routing/routing.ts'
import { silent } from '../brokers.ts'
import { openWith } from '../conversation/gateway.ts'

const routing: RoutingSettings = {
  policies: {
    embed: {
      candidates: [{ model: 'claude:m' }, { model: 'one:small' }, { model: 'two:large' }],
      retryOn: failureKinds,
      coolDownMs: 0,
    },
  },
  aliases: { 'text-embedding-3-small': 'one:small' },
}

let fakes: { one: FakeDoors; two: FakeDoors }
let models: ModelRegistry
let gateway: Awaited<ReturnType<typeof openWith>>
let client: OpenAI

beforeAll(async () => {
  fakes = { one: await fakeOpenAiDoors({ apiKey: 'sk-one' }), two: await fakeOpenAiDoors() }
  models = openModels({
    providers: {
      one: { type: 'openai', apiKey: 'sk-one', apiBase: `${fakes.one.url}/v1`, models: [] },
      two: { type: 'openai-compatible', apiBase: `${fakes.two.url}/v1/`, models: [] },
      claude: { type: 'anthropic', apiBase: 'http://127.0.0.1:1', models: ['m'] },
    },
    demo: false,
    log: silent,
  })
  gateway = await openWith(models, {}, undefined, routing)
  client = new OpenAI({ apiKey: gateway.firstKey, baseURL: `${gateway.url}/api/v1`, maxRetries: 0 })
})

afterAll(async () => {
  await gateway.close()
  await models.close()
  await Promise.all([fakes.one.close(), fakes.two.close()])
})

beforeEach(() => {
  gateway.brokers.settled.length = 0
  for (const fake of Object.values(fakes)) fake.requests.length = 0
  for (const calls of Object.values(gateway.brokers.asked)) if (Array.isArray(calls)) calls.length = 0
})

const post = (path: string, body: object, key = gateway.firstKey) =>
  gateway.send<{ detail: unknown }>('POST', `/api/v1${path}`, { key, body })
const failure = (status: number, headers: Record<string, string> = {}) => ({
  status,
  headers,
  body: JSON.stringify({ error: { message: `status ${status}`, type: 'x' } }),
})

describe('POST /embeddings', () => {
  test('with the vendor’s own client, which asks for base64 and reads it', async () => {
    const made = await client.embeddings.create({ model: 'one:small', input: ['a', 'b'] })
    expect(made.data.map(({ embedding }) => embedding.length)).toEqual([4, 4])
    expect(made.data[1]?.embedding[0]).toBeCloseTo(1)
    expect(fakes.one.requests).toMatchObject([
      { path: '/v1/embeddings', body: { model: 'small', input: ['a', 'b'], encoding_format: 'base64' } },
    ])
    expect(gateway.brokers.settled).toMatchObject([
      {
        endpoint: '/api/v1/embeddings',
        model: 'small',
        provider: 'one',
        priceKeys: [{ kind: 'model', key: 'one:small' }],
        tokens: { input: 10, output: 0 },
        estimated: false,
        status: 'success',
      },
    ])
    expect(gateway.brokers.asked.reserved).toMatchObject([{ model: 'small', estimate: { outputTokens: 0 } }])
  })

  test('an answer in either format comes back byte for byte, and numbers are not touched', async () => {
    const floats = await post('/embeddings', { model: 'two:m', input: 'a', dimensions: 4 })
    expect(floats.body).toMatchObject({ object: 'list', data: [{ embedding: [0.5, 1 / 3, 0.25, 0.2] }], model: 'm' })
    const base64 = await post('/embeddings', { model: 'two:m', input: 'a', encoding_format: 'base64' })
    const { data } = base64.body as unknown as { data: { embedding: string }[] }
    expect(Buffer.from(data[0]?.embedding ?? '', 'base64')).toHaveLength(16)
    expect(base64.headers.get('content-type')).toBe('application/json; charset=utf-8')
  })

  test('a policy passes over what has no embeddings, and moves on from what fails', async () => {
    fakes.one.fail.push(failure(503))
    expect((await client.embeddings.create({ model: 'embed', input: 'a' })).model).toBe('large')
    expect(gateway.brokers.settled).toMatchObject([
      {
        provider: 'two',
        tenancy: { attempt: 2 },
        absorbed: [
          { attempt: 0, provider: 'claude', error: 'Skipped: the provider of this model has no embeddings' },
          { attempt: 1, provider: 'one', error: 'unavailable' },
        ],
      },
    ])
    expect((await client.embeddings.create({ model: 'text-embedding-3-small', input: 'a' })).model).toBe('small')
  })

  test.each([
    [
      'a client’s mistake',
      { model: 'one:small', input: 'a', foo: 1 },
      400,
      'Unrecognized request argument supplied: foo',
    ],
    [
      'a provider without embeddings',
      { model: 'claude:m', input: 'a' },
      400,
      'the provider of this model has no embeddings',
    ],
    ['no such provider', { model: 'nobody:m', input: 'a' }, 404, expect.stringContaining('no model provider')],
  ])('R-60 %s', async (_what, body, status, detail) => {
    const answered = await post('/embeddings', body)
    expect([answered.status, answered.body]).toEqual([status, { detail }])
    expect(gateway.brokers.settled.every(({ tokens }) => tokens.input === 0)).toBe(true)
  })

  test.each([
    [{ input: 'a' }, 'model'],
    [{ model: 'one:small' }, 'input'],
    [{ model: 'one:small', input: [] }, 'input'],
    [{ model: 'one:small', input: 'a', encoding_format: 'int8' }, 'encoding_format'],
  ])('R-60 %j is a 422 that names %s', async (body, member) => {
    const { status, body: told } = await post('/embeddings', body)
    expect([status, (told.detail as { loc: string[] }[])[0]?.loc]).toEqual([422, ['body', member]])
  })

  test('BR-043 R-65 limits of the provider and of the key are told, and cost nothing', async () => {
    fakes.two.fail.push(failure(429, { 'retry-after': '9', 'x-ratelimit-remaining-tokens': '0' }))
    const limited = await post('/embeddings', { model: 'two:m', input: 'a' })
    expect([limited.status, limited.headers.get('retry-after')]).toEqual([429, '9'])
    expect(limited.headers.get('x-ratelimit-remaining-tokens')).toBe('0')
    const { key } = await gateway.makeKey({ allowed_models: ['one:*'] })
    expect((await post('/embeddings', { model: 'two:m', input: 'a' }, key)).status).toBe(403)
    expect(gateway.brokers.settled).toMatchObject([{ status: 'error', error: 'rate_limited', tokens: { input: 0 } }])
  })

  test.each([['{"data":'], [''], ['{"object":"list"}'], ['[]'], ['{"error":{"message":"x","code":500}}']])(
    'an answer that is none (%j) is a 502',
    async (body) => {
      fakes.two.fail.push({ status: 200, body })
      expect((await post('/embeddings', { model: `two:broken-${body.length}`, input: 'a' })).status).toBe(502)
      expect(gateway.brokers.settled).toMatchObject([{ status: 'error', tokens: { input: 0 } }])
    },
  )
})

describe('POST /moderations', () => {
  test('P-50 with the vendor’s own client; tokens that nobody counted are estimated', async () => {
    const judged = await client.moderations.create({ model: 'one:omni', input: ['good', 'bad'] })
    expect(judged.results.map(({ flagged }) => flagged)).toEqual([false, true])
    expect(gateway.brokers.settled).toMatchObject([
      { endpoint: '/api/v1/moderations', model: 'omni', provider: 'one', estimated: true, status: 'success' },
    ])
    expect(gateway.brokers.settled[0]?.tokens.input).toBeGreaterThan(0)
  })

  test('the same at the vendor’s own path', async () => {
    const bare = new OpenAI({ apiKey: gateway.firstKey, baseURL: `${gateway.url}/v1`, maxRetries: 0 })
    expect((await bare.moderations.create({ model: 'two:m', input: 'x' })).results).toHaveLength(1)
  })
})

describe('discovery of models', () => {
  async function listing(list: FakeDoors['models'], everyMs = 3_600_000) {
    fakes.one.models = list
    const discovery = openDiscovery({
      providers: models.instances().map(({ provider }) => provider),
      everyMs,
      log: silent,
      random: () => 0,
    })
    return { discovery, ids: () => listedModels(models, openRouting(routing, models), discovery) }
  }

  test('lists what providers say, beside policies, aliases and what the operator lists', async () => {
    const { discovery, ids } = await listing({
      object: 'list',
      data: [{ id: 'a', object: 'model', created: 7, context_window: 1_000 }, { id: 'b' }, { id: 3 }, null],
    })
    // nobody waits for the providers
    expect(ids().map(({ id }) => id)).toEqual(['embed', 'text-embedding-3-small', 'claude:m'])
    await expect
      .poll(() => ids())
      .toEqual([
        { id: 'embed', provider: 'tollgate', candidates: ['claude:m', 'one:small', 'two:large'] },
        { id: 'text-embedding-3-small', provider: 'tollgate', candidates: ['one:small'] },
        { id: 'one:a', provider: 'one', created: 7, contextTokens: 1_000 },
        { id: 'one:b', provider: 'one' },
        { id: 'claude:m', provider: 'claude' },
      ])
    await discovery.close()
  })

  test('takes a bare list, looks again, keeps the last list of one that fails, and ends when it is closed', async () => {
    const { discovery } = await listing([{ id: 'a', context_length: 9 }], 5)
    await expect.poll(() => discovery.of('one')).toEqual([{ model: 'a', contextTokens: 9 }])
    fakes.one.models = [{ id: 'b' }]
    await expect.poll(() => discovery.of('one')).toEqual([{ model: 'b' }])
    fakes.one.models = { nothing: true }
    const seen = fakes.one.requests.length
    await expect.poll(() => fakes.one.requests.length).toBeGreaterThan(seen + 1)
    expect(discovery.of('one')).toEqual([{ model: 'b' }])
    expect(discovery.of('nobody')).toEqual([])
    await discovery.close()
    const ended = fakes.one.requests.length
    await new Promise((later) => setTimeout(later, 30))
    // one that was on its way may still arrive
    expect(fakes.one.requests.length).toBeLessThanOrEqual(ended + 1)
  })

  test('reads the list of the Messages API, with its times and sizes', async () => {
    const own = openModels({
      providers: { claude: { type: 'anthropic', apiBase: fakes.two.url, models: [] } },
      seats: {},
      demo: false,
      log: silent,
    })
    fakes.two.models = {
      data: [
        { type: 'model', id: 'opus', created_at: '2026-02-04T00:00:00Z', max_input_tokens: 200_000 },
        { type: 'model', id: 'old', created_at: 'unknown', max_input_tokens: 0 },
      ],
      has_more: false,
    }
    const providers = own.instances().map(({ provider }) => provider)
    const discovery = openDiscovery({ providers, everyMs: 3_600_000, log: silent })
    await expect
      .poll(() => discovery.of('claude'))
      .toEqual([{ model: 'opus', created: 1_770_163_200, contextTokens: 200_000 }, { model: 'old' }])
    await discovery.close()
    await own.close()
  })

  test('keeps so many models of a provider and no more', async () => {
    const { discovery } = await listing(Array.from({ length: 2_500 }, (_one, n) => ({ id: `m${n}` })))
    await expect.poll(() => discovery.of('one').length).toBe(2_000)
    await discovery.close()
  })
})

import { seatSettings } from '@tollgate/contracts'
import { openLog, startTelemetry, type Telemetry } from '@tollgate/telemetry'
import {
  type FakeMcpServer,
  type FakeModel,
  fakeAnthropic,
  fakeMcpServer,
  fakeOpenAi,
  type OtlpReceiver,
  type ScriptedReply,
  says,
  startOtlp,
} from '@tollgate/testing'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { failureKinds } from '../../src/models/failure-kind.ts'
import { type ModelRegistry, openModels } from '../../src/models/registry.ts'
import type { RoutingPolicy } from '../../src/routing/routing.ts'
import { silent } from '../brokers.ts'
import { openWith, PATH, rawPost } from '../conversation/gateway.ts'

const policy = (candidates: string[], coolDownMs = 0): RoutingPolicy => ({
  candidates: candidates.map((model) => ({ model })),
  retryOn: failureKinds,
  coolDownMs,
})
const policies = {
  chain: policy(['one:m', 'two:m']),
  unlike: policy(['claude:m', 'two:m']),
  resting: policy(['one:r', 'two:r'], 60_000),
  seated: policy(['kimi', 'eu', 'bare', 'two:m']),
}
const seat = (provider: string, more: object) => seatSettings.parse({ provider, model: 'm', ...more })

const names = ['one', 'two', 'claude'] as const
const replies = {} as Record<(typeof names)[number], () => ScriptedReply>
let fakes: Record<(typeof names)[number], FakeModel>
let models: ModelRegistry
let gateway: Awaited<ReturnType<typeof openWith>>
let github: FakeMcpServer
let otlp: OtlpReceiver
let telemetry: Telemetry

beforeAll(async () => {
  otlp = await startOtlp()
  const log = openLog({ service: 'gateway', level: 'silent' })
  telemetry = startTelemetry({ service: 'gateway', version: '0', log, otlpEndpoint: otlp.url })
  fakes = {
    one: await fakeOpenAi(() => replies.one(), { compatible: true }),
    two: await fakeOpenAi(() => replies.two(), { compatible: true }),
    claude: await fakeAnthropic(() => replies.claude()),
  }
  github = await fakeMcpServer()
  github.tools = [{ name: 'list_issues', run: () => '#12 is open' }]
  models = openModels({
    providers: {
      one: { type: 'openai-compatible', apiBase: `${fakes.one.url}/v1`, models: [] },
      two: { type: 'openai-compatible', apiBase: `${fakes.two.url}/v1`, models: [] },
      claude: { type: 'anthropic', apiBase: fakes.claude.url, models: [] },
    },
    seats: {
      kimi: seat('one', { provider_executed_tools: ['$web_search', '$memory'] }),
      eu: seat('two', { delegated_search: 'web_search' }),
      bare: seat('two', {}),
    },
    demo: false,
    log: silent,
  })
  gateway = await openWith(models, {}, undefined, { policies, aliases: {} })
}, 60_000)
afterAll(async () => {
  await gateway.close()
  await models.close()
  await Promise.all([...Object.values(fakes), github].map((fake) => fake.close()))
  await telemetry.shutdown()
  await otlp.stop()
})
beforeEach(() => {
  for (const name of names) replies[name] = () => says(name)
})

const ask = (model: string, more: object = {}, key = gateway.firstKey) =>
  gateway.send<{ choices: { message: { content: string } }[] }>('POST', PATH, {
    key,
    body: { model, messages: [{ role: 'user', content: 'hi' }], ...more },
  })
const failing = (status: number): ScriptedReply => ({ status, body: '{"error":{"message":"no","type":"some_error"}}' })

const counters = /^(model_(?:attempts|skips|cool_downs)_total|models_cooling)\{([^}]*)\} (\d+)$/
/** The numbers on routing, by name and labels. */
async function numbers(): Promise<Map<string, number>> {
  const lines = (await telemetry.metricsText()).split('\n').flatMap((line) => {
    const [, name, labels, value] = counters.exec(line) ?? []
    return name === undefined ? [] : [[`${name}{${labels}}`, Number(value)] as const]
  })
  return new Map(lines)
}
/** What some work adds to them. */
async function added(work: () => Promise<unknown>): Promise<Record<string, number>> {
  const before = await numbers()
  await work()
  const after = await numbers()
  return Object.fromEntries(
    Array.from(after, ([name, value]) => [name, value - (before.get(name) ?? 0)] as const).filter(
      ([, more]) => more !== 0,
    ),
  )
}

describe('counts', () => {
  test('an answer of the first candidate, of the next one after it, and of nobody', async () => {
    expect(await added(() => ask('chain'))).toEqual({
      'model_attempts_total{provider="one",outcome="answered"}': 1,
    })
    replies.one = () => failing(503)
    expect(await added(() => ask('chain'))).toEqual({
      'model_attempts_total{provider="one",outcome="moved_on"}': 1,
      'model_attempts_total{provider="two",outcome="answered"}': 1,
    })
    replies.two = () => failing(500)
    expect(await added(() => ask('chain'))).toEqual({
      'model_attempts_total{provider="one",outcome="moved_on"}': 1,
      'model_attempts_total{provider="two",outcome="failed"}': 1,
    })
  })

  test('a client that left, and who was asked for it', async () => {
    replies.one = () => ({ ...says('one'), stallAfterBytes: 10 })
    const body = { model: 'chain', stream: true, messages: [{ role: 'user', content: 'hi' }] }
    const counts = await added(async () => {
      const { socket } = rawPost(gateway.url, gateway.firstKey, body)
      const before = fakes.one.requests.length
      await expect.poll(() => fakes.one.requests.length, { timeout: 10_000 }).toBe(before + 1)
      socket.destroy()
      const left = 'model_attempts_total{provider="one",outcome="left"}'
      await expect.poll(async () => (await numbers()).get(left), { timeout: 10_000 }).toBe(1)
    })
    expect(counts).toEqual({ 'model_attempts_total{provider="one",outcome="left"}': 1 })
  })

  test('who is passed over since the key may not use it, and since its wire cannot carry the request', async () => {
    const { key } = await gateway.makeKey({ allowed_models: ['two:*'] })
    expect(await added(() => ask('chain', {}, key))).toEqual({
      'model_skips_total{provider="one",why="refused"}': 1,
      'model_attempts_total{provider="two",outcome="answered"}': 1,
    })
    // Anthropic has no form for a stop of white space alone
    expect(await added(() => ask('unlike', { stop: ' ' }))).toEqual({
      'model_skips_total{provider="claude",why="uncarried"}': 1,
      'model_attempts_total{provider="claude",outcome="moved_on"}': 1,
      'model_attempts_total{provider="two",outcome="answered"}': 1,
    })
  })

  test('a rest as it begins, those who rest now, and who is asked instead', async () => {
    replies.one = () => failing(503)
    const moved = {
      'model_attempts_total{provider="one",outcome="moved_on"}': 1,
      'model_attempts_total{provider="two",outcome="answered"}': 1,
    }
    expect(await added(() => ask('resting'))).toEqual(moved)
    expect(await added(() => ask('resting'))).toEqual(moved)
    expect(await added(() => ask('resting'))).toEqual({
      ...moved,
      'model_cool_downs_total{provider="one"}': 1,
      'models_cooling{provider="one"}': 1,
    })
    expect(await added(() => ask('resting'))).toEqual({
      'model_skips_total{provider="one",why="cooling"}': 1,
      'model_attempts_total{provider="two",outcome="answered"}': 1,
    })
    // with nobody else left it is asked all the same, and its answer ends the rest
    replies.one = () => says('one')
    replies.two = () => failing(503)
    expect(await added(() => ask('resting'))).toEqual({
      'model_skips_total{provider="one",why="cooling"}': 1,
      'model_attempts_total{provider="two",outcome="moved_on"}': 1,
      'model_attempts_total{provider="one",outcome="answered"}': 1,
      'models_cooling{provider="one"}': -1,
    })
    expect((await numbers()).get('models_cooling{provider="one"}')).toBe(0)
  })
})

test.each([
  ['in rounds', [{ type: 'otari_web_search' }], 2],
  ['forwarded', undefined, 0],
])(
  'a trace, %s, has a call of each candidate that was asked, and says why another one was',
  async (_how, tools, most) => {
    replies.one = () => failing(429)
    const answered = await ask('chain', { tools })
    const request = answered.headers.get('x-request-id')
    const server = () => otlp.spans.find(({ attributes }) => attributes['tollgate.request'] === request)
    const trace = () => otlp.spans.filter(({ traceId }) => traceId === server()?.traceId)
    const named = (...wanted: string[]) =>
      wanted.flatMap((name) => trace().filter((span) => span.name === name && span.parentSpanId !== undefined))
    const rounds = () => named('round')
    const calls = () => named('chat one', 'chat two')
    await expect.poll(() => [rounds().length, calls().length], { timeout: 15_000 }).toEqual([most, 2])

    const asked = ({ attributes }: OtlpReceiver['spans'][number]) => [
      attributes['gen_ai.provider.name'],
      attributes['gen_ai.request.model'],
      attributes['tollgate.attempt'],
    ]
    const above =
      most === 0 ? [server(), server()] : rounds().toSorted((a, b) => Number(asked(a)[2]) - Number(asked(b)[2]))
    if (most > 0)
      expect(above.map((round) => round && asked(round))).toEqual([
        ['one', 'm', 0],
        ['two', 'm', 1],
      ])
    expect(calls().map(({ parentSpanId }) => parentSpanId)).toEqual(above.map((span) => span?.spanId))
    expect(trace().flatMap(({ events }) => events.filter(({ name }) => name === 'another model is asked'))).toEqual([
      {
        name: 'another model is asked',
        attributes: {
          'gen_ai.provider.name': 'two',
          'gen_ai.request.model': 'm',
          'tollgate.attempt.failed': 0,
          'error.type': 'rate_limit',
        },
      },
    ])
  },
)

describe('explain lists', () => {
  interface Explained {
    model: string
    seat: string | null
    action: string
    tools: { tool: string; runs_at: string; server?: string }[]
  }
  const explain = (body: object) =>
    gateway.send<{ candidates: Explained[]; detail: string }>('POST', '/api/v1/routing/policies/seated/explain', {
      key: gateway.firstKey,
      body,
    })
  const mine = { type: 'function', function: { name: 'mine', parameters: { type: 'object' } } }
  const builtin = { type: 'builtin_function', function: { name: '$web_search' } }
  const atClient = { tool: 'mine', runs_at: 'client' }
  const atProvider = (tool: string) => ({ tool, runs_at: 'provider' })

  test('the seats among the candidates, with what their backends run by themselves', async () => {
    const { body } = await explain({ tools: [mine] })
    expect(body.candidates.map(({ model, seat: named, tools }) => [model, named, tools])).toEqual([
      ['one:m', 'kimi', [atClient, atProvider('$web_search'), atProvider('$memory')]],
      ['two:m', 'eu', [atClient, atProvider('web_search')]],
      ['two:m', null, [atClient]],
      ['two:m', null, [atClient]],
    ])
  })

  test('what a client declares of them itself once', async () => {
    const { body } = await explain({ tools: [builtin] })
    expect(body.candidates[0]?.tools).toEqual([atProvider('$web_search'), atProvider('$memory')])
    expect(body.candidates.slice(1, 2)).toMatchObject([{ action: 'skip', tools: [] }])
  })

  test('the tools of the MCP servers that the request names, and nothing is left open there', async () => {
    const asked = fakes.one.requests.length
    const servers = [{ name: 'github', url: github.url }]
    const { body } = await explain({ tools: [mine], mcp_servers: servers })
    const listed = { tool: 'list_issues', runs_at: 'gateway', server: 'github' }
    for (const { tools } of body.candidates) expect(tools.at(-1)).toEqual(listed)
    expect(fakes.one.requests).toHaveLength(asked)
    expect(github.calls).toEqual([])
    await expect.poll(() => [github.sessions(), github.connections()], { timeout: 5_000 }).toEqual([0, 0])
  })

  test('nothing of a request that would be refused, in the words of that refusal', async () => {
    const servers = [{ name: 'github', url: github.url }]
    const clash = { type: 'function', function: { name: 'list_issues', parameters: { type: 'object' } } }
    for (const given of [
      { tools: [clash], mcp_servers: servers },
      { mcp_servers: [{ name: 'inner', url: 'http://10.0.0.1/' }] },
    ]) {
      const refused = await ask('seated', given)
      expect(refused.status).toBe(400)
      expect(await explain(given)).toMatchObject({ status: 400, body: refused.body })
    }
    expect((await explain({ mcp_servers: 'github' })).status).toBe(422)
  })
})

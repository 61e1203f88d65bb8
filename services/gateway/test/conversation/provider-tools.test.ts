import { seatMistake, seatSettings } from '@tollgate/contracts'
import { openDb } from '@tollgate/db'
import { openLog } from '@tollgate/telemetry'
import {
  callsTools,
  type FakeJson,
  type FakeModel,
  fakeMcpServer,
  fakeMoonshot,
  fakeVertex,
  freshDatabase,
  type ModelScript,
  says,
} from '@tollgate/testing'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, onTestFinished, test } from 'vitest'
import { ensureFirstKey, ensureMasterKey, migrateGateway } from '../../src/auth/first-start.ts'
import { startGateway } from '../../src/gateway.ts'
import { plainTurn } from '../../src/loop/plain-turn.ts'
import { openToolRefusals } from '../../src/loop/tool-refusals.ts'
import { seatTools } from '../../src/models/seats.ts'
import { faultOfStatus } from '../../src/models/upstream-errors.ts'
import { openRouting } from '../../src/routing/routing.ts'
import { defaultSettings } from '../../src/settings.ts'
import { type Brokers, openBrokers } from '../brokers.ts'
import { type Send, sender } from '../sender.ts'

const BUILTIN = { type: 'builtin_function', function: { name: '$web_search' } }
const FOUND = '{"b":1, "a":1.0,"s":"\\u00e9","usage":{"total_tokens":8245}}'
const fn = (name: string) => ({ type: 'function', function: { name, parameters: { type: 'object', properties: {} } } })
const search = (text = FOUND, more: object = {}) => ({ name: '$web_search', input: {}, text, ...more })
const MIXED = /^backend refuses our tools declared beside a provider-executed one/

const names = ['moonshot', 'vertex', 'router', 'never', 'plain'] as const
const fakes = {} as Record<(typeof names)[number], FakeModel>
const scripts: Partial<Record<(typeof names)[number], ModelScript>> = {}
const rounds: Partial<Record<(typeof names)[number], number>> = {}
const lines: string[] = []
let brokers: Brokers
let send: Send
let key = ''
let master = ''
let url = ''
/** What was logged while it started. */
let atStart: string[] = []
let end: () => Promise<void>

/** Each fake says what the test at hand wrote for it, from its first round on. */
const scripted =
  (name: (typeof names)[number]): ModelScript =>
  (body) => {
    const at = rounds[name] ?? 0
    rounds[name] = at + 1
    const script = scripts[name] ?? []
    return (
      (typeof script === 'function' ? script(body, at) : script[at]) ?? {
        status: 500,
        body: '{"error":{"message":"secret text"}}',
      }
    )
  }

const emptyPlan = {
  owned: new Map(),
  turn: plainTurn('m', 'Hello', [], 1),
  messages: [],
  hints: [],
  tools: [],
  toolChoice: undefined,
}
const seat = (provider: string, more: object = {}) => seatSettings.parse({ provider, model: 'm', ...more })
const listed = { provider_executed_tools: ['$web_search'] }

beforeAll(async () => {
  fakes.moonshot = await fakeMoonshot(scripted('moonshot'), { tools: ['$web_search', '$Some_Tool'] })
  fakes.vertex = await fakeVertex(scripted('vertex'))
  fakes.router = await fakeVertex(scripted('router'), { mixed: null })
  fakes.never = await fakeVertex(scripted('never'), { mixed: 'never' })
  fakes.plain = await fakeVertex(scripted('plain'), { mixed: 'never' })
  const log = openLog({ service: 'gateway', level: 'debug', write: (line) => lines.push(line) })
  brokers = await openBrokers()
  const database = await freshDatabase(inject('postgresUrl'))
  const db = await openDb({ url: database.url, log, poolSize: 4 })
  const own = await migrateGateway(db)
  key = (await ensureFirstKey(own)) ?? ''
  master = (await ensureMasterKey(own)) ?? ''
  const gateway = await startGateway({
    bus: brokers.bus,
    log,
    db,
    settings: { ...defaultSettings, webFetchEnabled: true, modelDiscoveryIntervalMs: 0 },
    version: '1',
    host: '127.0.0.1',
    port: 0,
    demoProvider: false,
    providers: Object.fromEntries(
      names.map((name) => [name, { type: 'openai-compatible' as const, apiBase: `${fakes[name].url}/v1`, models: [] }]),
    ),
    seats: {
      kimi: seat('moonshot', { ...listed, provider_tool_fees: { $web_search: 0.005 } }),
      'kimi-k3': seat('moonshot'),
      cased: seat('moonshot', { provider_executed_tools: ['$Some_Tool'] }),
      small: seat('moonshot', { ...listed, context_window: 8_000 }),
      bounded: seat('moonshot', { ...listed, provider_tool_max_result_tokens: 5_000 }),
      capped: seat('moonshot', { ...listed, provider_tool_max_calls: 2 }),
      bare: seat('router', { provider_executed_tools: ['web_search'], web_search_keyword: 'provider_tool' }),
      keyword: seat('moonshot', { ...listed, web_search_keyword: 'provider_tool' }),
      rules: seat('router', { provider_executed_tools: ['web_search'] }),
      eu: seat('vertex', { delegated_search: 'web_search', provider_tool_fees: { web_search: '0.01' } }),
      echoing: seat('moonshot', { delegated_search: '$web_search', provider_tool_fees: { $web_search: 0.005 } }),
      wrong: seat('vertex', { provider_executed_tools: ['web_search'] }),
      alien: seat('never', { provider_executed_tools: ['web_search'] }),
      plain: seat('plain'),
      both: seat('vertex', { delegated_search: 'web_search', provider_executed_tools: ['$other'] }),
    },
    routing: {
      policies: { chain: { candidates: [{ model: 'kimi' }, { model: 'plain' }], retryOn: ['server_error'] } },
      aliases: {},
    },
  })
  atStart = [...lines]
  url = gateway.url
  send = sender(url)
  end = async () => {
    await gateway.close(Date.now() + 2_000)
    await db.close()
    await database.drop()
    for (const name of names) await fakes[name].close()
  }
})
afterAll(() => end())
beforeEach(() => {
  for (const name of names) {
    scripts[name] = []
    rounds[name] = 0
    fakes[name].requests.length = 0
    fakes[name].refusals.length = 0
  }
  brokers.settled.length = 0
  lines.length = 0
})

interface Completion {
  choices: {
    message: { content: string | null; tool_calls?: { function: { name: string } }[] }
    finish_reason: string
  }[]
  usage: { prompt_tokens: number; completion_tokens: number }
  otari_tool_calls?: object[]
  detail?: string
}
const messages = [{ role: 'user', content: 'What is new?' }]
const chat = (model: string, more: object = {}) =>
  send<Completion>('POST', '/v1/chat/completions', { key, body: { model, messages, ...more } })
const bodies = (name: (typeof names)[number]) => fakes[name].requests.map(({ body }) => body)
const messagesOf = (name: (typeof names)[number], at: number) => (bodies(name).at(at)?.messages ?? []) as FakeJson[]
const toolsOf = (body: FakeJson | undefined) => (body?.tools ?? []) as FakeJson[]
const settled = async () => {
  await expect.poll(() => brokers.settled.length).toBeGreaterThan(0)
  return brokers.settled.at(-1)!
}

describe('a seat that lists tools of its backend', () => {
  test('PE-05 PE-06 PE-10 PE-12 PE-25 PE-27 PE-28 PE-29 PE-32 PE-56 PE-60 declares them each round, answers with the arguments to the byte, and bills what was reported', async () => {
    scripts.moonshot = [
      callsTools([search(FOUND, { id: 's1' })], {
        first: [{ thinking: 'I must look.' }],
        usage: { prompt_tokens: 166, completion_tokens: 20, total_tokens: 186 },
      }),
      callsTools([search(FOUND, { id: 's2' })], { usage: { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0 } }),
      says('Much.', { usage: { prompt_tokens: 8_411, completion_tokens: 295, total_tokens: 8_706 } }),
    ]
    const { status, body } = await chat('kimi', { tools: [fn('mine')] })
    expect(fakes.moonshot.refusals).toEqual([])
    expect(status).toBe(200)
    const sent = bodies('moonshot')
    expect(sent).toHaveLength(3)
    for (const one of sent) expect(toolsOf(one)).toEqual([fn('mine'), BUILTIN])
    expect(sent[1]?.messages).toEqual([
      ...messages,
      {
        role: 'assistant',
        content: '',
        reasoning_content: 'I must look.',
        tool_calls: [{ id: 's1', type: 'function', function: { name: '$web_search', arguments: FOUND } }],
      },
      { role: 'tool', tool_call_id: 's1', name: '$web_search', content: FOUND },
    ])
    expect(body.choices[0]?.message.content).toBe('Much.')
    expect(body.usage).toMatchObject({ prompt_tokens: 8_577, completion_tokens: 315 })
    const one = { name: '$web_search', executed_by: 'provider', status: 'completed', result_tokens: 8_245 }
    expect(body.otari_tool_calls).toMatchObject([one, one])
    const row = await settled()
    expect(row.tokens).toMatchObject({ input: 8_577, output: 315 })
    const line = { tool: '$web_search', label: 'moonshot:$web_search', reportedCost: '0.005', resultTokens: 8_245 }
    expect(row.lines).toMatchObject([line, line])
    // nothing of what was asked, said or found is logged
    for (const text of ['total_tokens', 'I must look', 'What is new', 'Much.'])
      expect(lines.join('')).not.toContain(text)
  })

  test('PE-11 PE-26 sends odd arguments back as they are, and knows no size where none is told', async () => {
    const odd = [
      '{"usage":{"total_tokens":null}, "a":1.0}',
      '{"usage":{"total_tokens":"12"}}',
      '{ "a" : 1e2 }',
      'no json',
    ]
    for (const text of odd) {
      rounds.moonshot = 0
      brokers.settled.length = 0
      scripts.moonshot = [callsTools([search(text)]), says('Done.')]
      const { body } = await chat('kimi')
      expect(fakes.moonshot.refusals).toEqual([])
      expect(body.choices[0]?.message.content).toBe('Done.')
      expect(body.otari_tool_calls).toEqual([
        { id: expect.any(String), name: '$web_search', executed_by: 'provider', status: 'completed' },
      ])
      expect((await settled()).lines[0]).not.toHaveProperty('resultTokens')
    }
  })

  test('PE-01 PE-04 a seat without a list sends what was sent before, whatever its name', async () => {
    scripts.moonshot = [says('One.'), says('Two.')]
    await chat('kimi-k3', { tools: [fn('mine')], temperature: 0.5 })
    await chat('moonshot:m', { tools: [fn('mine')], temperature: 0.5 })
    const [one, other] = fakes.moonshot.requests
    expect(one?.text).toBe(other?.text)
    expect(one?.text).not.toContain('builtin')
  })

  test('PE-02 PE-05 a name goes out as it is written, marked or bare', async () => {
    scripts.moonshot = [says('Hi.')]
    await chat('cased')
    expect(toolsOf(bodies('moonshot')[0])).toEqual([{ type: 'builtin_function', function: { name: '$Some_Tool' } }])
    scripts.router = [says('Hi.')]
    await chat('bare')
    expect(toolsOf(bodies('router')[0])).toEqual([{ type: 'web_search' }])
  })

  test('PE-03 PE-19 a fallback starts from the client’s messages, with the list of the seat it goes to', async () => {
    for (const stream of [false, true]) {
      for (const name of names) {
        fakes[name].requests.length = 0
        rounds[name] = 0
      }
      brokers.settled.length = 0
      scripts.moonshot = [callsTools([search()]), { status: 503, body: '{}' }]
      scripts.plain = [says('Plain.')]
      const { status, text } = await chat('chain', { tools: [fn('mine')], stream })
      expect(status).toBe(200)
      expect(text).toContain(stream ? '"content":"Plain' : 'Plain.')
      expect(bodies('moonshot')).toHaveLength(2)
      const [first] = bodies('moonshot')
      const [fallback] = bodies('plain')
      expect(fallback?.messages).toEqual(messages)
      expect(toolsOf(fallback)).toEqual([fn('mine')])
      expect(Object.keys(fallback ?? {})).toEqual(Object.keys(first ?? {}))
      expect((await settled()).lines).toMatchObject([{ label: 'moonshot:$web_search' }])
    }
  })

  test('PE-07 PE-52 a shape that the backend does not know fails the call, which is made once', async () => {
    const { status, text } = await chat('alien')
    expect(status).toBe(400)
    expect(text).toContain('unknown tool type')
    expect(fakes.never.requests).toHaveLength(1)
  })

  test('PE-08 PE-17 the last round has no tool of a backend, nor a round after its cap, and an answer comes', async () => {
    scripts.moonshot = (body) => (toolsOf(body).length > 0 ? callsTools([search()]) : says('What I know.'))
    const limited = await chat('kimi', { max_tool_iterations: 2 })
    expect(limited.body.choices[0]?.message.content).toBe('What I know.')
    expect(bodies('moonshot').map((body) => toolsOf(body).length)).toEqual([1, 0])
    fakes.moonshot.requests.length = 0
    const capped = await chat('capped')
    expect(capped.body.choices[0]?.message.content).toBe('What I know.')
    expect(bodies('moonshot').map((body) => toolsOf(body).length)).toEqual([1, 1, 1, 0])
    expect(fakes.moonshot.refusals).toEqual([])
  })

  test('PE-09 PE-37 PE-72 a name that would mean two things is refused before any call', async () => {
    const refused: [string, object[], string][] = [
      ['bare', [fn('web_search')], "'web_search'"],
      ['rules', [{ type: 'otari_web_search' }], "'web_search'"],
      ['eu', [fn('nsed_delegated_search')], "'nsed_delegated_search'"],
      ['kimi', [fn('$x')], "'$x'"],
      ['plain', [fn('$x')], "'$x'"],
    ]
    for (const [model, tools, named] of refused) {
      const { status, text } = await chat(model, { tools })
      expect([model, status, text.includes(named)]).toEqual([model, 400, true])
    }
    const mcp = await fakeMcpServer({ tools: [{ name: 'web_search' }] })
    onTestFinished(() => mcp.close())
    const offered = await chat('rules', { mcp_servers: [{ name: 'notes', url: mcp.url }] })
    expect([offered.status, offered.text.includes("'web_search'")]).toEqual([400, true])
    for (const name of names) expect(fakes[name].requests).toHaveLength(0)
    scripts.plain = [says('Fine.'), says('Fine.')]
    expect((await chat('plain', { tools: [fn('nsed_delegated_search')] })).status).toBe(200)
    expect((await chat('plain', { tools: [fn('web_search')] })).status).toBe(200)
  })

  test('PE-13 PE-14 a call is the backend’s by its type too, and one that nobody listed fails by its name', async () => {
    scripts.moonshot = [callsTools([search(FOUND, { type: 'builtin_function' })]), says('Done.')]
    expect((await chat('kimi')).status).toBe(200)
    expect(messagesOf('moonshot', 1)[1]?.tool_calls).toMatchObject([{ type: 'builtin_function' }])
    rounds.moonshot = 0
    fakes.moonshot.requests.length = 0
    scripts.moonshot = [callsTools([{ name: '$code_interpreter', input: {} }])]
    const { status, text } = await chat('kimi')
    expect(status).toBe(502)
    expect(text).toContain('$code_interpreter')
    expect(fakes.moonshot.requests).toHaveLength(1)
  })

  test('PE-15 several calls are each echoed in order, and ours run beside them', async () => {
    scripts.moonshot = [
      callsTools([
        search(FOUND, { id: 'a' }),
        { name: 'web_fetch', input: { url: 'https://site.test/' }, id: 'b' },
        search('{"q":1}', { id: 'c' }),
      ]),
      says('Done.'),
    ]
    const { body } = await chat('kimi', { tools: [{ type: 'otari_web_fetch' }] })
    expect(fakes.moonshot.refusals).toEqual([])
    expect(body.choices[0]?.message.content).toBe('Done.')
    const results = messagesOf('moonshot', 1).filter(({ role }) => role === 'tool')
    const echoes = results.filter(({ name }) => name !== undefined)
    expect(echoes.map(({ tool_call_id, content }) => [tool_call_id, content])).toEqual([
      ['a', FOUND],
      ['c', '{"q":1}'],
    ])
    expect(results.map(({ tool_call_id }) => tool_call_id)).toContain('b')
    expect((await settled()).lines.map(({ label }) => label).toSorted()).toEqual([
      'builtin:builtin_fetch',
      'moonshot:$web_search',
      'moonshot:$web_search',
    ])
  })

  test('PE-16 beside a call of the client’s, the client sees its own alone and goes on with it', async () => {
    scripts.moonshot = [callsTools([search(), { name: 'mine', input: { a: 1 }, id: 'm1' }]), says('Done.')]
    const tools = [fn('mine')]
    const { body } = await chat('kimi', { tools })
    const said = body.choices[0]!.message
    expect(said.tool_calls?.map((call) => call.function.name)).toEqual(['mine'])
    expect((await settled()).lines).toHaveLength(1)
    const next = [...messages, said, { role: 'tool', tool_call_id: 'm1', content: '42' }]
    const second = await chat('kimi', { tools, messages: next })
    expect(fakes.moonshot.refusals).toEqual([])
    expect(second.body.choices[0]?.message.content).toBe('Done.')
    expect(JSON.stringify(bodies('moonshot')[1]?.messages)).not.toContain('$web_search')
  })

  test('A-07 a seat is what it stands for to a key that may not use every model', async () => {
    const allowed_models = ['moonshot:m']
    const made = await send<{ key: string }>('POST', '/v1/keys', { key: master, body: { allowed_models } })
    scripts.moonshot = [says('Hi.')]
    const ask = (model: string) =>
      send('POST', '/v1/chat/completions', { key: made.body.key, body: { model, messages } })
    expect((await ask('kimi')).status).toBe(200)
    expect((await ask('plain')).status).toBe(403)
    expect(fakes.plain.requests).toHaveLength(0)
  })

  test('PE-17 PE-29 a flood of calls ends the request, and a tool that is withdrawn is echoed no more', async () => {
    scripts.moonshot = [callsTools(Array.from({ length: 151 }, () => search('{}')))]
    expect((await chat('kimi')).status).toBe(502)
    rounds.moonshot = 0
    fakes.moonshot.requests.length = 0
    scripts.moonshot = [callsTools([search()]), callsTools([search('{}')]), says('Well.')]
    expect((await chat('bounded')).body.choices[0]?.message.content).toBe('Well.')
    expect(JSON.stringify(bodies('moonshot'))).not.toContain('"role":"tool"')
  })

  test('PE-18 PE-60 a stream has the words and no call of a backend’s', async () => {
    scripts.moonshot = [callsTools([search()], { first: [{ text: 'Looking. ' }] }), says('Found.')]
    const { text } = await chat('kimi', { stream: true })
    expect(text.replaceAll('"name":"$web_search","executed_by"', '')).not.toContain('$')
    expect(text).toContain('"executed_by":"provider"')
    expect(text.trimEnd()).toMatch(/data: \[DONE\]$/)
    expect(text).not.toContain('"tool_calls"')
  })

  test('PE-20 a client’s own loop passes to a seat with the tool, and is taken out for any other', async () => {
    const history = (name = '$web_search') => [
      ...messages,
      {
        role: 'assistant',
        content: 'Let me look.',
        tool_calls: [{ id: 'x', type: 'builtin_function', function: { name, arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'x', name, content: '{}' },
    ]
    scripts.moonshot = [says('One.')]
    await chat('kimi', { messages: history() })
    expect(bodies('moonshot')[0]?.messages).toEqual(history())
    scripts.plain = [says('Two.')]
    await chat('plain', { messages: history() })
    expect(bodies('plain')[0]?.messages).toEqual([...messages, { role: 'assistant', content: 'Let me look.' }])
    const orphaned = await chat('plain', { messages: [...messages, history()[2]] })
    expect(orphaned.status).toBe(400)
    expect(orphaned.text).toContain('$web_search')
    expect(fakes.plain.requests).toHaveLength(1)
  })

  test('PE-61 PE-62 PE-66 a client’s own declaration is the gateway’s where the seat lists it, the client’s elsewhere', async () => {
    scripts.moonshot = [
      callsTools([search()]),
      says('Ours.'),
      callsTools([search(FOUND, { type: 'builtin_function' })]),
    ]
    const ours = await chat('kimi', { tools: [BUILTIN], tool_choice: BUILTIN })
    expect(ours.body.choices[0]?.message.content).toBe('Ours.')
    expect(toolsOf(bodies('moonshot')[0])).toEqual([BUILTIN])
    expect(bodies('moonshot')[0]?.tool_choice).toBe('auto')
    const theirs = await chat('kimi-k3', { tools: [BUILTIN] })
    expect(theirs.body.choices[0]?.message.tool_calls).toMatchObject([
      { type: 'builtin_function', function: { name: '$web_search' } },
    ])
    expect(bodies('moonshot')[2]?.tools).toEqual([BUILTIN])
    expect((await chat('plain', { tools: [BUILTIN] })).status).toBe(400)
    rounds.moonshot = 0
    fakes.plain.requests.length = 0
    scripts.moonshot = [{ status: 503, body: '{}' }]
    expect((await chat('chain', { tools: [BUILTIN] })).status).toBeGreaterThanOrEqual(500)
    expect(fakes.plain.requests).toHaveLength(0)
    rounds.moonshot = 0
    fakes.moonshot.requests.length = 0
    scripts.moonshot = [says('Forced.')]
    const choice = { type: 'function', function: { name: 'mine' } }
    await chat('kimi', { tools: [fn('mine')], tool_choice: choice })
    expect(bodies('moonshot')[0]?.tool_choice).toEqual(choice)
  })

  test('PE-29 PE-30 PE-31 a result that would not fit, or is larger than may be, is not asked for, and its fee stays', async () => {
    for (const model of ['small', 'bounded']) {
      rounds.moonshot = 0
      fakes.moonshot.requests.length = 0
      brokers.settled.length = 0
      scripts.moonshot = [callsTools([search()]), says('From memory.')]
      const { body } = await chat(model)
      expect(body.choices[0]?.message.content).toBe('From memory.')
      const [, second] = bodies('moonshot')
      expect(second?.tools).toBeUndefined()
      expect(second?.messages).toEqual([...messages, { role: 'system', content: expect.stringContaining('too large') }])
      expect((await settled()).lines).toHaveLength(1)
    }
    rounds.moonshot = 0
    scripts.moonshot = [callsTools([search('{"usage":{"total_tokens":5000}}')]), says('Read.')]
    expect((await chat('bounded')).body.choices[0]?.message.content).toBe('Read.')
  })
})

describe('delegated search', () => {
  test('PE-35 PE-36 PE-38 PE-41 asks the backend’s search alone, and bills it to the request', async () => {
    scripts.vertex = [
      callsTools([{ name: 'nsed_delegated_search', input: { query: ' tolls ' } }]),
      says('Tolls rose.'),
      says('They rose.'),
    ]
    const { body } = await chat('eu', { tools: [fn('mine')] })
    expect(fakes.vertex.refusals).toEqual([])
    expect(body.choices[0]?.message.content).toBe('They rose.')
    const [outer, nested] = bodies('vertex')
    expect(toolsOf(outer).map((tool) => [tool.type, (tool.function as FakeJson).name])).toEqual([
      ['function', 'mine'],
      ['function', 'nsed_delegated_search'],
    ])
    expect(nested).toEqual({
      model: 'm',
      messages: [{ role: 'user', content: 'tolls' }],
      tools: [{ type: 'web_search' }],
    })
    expect(messagesOf('vertex', -1).at(-1)).toMatchObject({ role: 'tool', content: 'Tolls rose.' })
    expect(body.usage).toMatchObject({ prompt_tokens: 33, completion_tokens: 21 })
    const row = await settled()
    expect(row.tokens).toMatchObject({ input: 33, output: 21 })
    expect(row.lines.map(({ label, reportedCost }) => [label, reportedCost])).toEqual([
      ['vertex:web_search', '0.01'],
      ['otari:nsed_delegated_search', '0'],
    ])
  })

  test('PE-39 a blank query asks nobody, and an empty answer is no failure', async () => {
    const call = (query: string) => callsTools([{ name: 'nsed_delegated_search', input: { query } }])
    scripts.vertex = [call('  '), call('x'), says(' '), says('Done.')]
    const { body } = await chat('eu')
    expect(body.choices[0]?.message.content).toBe('Done.')
    const results = messagesOf('vertex', -1).filter(({ role }) => role === 'tool')
    expect(results.map(({ content }) => content)).toEqual([
      'web_search: no query given',
      'web_search: no results for "x"',
    ])
    expect(fakes.vertex.requests).toHaveLength(4)
  })

  test('PE-40 a marked tool is echoed inside, and a failure tells its kind and status alone', async () => {
    const call = callsTools([{ name: 'nsed_delegated_search', input: { query: 'q' } }])
    scripts.moonshot = [call, callsTools([search()]), says('Inside.'), says('Outside.')]
    expect((await chat('echoing')).body.choices[0]?.message.content).toBe('Outside.')
    expect(fakes.moonshot.refusals).toEqual([])
    expect(JSON.stringify(bodies('moonshot')[3]?.messages)).toContain('Inside.')
    expect((await settled()).lines.map(({ label }) => label)).toEqual([
      'moonshot:$web_search',
      'otari:nsed_delegated_search',
    ])
    scripts.vertex = [call, { status: 500, body: '{"error":{"message":"secret text"}}' }, says('Sorry.')]
    expect((await chat('eu')).body.choices[0]?.message.content).toBe('Sorry.')
    const told = messagesOf('vertex', -1).at(-1)?.content
    expect(told).toBe('[tool error] search failed (upstream) with HTTP status 500')
  })

  test('PE-41 ends with the request that it belongs to', async () => {
    scripts.vertex = [
      callsTools([{ name: 'nsed_delegated_search', input: { query: 'q' } }]),
      says('never', { stallAfterBytes: 0 }),
    ]
    const leaving = new AbortController()
    const asked = fetch(`${url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'eu', messages }),
      signal: leaving.signal,
    })
    asked.catch(() => undefined)
    await expect.poll(() => fakes.vertex.requests.length).toBe(2)
    leaving.abort()
    await expect(asked).rejects.toThrow()
    await expect.poll(() => fakes.vertex.aborted()).toBe(1)
    expect(await settled()).toMatchObject({ status: 'cancelled', lines: [] })
  })

  test('PE-42 PE-43 PE-70 a seat with both settings is out of service, whatever they name, and all others serve', async () => {
    expect((await chat('both')).status).toBe(503)
    const refused = atStart.map((line) => JSON.parse(line)).filter(({ seat: of }) => of === 'both')
    expect(refused).toHaveLength(1)
    expect(refused[0].err.message).toBe(
      seatMistake('both', { delegated_search: 'web_search', provider_executed_tools: ['$other'] }),
    )
    scripts.plain = [says('Fine.')]
    expect((await chat('plain')).status).toBe(200)
  })

  test('PE-44 PE-45 the probe measures, for the operator alone, and changes nothing', async () => {
    const probe = (as: string, of: string, tool: string) =>
      send<object>('POST', '/v1/provider-tools/probe', { key: as, body: { seat: of, tool } })
    const always = () => says('OK')
    Object.assign(scripts, { router: always, vertex: always, never: always, plain: always })
    expect((await probe(key, 'bare', 'web_search')).status).toBe(403)
    expect((await probe(master, 'bare', 'web_search')).body).toMatchObject({
      result: 'mixed_ok',
      setting: { provider_executed_tools: ['web_search'] },
    })
    expect((await probe(master, 'eu', 'web_search')).body).toMatchObject({
      result: 'alone_only',
      setting: { delegated_search: 'web_search' },
    })
    expect((await probe(master, 'plain', 'web_search')).body).toMatchObject({ result: 'unsupported', setting: null })
    expect((await probe(master, 'nobody', 'web_search')).status).toBe(404)
    const listing = await send<{ data: object[] }>('GET', '/v1/models', { key: master })
    expect(listing.body.data).toContainEqual(
      expect.objectContaining({ id: 'plain', provider_executed_tools: [], delegated_search: null }),
    )
    scripts.plain = []
    expect((await probe(master, 'plain', 'web_search')).status).toBe(200)
  })
})

describe('the operator', () => {
  test('PE-50 PE-52 PE-53 PE-55 is told of a refusal once a minute, in every activity entry, and in the listing', async () => {
    for (let n = 0; n < 5; n += 1) {
      const { status, text } = await chat('wrong', { tools: [fn('mine')] })
      expect(status).toBe(400)
      expect(text).not.toMatch(/backend refuses/)
    }
    const errors = lines.map((line) => JSON.parse(line)).filter(({ msg }) => MIXED.test(msg))
    expect(errors).toMatchObject([{ seat: 'wrong', model: 'm', provider_executed_tools: ['web_search'], count: 1 }])
    await expect.poll(() => brokers.settled.length).toBe(5)
    for (const { error } of brokers.settled) expect(error).toMatch(/^invalid_request: backend refuses our tools/)
    const one = await chat('wrong', { tools: [fn('mine')] })
    scripts.plain = [{ status: 400, body: JSON.stringify({ error: { message: fakes.vertex.refusals[0] } }) }]
    const ordinary = await chat('plain')
    expect([one.status, one.body]).toEqual([ordinary.status, ordinary.body])
    const shown = async (as: string) =>
      (await send<{ data: { id: string }[] }>('GET', '/v1/models', { key: as })).body.data.find(
        ({ id }) => id === 'wrong',
      )
    expect(await shown(master)).toMatchObject({ provider_executed_tools: ['web_search'], tools_refused_recently: true })
    expect(await shown(key)).not.toHaveProperty('provider_executed_tools')
  })

  test('PE-50 the same text from a seat without the list is an ordinary failure', async () => {
    scripts.plain = [
      {
        status: 400,
        body: '{"error":{"message":"Multiple tools are supported only when they are all search tools."}}',
      },
    ]
    expect((await chat('plain')).status).toBe(400)
    expect(lines.join('')).not.toMatch(/backend refuses/)
  })

  test('PE-51 a name that the backend found twice is told with where it came from', async () => {
    scripts.router = [
      { status: 400, body: '{"error":{"message":"wrapped: Duplicate function declaration found: web_search."}}' },
    ]
    expect((await chat('bare')).status).toBe(400)
    const told = lines.map((line) => JSON.parse(line)).find(({ msg }) => /two declarations/.test(msg))
    expect(told).toMatchObject({
      seat: 'bare',
      tool: 'web_search',
      origins: ['provider_executed_tools', 'the backend'],
    })
  })

  test('a name that a policy has too stops the start', () => {
    const models = {
      resolve: () => {
        throw new Error('unknown')
      },
      seats: () => [{ name: 'kimi' }],
    }
    const aliases = { kimi: 'a:b' }
    expect(() => openRouting({ policies: {}, aliases }, models)).toThrow(
      'models.kimi: a policy or an alias has the same name',
    )
  })

  test('PE-53 a hundred failures are two lines in two minutes, with their counts; PE-55 an hour later they are forgotten', () => {
    let now = 1_000_000
    const written: Record<string, unknown>[] = []
    const log = openLog({ service: 'test', level: 'info', write: (line) => written.push(JSON.parse(line)) })
    const refusals = openToolRefusals(log, () => now)
    const tools = seatTools('wrong', seat('vertex', { provider_executed_tools: ['web_search'] }))
    const plan = { ...emptyPlan, seat: tools }
    const origin = { name: 'vertex', wire: 'openai-chat' as const, hidden: [] }
    const fail = (text: string) => {
      const fault = faultOfStatus(origin, 400, { error: { message: `proxy: {"message":"${text}"}` } })
      refusals.note(fault, plan, 'm')
      return fault.note
    }
    const mixed = 'Multiple tools are supported only when they are all search tools'
    for (let n = 0; n < 100; n += 1) expect(fail(mixed)).toMatch(MIXED)
    now += 60_000
    expect(fail(mixed)).toMatch(MIXED)
    expect(written.map(({ count }) => count)).toEqual([1, 100])
    expect(fail('Something else')).toBeUndefined()
    expect(refusals.recently('wrong')).toBe(true)
    expect(refusals.recently('eu')).toBe(false)
    now += 3_600_000
    expect(refusals.recently('wrong')).toBe(false)
  })

  test('PE-54 arguments that are no JSON are told with the seat and the model, and none of their text', async () => {
    scripts.moonshot = [callsTools([{ name: 'web_fetch', input: {}, text: '{"url": "https://secret' }]), says('Done.')]
    await chat('kimi', { tools: [{ type: 'otari_web_fetch' }] })
    const told = lines.map((line) => JSON.parse(line)).find(({ msg }) => /no JSON/.test(msg))
    expect(told).toMatchObject({ seat: 'kimi', model: 'm', tool: 'web_fetch' })
    expect(lines.join('')).not.toContain('https://secret')
  })
})

describe('the other dialects', () => {
  const anthropic = { max_tokens: 100, messages }
  test('PE-63 Messages counts searches and makes up no block, streamed or not', async () => {
    for (const stream of [false, true]) {
      rounds.moonshot = 0
      scripts.moonshot = [callsTools([search()]), says('Found.')]
      const body = { model: 'kimi', ...anthropic, stream }
      const { text } = await send('POST', '/v1/messages', { key, body })
      expect(fakes.moonshot.refusals).toEqual([])
      expect(text).toContain('"server_tool_use":{"web_search_requests":1}')
      expect(text).not.toMatch(/web_search_tool_result|\$web_search/)
    }
  })

  test('PE-64 PE-65 Responses has an item for each search, in order, whichever way it was asked for', async () => {
    const ask = (model: string, more: object = {}) =>
      send<{ output: { type: string; status: string; action?: object }[] }>('POST', '/v1/responses', {
        key,
        body: { model, input: 'What is new?', ...more },
        headers: { 'Otari-Web-Search': 'provider' },
      })
    scripts.moonshot = [callsTools([search()]), callsTools([search('{"query":"tolls"}')]), says('Found.')]
    const { body } = await ask('kimi')
    expect(fakes.moonshot.refusals).toEqual([])
    expect(body.output.map(({ type, status, action }) => [type, status, action])).toEqual([
      ['web_search_call', 'completed', { type: 'search' }],
      ['web_search_call', 'completed', { type: 'search', query: 'tolls' }],
      ['message', 'completed', undefined],
    ])
    scripts.router = [says('With.')]
    const tools = [{ type: 'web_search' }]
    expect((await ask('bare', { tools, store: false })).status).toBe(200)
    expect(toolsOf(bodies('router')[0])).toEqual([{ type: 'web_search' }])
    expect((await ask('plain', { tools })).status).toBe(400)
    rounds.moonshot = 0
    fakes.moonshot.requests.length = 0
    scripts.moonshot = [callsTools([search()]), says('Served.')]
    const served = await ask('keyword', { tools, tool_choice: { type: 'web_search' } })
    expect(served.body.output.map(({ type }) => type)).toEqual(['web_search_call', 'message'])
    expect(toolsOf(bodies('moonshot')[0])).toEqual([BUILTIN])
    expect(bodies('moonshot')[0]?.tool_choice).not.toMatchObject({ type: expect.anything() })
    for (const model of ['kimi', 'rules']) expect((await ask(model, { tools })).status).toBe(400)
  })
})

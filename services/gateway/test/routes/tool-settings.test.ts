import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { memoryBus } from '@tollgate/bus'
import {
  changedSettings,
  type RuntimeSettings,
  runtimeSettingsRead,
  type ToolSettingKey,
  toolSettings,
} from '@tollgate/contracts'
import { followSettings } from '@tollgate/service'
import { openFakeSandbox } from '@tollgate/testing'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { defaultSettings } from '../../src/settings.ts'
import { openRuntimeSettings } from '../../src/tool-settings/runtime.ts'
import type { Send } from '../sender.ts'
import { SANDBOX_TOKEN, startReplicas } from './two-replicas.ts'

const PATH = '/api/v1/tool-settings'
const keys = Object.keys(toolSettings) as ToolSettingKey[]
const hidden = ['sandbox_url', 'web_search_url']

/** Over NATS it takes milliseconds; a loaded machine may take its time. */
const WITHIN = { timeout: 25_000, interval: 20 }

let replicas: Awaited<ReturnType<typeof startReplicas>>
beforeAll(async () => {
  replicas = await startReplicas()
}, 60_000)
afterAll(() => replicas.close())
afterEach(async () => {
  await change(Object.fromEntries(keys.map((key) => [key, null])))
})

interface Item {
  key: string
  service: string
  type: string
  value: unknown
  description: string
}
const list = async (send: Send, key: string) => (await send<Item[]>('GET', PATH, { key })).body
const valuesAt = async (send: Send) =>
  Object.fromEntries((await list(send, replicas.masterKey)).map(({ key, value }) => [key, value]))
const change = (body: object, key = replicas.masterKey) =>
  replicas.left<Item[] & { detail: { loc: string[]; msg: string }[] }>('PATCH', PATH, { key, body })

test('CFG-50 everyone who is signed in reads the settings, and the operator alone those that name its own addresses', async () => {
  const { left, key, masterKey, fakes } = replicas
  const operators = await list(left, masterKey)
  const others = await list(left, key)
  expect(operators.map((item) => item.key)).toEqual(keys)
  expect(others).toEqual(operators.filter((item) => !hidden.includes(item.key)))
  expect(JSON.stringify(others)).not.toContain(new URL(fakes.sandbox.url).host)
  for (const item of operators)
    expect([item.key, Object.keys(item)]).toEqual([item.key, ['key', 'service', 'type', 'value', 'description']])
  expect(await valuesAt(left)).toMatchObject({
    sandbox_url: fakes.sandbox.url,
    web_search_url: fakes.first.url,
    web_search_extract: false,
    web_search_max_calls: 10,
    web_search_max_results: null,
    code_execution_executor: 'auto',
  })
  expect((await left('GET', PATH)).status).toBe(401)
})

describe('CFG-51 to change the settings', () => {
  test('is the operator’s alone', async () => {
    const { left, key } = replicas
    expect((await change({ web_search_intercept: true }, key)).status).toBe(403)
    expect((await change({ nonsense: 1 }, key)).status).toBe(403)
    expect((await left('PATCH', PATH, { body: { web_search_intercept: true } })).status).toBe(401)
    expect(await valuesAt(left)).toMatchObject({ web_search_intercept: false })
  })

  test('leaves what is left out, and null brings back what the deployment was started with', async () => {
    const { left, fakes } = replicas
    const set = await change({ web_search_max_calls: 3, web_search_url: fakes.second.url })
    expect(set.status).toBe(200)
    expect(set.body).toEqual(await list(left, replicas.masterKey))
    expect(await valuesAt(left)).toMatchObject({ web_search_max_calls: 3, web_search_url: fakes.second.url })
    await change({ web_search_max_calls: null, web_search_extract: true })
    expect(await valuesAt(left)).toMatchObject({
      web_search_max_calls: 10,
      web_search_url: fakes.second.url,
      web_search_extract: true,
    })
    expect((await change({})).status).toBe(200)
    await change({ web_search_url: null, web_search_purpose_hint: null })
    expect(await valuesAt(left)).toMatchObject({ web_search_url: fakes.first.url, web_search_extract: true })
  })

  const bad: [key: string, value: unknown][] = [
    ...['sandbox_url', 'web_search_url'].flatMap((key): [string, unknown][] =>
      [
        ...['', 'sandbox', 'ftp://x.test', 'http://me:secret@x.test', 7],
        ...['http://x.test/?q=1', 'http://x.test/#a', 'http://x.test?', 'http://x.test/a#'],
      ].map((value) => [key, value]),
    ),
    ['code_execution_executor', 'gateway'],
    ['code_execution_executor', ''],
    ['code_execution_executor', ['otari']],
    ['web_search_intercept', 'true'],
    ['web_search_intercept', 1],
    ['web_search_provider', 'google'],
    ['web_search_engines', ' '],
    ['web_search_max_results', 0],
    ['web_search_max_results', 1_001],
    ['web_search_max_results', '5'],
    ['web_search_max_calls', 0],
    ['web_search_max_calls', 1.5],
    ['web_search_purpose_hint', ' '],
    ['sandbox_purpose_hint', 'x'.repeat(2_049)],
    ['sandbox_purpose_hint', 'half \ud800'],
    ['web_search_extract', 'off'],
    ['web_search_allow_private_hosts', []],
    // S-32, F-19, S-71: what would count as unset
    ['web_search_default_tool', 'nobody'],
    ['web_search_default_tool', 'pages'],
    ['web_fetch_default_tool', 'engine'],
  ]
  test.each(bad)('to a bad value is a 422 that names it, and changes nothing beside it: %s %j', async (key, value) => {
    const answered = await change({ web_search_max_calls: 4, [key]: value })
    expect(answered.status).toBe(422)
    expect(answered.body.detail.map(({ loc }) => loc)).toEqual([['body', key]])
    expect(answered.text).not.toContain('secret')
    if (key !== 'web_search_max_calls')
      expect(await valuesAt(replicas.left)).toMatchObject({ web_search_max_calls: 10 })
  })

  test('X-02 takes an executor however it is written, and keeps it as it is compared', async () => {
    const { status, body } = await change({ code_execution_executor: ' Provider ' })
    expect([status, body]).toEqual([
      200,
      expect.arrayContaining([expect.objectContaining({ key: 'code_execution_executor', value: 'provider' })]),
    ])
    await expect.poll(() => valuesAt(replicas.right), WITHIN).toMatchObject({ code_execution_executor: 'provider' })
  })

  test.each(['guardrails_url', 'web_fetch_enabled', 'sandbox_provider', 'web_search_provider_api_key', 'nonsense'])(
    'refuses %s, which cannot be changed while the gateway runs, by name',
    async (key) => {
      const { status, body } = await change({ web_search_max_calls: 4, [key]: null })
      expect(status).toBe(422)
      expect(body.detail[0]?.msg).toContain(`${key}: cannot be changed while the gateway runs`)
      expect(await valuesAt(replicas.left)).toMatchObject({ web_search_max_calls: 10 })
    },
  )

  test('at once by many leaves one whole change of them', async () => {
    const wanted = Array.from({ length: 8 }, (_, n) => ({ web_search_max_calls: n + 1, web_search_max_results: n + 1 }))
    const answers = await Promise.all(wanted.map((body) => change(body)))
    expect(answers.map(({ status }) => status)).toEqual(wanted.map(() => 200))
    const { web_search_max_calls: calls, web_search_max_results: results } = await valuesAt(replicas.left)
    expect(results).toBe(calls)
    const last = { web_search_max_calls: calls, web_search_max_results: results }
    await expect.poll(() => valuesAt(replicas.right), WITHIN).toMatchObject(last)
  })
})

/** What a chat with one tool came to, over one gateway. */
async function chat(send: Send, type: string, said: string, headers: Record<string, string> = {}) {
  const { openai } = replicas.fakes
  openai.requests.length = 0
  const { status, body } = await send<{ otari_tool_calls?: { status: string; sources?: unknown[] }[] }>(
    'POST',
    '/api/v1/chat/completions',
    {
      key: replicas.key,
      headers,
      body: { model: 'fake:m', messages: [{ role: 'user', content: said }], tools: [{ type }] },
    },
  )
  return { status, calls: body.otari_tool_calls ?? [], asked: openai.requests.map(({ text }) => text) }
}
const search = (send: Send) => chat(send, 'otari_web_search', 'web_search')

/** Which of these was asked meanwhile. */
async function askedOf(names: (keyof typeof replicas.fakes)[], work: () => Promise<unknown>) {
  for (const name of names) replicas.fakes[name].requests.length = 0
  await work()
  return names.filter((name) => replicas.fakes[name].requests.length > 0)
}
const engineOf = (send: Send) => askedOf(['first', 'second', 'engine', 'tavily'], () => search(send))

interface Row {
  set: () => RuntimeSettings
  observed: (send: Send) => Promise<unknown>
  before: unknown
  after: unknown
}
const rows: Record<ToolSettingKey, Row> = {
  web_search_url: {
    set: () => ({ web_search_url: replicas.fakes.second.url }),
    observed: engineOf,
    before: ['first'],
    after: ['second'],
  },
  web_search_provider: {
    set: () => ({ web_search_provider: 'tavily' }),
    observed: engineOf,
    before: ['first'],
    after: ['tavily'],
  },
  web_search_default_tool: {
    set: () => ({ web_search_default_tool: 'engine' }),
    observed: engineOf,
    before: ['first'],
    after: ['engine'],
  },
  web_search_engines: {
    set: () => ({ web_search_engines: 'bing,qwant' }),
    observed: async (send) => {
      await search(send)
      return replicas.fakes.first.requests.at(-1)?.query.engines
    },
    before: 'duckduckgo,mojeek,qwant,wikipedia',
    after: 'bing,qwant',
  },
  web_search_max_results: {
    set: () => ({ web_search_max_results: 2 }),
    observed: async (send) => (await search(send)).calls[0]?.sources?.length,
    before: 5,
    after: 2,
  },
  web_search_extract: {
    set: () => ({ web_search_extract: true }),
    observed: async (send) => {
      replicas.read.length = 0
      await search(send)
      return replicas.read.length
    },
    before: 0,
    after: 5,
  },
  web_search_allow_private_hosts: {
    set: () => ({ web_search_allow_private_hosts: true, web_search_extract: true }),
    observed: async (send) => {
      replicas.read.length = 0
      await search(send)
      return replicas.read[0]?.allowPrivateHosts
    },
    before: undefined,
    after: true,
  },
  web_search_purpose_hint: {
    set: () => ({ web_search_purpose_hint: 'Only about otters.' }),
    observed: async (send) => (await search(send)).asked[0]?.includes('web_search: Only about otters.'),
    before: false,
    after: true,
  },
  web_search_max_calls: {
    // S-78: the limit of what is searched by URL is fixed
    set: () => ({ web_search_max_calls: 1, web_search_default_tool: 'engine' }),
    observed: async (send) =>
      (await chat(send, 'otari_web_search', 'web_search web_search')).calls.map(({ status }) => status),
    before: ['completed', 'completed'],
    after: ['completed', 'failed'],
  },
  web_search_intercept: {
    set: () => ({ web_search_intercept: true }),
    // S-10: what the header says is refused where all searches are taken
    observed: async (send) =>
      (await chat(send, 'web_search', 'hello', { 'otari-web-search': 'provider' })).status === 403,
    before: false,
    after: true,
  },
  web_fetch_default_tool: {
    set: () => ({ web_fetch_default_tool: 'pages' }),
    observed: (send) => askedOf(['pages'], () => chat(send, 'otari_web_fetch', 'web_fetch')),
    before: [],
    after: ['pages'],
  },
  sandbox_url: {
    set: () => ({ sandbox_url: replicas.fakes.otherSandbox.url }),
    observed: (send) =>
      askedOf(['sandbox', 'otherSandbox'], () => chat(send, 'otari_code_execution', 'code_execution')),
    before: ['sandbox'],
    after: ['otherSandbox'],
  },
  sandbox_purpose_hint: {
    set: () => ({ sandbox_purpose_hint: 'Only for sums.' }),
    observed: async (send) =>
      (await chat(send, 'otari_code_execution', 'hello')).asked[0]?.includes('code_execution: Only for sums.'),
    before: false,
    after: true,
  },
  code_execution_executor: {
    set: () => ({ code_execution_executor: 'provider' }),
    observed: (send) => askedOf(['sandbox'], () => chat(send, 'code_execution', 'code_execution')),
    before: ['sandbox'],
    after: [],
  },
}

describe('CFG-52 what was set at one gateway is in force', () => {
  test.each(keys)(
    'at both, and in every service, and goes with null: %s',
    async (key) => {
      const { left, right } = replicas
      const { set, observed, before, after } = rows[key]
      const both = async () => [
        await observed(left),
        await observed(right),
        await observed(left),
        await observed(right),
      ]
      expect(await both()).toEqual([before, before, before, before])
      const wanted = set()
      expect((await change(wanted)).status).toBe(200)
      // two search-brokers take turns as it happens
      await expect.poll(both, WITHIN).toEqual([after, after, after, after])
      expect(await valuesAt(left)).toMatchObject(wanted)
      expect(await valuesAt(right)).toMatchObject(wanted)
      expect((await change(Object.fromEntries(Object.keys(wanted).map((name) => [name, null])))).status).toBe(200)
      await expect.poll(both, WITHIN).toEqual([before, before, before, before])
    },
    60_000,
  )

  test('at a gateway that heard nothing of it, and at one that starts later', async () => {
    const { db, log } = replicas
    const settings = { ...defaultSettings }
    await change({ web_search_max_calls: 6 })
    const apart = await openRuntimeSettings({ db, log, settings, bus: memoryBus({ log }), everyMs: 20 })
    onTestFinished(() => apart.close())
    expect(settings.webSearchMaxCalls).toBe(6)
    await change({ web_search_max_calls: 7 })
    await expect.poll(() => settings.webSearchMaxCalls, WITHIN).toBe(7)
  })

  test('at a service that heard nothing of it, whose own news are then heard', async () => {
    const { log } = replicas
    const bus = memoryBus({ log })
    let stored: RuntimeSettings = {}
    const applied: RuntimeSettings[] = []
    const follow = await followSettings({ bus, log, everyMs: 20, apply: (set) => void applied.push(set) })
    onTestFinished(() => follow.close())
    await bus.serve(runtimeSettingsRead, async () => stored)
    stored = { web_search_max_results: 3 }
    await expect.poll(() => applied, WITHIN).toEqual([{ web_search_max_results: 3 }])
    let heard = 0
    bus.listen(changedSettings, () => {
      heard += 1
    })
    stored = {}
    await expect.poll(() => applied, WITHIN).toEqual([{ web_search_max_results: 3 }, {}])
    await expect.poll(() => heard, WITHIN).toBe(1)
  })

  test('at a service that started before its gateway', async () => {
    const { db, log } = replicas
    await change({ web_search_max_results: 4 })
    const bus = memoryBus({ log })
    const applied: RuntimeSettings[] = []
    const follow = await followSettings({ bus, log, everyMs: 60_000, apply: (set) => void applied.push(set) })
    expect(applied).toEqual([])
    const gateway = await openRuntimeSettings({ db, log, bus, settings: { ...defaultSettings }, everyMs: 60_000 })
    onTestFinished(async () => {
      await follow.close()
      await gateway.close()
    })
    await expect.poll(() => applied, WITHIN).toEqual([{ web_search_max_results: 4 }])
  })

  test('and what another release stored is passed over', async () => {
    const { db } = replicas
    const rows = [
      { key: 'from_tomorrow', value: '1' },
      { key: 'web_search_max_calls', value: '"many"' },
      { key: 'web_search_intercept', value: 'true' },
    ]
    await db.kysely.insertInto('gateway.tool_settings').values(rows).execute()
    onTestFinished(async () => {
      await db.kysely.deleteFrom('gateway.tool_settings').execute()
    })
    await change({})
    expect(await valuesAt(replicas.left)).toMatchObject({ web_search_max_calls: 10, web_search_intercept: true })
    await expect.poll(() => engineOf(replicas.left)).toEqual(['first'])
  })
})

describe('CFG-54 an address is tried', () => {
  const tryAt = (service: string, url: unknown, key = replicas.masterKey) =>
    replicas.left<{ ok: boolean; reason: string | null }>('POST', `${PATH}/${service}/test`, { key, body: { url } })

  test('and reached, whatever is in force', async () => {
    const { fakes } = replicas
    for (const service of ['web_search', 'sandbox']) {
      const url = service === 'sandbox' ? fakes.otherSandbox.url : fakes.second.url
      expect((await tryAt(service, url)).body).toEqual({ ok: true, reason: null })
    }
    expect([...fakes.otherSandbox.sessions]).toEqual([])
    expect(await valuesAt(replicas.left)).toMatchObject({ web_search_url: fakes.first.url })
  })

  test('and not reached, for a reason in our own words', async () => {
    const server = createServer((_request, response) => response.writeHead(500).end('upstream secret words'))
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
    const broken = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const full = await openFakeSandbox({ token: SANDBOX_TOKEN, capacity: 0 })
    const locked = await openFakeSandbox({ token: 'another' })
    const said = async (service: string, url: string) => (await tryAt(service, url)).body
    expect(await said('web_search', broken)).toEqual({ ok: false, reason: expect.stringContaining('HTTP 500') })
    expect(await said('sandbox', broken)).toEqual({ ok: false, reason: expect.stringContaining('no code-execution') })
    expect(await said('sandbox', full.url)).toEqual({ ok: false, reason: expect.stringContaining('no room') })
    expect(await said('sandbox', locked.url)).toEqual({ ok: false, reason: expect.stringContaining('sandbox_token') })
    await Promise.all([full.close(), locked.close(), new Promise((closed) => server.close(closed))])
    expect(await said('web_search', broken)).toEqual({ ok: false, reason: 'network' })
    expect(await said('sandbox', broken)).toEqual({ ok: false, reason: 'nothing answers there' })
  })

  test('by the operator alone, and only where an address can be', async () => {
    const { fakes, key } = replicas
    expect((await tryAt('sandbox', fakes.sandbox.url, key)).status).toBe(403)
    expect((await tryAt('guardrails', fakes.sandbox.url)).status).toBe(422)
    for (const url of ['ftp://x.test', 'http://me:secret@x.test', undefined])
      expect((await tryAt('web_search', url)).status).toBe(422)
  })
})

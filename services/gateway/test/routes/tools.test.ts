import { changedSettings } from '@tollgate/contracts'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest'
import { searchToolRoutes } from '../../src/routes/search-tools.ts'
import { type Brokers, exaInstance, hit, openBrokers } from '../brokers.ts'
import { type Rig, startRig } from '../rig.ts'

interface Tool {
  id: string
  object: string
  description: string
  available: boolean
  accepted_types: string[]
  input_schema: { properties: object; required: string[] }
  example: { type: string }
}
interface List {
  object: string
  data: Tool[]
}

let brokers: Brokers
let rig: Rig
beforeAll(async () => {
  brokers = await openBrokers()
  const { bus } = brokers
  rig = await startRig({
    postgresUrl: inject('postgresUrl'),
    bus,
    routes: ({ cut, settings }) => [async (app) => void app.register(searchToolRoutes({ bus, settings }, cut))],
  })
})
afterAll(() => rig.close())
beforeEach(() => deploy({}))

interface Deployment {
  search?: boolean
  fetch?: boolean
  sandbox?: boolean
  intercept?: boolean
  executor?: 'auto' | 'otari' | 'provider'
}

/** What the deployment has from now on; nothing but what is named. */
function deploy({
  search = false,
  fetch = false,
  sandbox = false,
  intercept = false,
  executor = 'auto',
}: Deployment): void {
  brokers.inLoop = search ? exaInstance : null
  brokers.sandbox = sandbox
  Object.assign(rig.settings, {
    webFetchEnabled: fetch,
    webSearchIntercept: intercept,
    codeExecutionExecutor: executor,
  })
  brokers.bus.announce(changedSettings, {})
}

async function list(): Promise<Record<string, Tool>> {
  const { body } = await rig.send<List>('GET', '/api/v1/tools', { key: rig.firstKey })
  return Object.fromEntries(body.data.map((tool) => [tool.id, tool]))
}
const available = async () => Object.fromEntries(Object.values(await list()).map((tool) => [tool.id, tool.available]))
const accepted = async (id: string) => (await list())[id]?.accepted_types.toSorted()

test('T-04 answers a key and the master key with a list, and nobody with 401', async () => {
  for (const key of [rig.firstKey, rig.masterKey]) {
    const { status, body } = await rig.send<List>('GET', '/api/v1/tools', { key })
    expect([status, body.object, body.data.length]).toEqual([200, 'list', 3])
  }
  expect((await rig.send('GET', '/api/v1/tools')).status).toBe(401)
})

test('T-05 a bare deployment lists exactly three tools, none of them available', async () => {
  expect(await available()).toEqual({ otari_web_search: false, otari_web_fetch: false, otari_code_execution: false })
})

test('T-05 lists all three when no broker answers at all', async () => {
  const alone = await startRig({ postgresUrl: inject('postgresUrl') })
  const { status, body } = await alone.send<List>('GET', '/api/v1/tools', { key: alone.firstKey })
  expect([status, body.data.map((tool) => tool.available)]).toEqual([200, [false, false, false]])
  await alone.close()
})

describe('T-02 one prerequisite makes one tool available', () => {
  test.each([
    ['search', 'otari_web_search'],
    ['fetch', 'otari_web_fetch'],
    ['sandbox', 'otari_code_execution'],
  ])('T-02 %s', async (part, id) => {
    deploy({ [part]: true })
    expect(Object.entries(await available()).filter(([, yes]) => yes)).toEqual([[id, true]])
  })
})

test('T-06 T-13 each entry tells what a model is told, how it is called and how it is declared', async () => {
  const tools = await list()
  for (const [id, tool] of Object.entries(tools)) {
    expect(Object.keys(tool).toSorted()).toEqual(
      ['accepted_types', 'available', 'description', 'example', 'id', 'input_schema', 'object'].toSorted(),
    )
    expect(tool).toMatchObject({ id, object: 'tool', description: expect.stringMatching(/\w/), example: { type: id } })
  }
  const argument = (name: string) => ({ type: 'object', properties: { [name]: { type: 'string' } }, required: [name] })
  expect(tools.otari_code_execution?.input_schema).toMatchObject(argument('code'))
  expect(tools.otari_web_search?.input_schema).toMatchObject(argument('query'))
  expect(tools.otari_web_fetch?.input_schema).toMatchObject(argument('url'))
  for (const tool of Object.values(tools)) expect(Object.keys(tool.input_schema.properties)).toHaveLength(1)
})

describe('T-12 the types a tool may be declared by', () => {
  test('T-12 search takes the providers’ keywords while it intercepts', async () => {
    deploy({ search: true })
    expect(await accepted('otari_web_search')).toEqual(['otari_web_search'])
    deploy({ search: true, intercept: true })
    expect(await accepted('otari_web_search')).toEqual(
      expect.arrayContaining(['otari_web_search', 'web_search', 'web_search_<date>']),
    )
  })

  test.each(['auto', 'otari', 'provider'] as const)(
    'T-12 code takes them with a sandbox and the executor %s',
    async (executor) => {
      const all = ['code_execution', 'code_execution_<date>', 'code_interpreter', 'otari_code_execution']
      deploy({ sandbox: true, executor })
      expect(await accepted('otari_code_execution')).toEqual(executor === 'provider' ? ['otari_code_execution'] : all)
      deploy({ sandbox: false, executor })
      expect(await accepted('otari_code_execution')).toEqual(['otari_code_execution'])
    },
  )

  test('T-12 fetch takes its own type only, whatever is on', async () => {
    deploy({ search: true, fetch: true, sandbox: true, intercept: true, executor: 'otari' })
    expect(await accepted('otari_web_fetch')).toEqual(['otari_web_fetch'])
  })
})

describe('SP-07 FP-10 a tool is tried', () => {
  const page = { url: 'https://a.test/x' }
  const search = { query: 'ping' }
  const attempt = (name: string, body: unknown, key = rig.masterKey) =>
    rig.send<object>('POST', `/api/v1/search-tools/${name}/test`, { key, body })
  const nothing = { hits: null, characters: null }
  beforeEach(() => {
    brokers.instances = [
      { name: 'main', kind: 'search', provider: 'exa' },
      { name: 'pages', kind: 'fetch', provider: 'tabstack' },
    ]
  })

  test('FP-10 with a url: how much text there was, and not a word of it', async () => {
    brokers.fetchBy = async () => ({ status: 'ok', label: 'tabstack:pages', text: 'secret 😀', reportedCost: '0.001' })
    const { status, body } = await attempt('pages', page)
    expect([status, body]).toEqual([200, { ok: true, error: null, hits: null, characters: 8 }])
    expect(brokers.asked.fetchBy.at(-1)).toMatchObject({ instance: 'pages', url: page.url })
  })

  test('SP-07 with a query: how many hits there were, whose pages are not read', async () => {
    brokers.search = async () => ({ status: 'ok', label: 'exa:main', hits: [hit(1), hit(2)] })
    const { status, body } = await attempt('main', search)
    expect([status, body]).toEqual([200, { ok: true, error: null, hits: 2, characters: null }])
    expect(brokers.asked.search.at(-1)).toMatchObject({ instance: 'main', query: 'ping', enrich: false })
  })

  test('what goes wrong is a tag', async () => {
    brokers.fetchBy = async () => ({
      status: 'failed',
      label: 'tabstack:pages',
      tag: 'authentication',
      httpStatus: 401,
    })
    expect((await attempt('pages', page)).body).toEqual({ ok: false, error: 'authentication', ...nothing })
    brokers.fetchBy = async () => ({ status: 'refused', label: 'tabstack:pages', why: 'url_disallowed' })
    expect((await attempt('pages', page)).body).toEqual({ ok: false, error: 'url_disallowed', ...nothing })
    brokers.search = async () => ({ status: 'failed', label: 'exa:main', tag: 'quota' })
    expect((await attempt('main', search)).body).toEqual({ ok: false, error: 'quota', ...nothing })
  })

  test.each([
    ['ghost', page, 404, "There is no search or fetch tool 'ghost'."],
    ['builtin_fetch', page, 404, "There is no search or fetch tool 'builtin_fetch'."],
    ['main', page, 422, "'main' is a search tool: it is tried with a query"],
    ['pages', search, 422, "'pages' is a fetch tool: it is tried with a url"],
  ])('%s with %j is refused', async (name, body, status, detail) => {
    const asked = [brokers.asked.fetchBy.length, brokers.asked.search.length]
    expect(await attempt(name, body)).toMatchObject({ status, body: { detail } })
    expect([brokers.asked.fetchBy.length, brokers.asked.search.length]).toEqual(asked)
  })

  test.each([{}, { ...page, ...search }, { url: '' }, { query: '  ' }, { url: 7 }, { ...page, x: 1 }])(
    'a body of %j is refused',
    async (body) => expect((await attempt('pages', body)).status).toBe(422),
  )

  test('SP-05 it is the operator’s to do', async () =>
    expect((await attempt('pages', page, rig.firstKey)).status).toBe(403))
})

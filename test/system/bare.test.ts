import { fakeSearxng, openFakeSandbox, type SearchFake } from '@tollgate/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answered, ask, makeKey, usageOf } from './client.ts'
import { type Deployment, kinds, startDeployment } from './deployment.ts'
import { canaries, type Outside, openOutside } from './outside.ts'

const types = ['otari_code_execution', 'otari_web_search', 'otari_web_fetch']
const refusals = [
  [
    'T-09',
    'otari_web_fetch',
    'otari_web_fetch tool requested but web fetch is disabled on this gateway. Set OTARI_WEB_FETCH_ENABLED=true on the gateway, or remove otari_web_fetch from `tools`.',
  ],
  [
    'T-10',
    'otari_web_search',
    'otari_web_search tool requested but no search backend is configured on this gateway. Set OTARI_WEB_SEARCH_URL on the gateway, or remove otari_web_search from `tools`.',
  ],
  [
    'T-11',
    'otari_code_execution',
    'otari_code_execution tool requested but no sandbox is configured on this gateway. Set OTARI_SANDBOX_URL on the gateway, or remove otari_code_execution from `tools`.',
  ],
] as const

/** A deployment with a model provider and nothing else: no tool can run, and nobody has made a key. */
describe.each(kinds)('a bare deployment, %s', (kind) => {
  let outside: Outside
  let engine: SearchFake<unknown>
  let deployment: Deployment
  let masterKey = ''
  let key = ''

  beforeAll(async () => {
    outside = await openOutside()
    engine = await fakeSearxng()
    deployment = await startDeployment(kind, {
      config: { providers: outside.config.providers },
      env: { OTARI_SANDBOX_BUNDLED: 'false', OTARI_REQUIRE_PRICING: 'false' },
      only: ['gateway', 'billing'],
      masterKey: null,
    })
    masterKey = masterKeys()[0] ?? ''
    deployment.masterKey = masterKey
    key = await makeKey(deployment)
  }, 240_000)
  afterAll(async () => {
    await deployment?.stop()
    await Promise.all([outside?.close(), engine?.close()])
  }, 60_000)

  const masterKeys = () => deployment.logs('gateway').match(/gw-master-[\w-]+/g) ?? []
  const chat = (more: object = {}, given: string | null = key, headers: Record<string, string> = {}) =>
    ask(deployment, 'POST', '/v1/chat/completions', {
      body: { model: 'openai:gpt-5', messages: [{ role: 'user', content: 'hello' }], ...more },
      headers,
      ...(given === null ? {} : { key: given }),
    })
  const tools = async () => {
    const { json } = await ask(deployment, 'GET', '/api/v1/tools', { key })
    return Object.fromEntries(json.data.map(({ id, available }: { id: string; available: boolean }) => [id, available]))
  }

  test('A-04 shows a master key once at its first start, and keeps no more than its hash', () => {
    expect(masterKeys()).toHaveLength(1)
    expect(masterKey.length).toBeGreaterThan(40)
  })

  test('T-04 T-05 T-06 lists exactly three tools, none available, to a key and to the master key', async () => {
    for (const given of [key, masterKey]) {
      const { status, json } = await ask(deployment, 'GET', '/api/v1/tools', { key: given })
      expect([status, json.object]).toEqual([200, 'list'])
      expect(json.data.map(({ id }: { id: string }) => id).toSorted()).toEqual(types.toSorted())
      for (const tool of json.data) {
        expect(tool).toMatchObject({ object: 'tool', available: false, example: { type: tool.id } })
        expect(tool.input_schema).toMatchObject({ type: 'object' })
      }
    }
    expect((await ask(deployment, 'GET', '/api/v1/tools', {})).status).toBe(401)
  })

  test.each(refusals)('%s T-32 refuses %s in these words, and no model is asked', async (_id, type, detail) => {
    for (const stream of [false, true]) {
      const { status, json } = await chat({ tools: [{ type }], stream })
      expect([status, json]).toEqual([400, { detail }])
    }
    expect(outside.openai.requests).toHaveLength(0)
  })

  test('T-33 answers a chat without tools, whose body reaches the model as it came', async () => {
    const body = { temperature: 0.25, metadata: { a: 'b' }, seed: 7 }
    expect((await chat(body)).status).toBe(200)
    const [sent] = outside.openai.requests
    expect(sent?.body).toEqual({ model: 'gpt-5', messages: [{ role: 'user', content: 'hello' }], ...body })
    expect(sent?.headers.authorization).toBe(`Bearer ${canaries.openai}`)
  })

  describe('A-01 a credential', () => {
    const good = () => key
    test.each<[string, () => Record<string, string>, number]>([
      ['Otari-Key', () => ({ 'otari-key': good() }), 200],
      ['Otari-Key with the word Bearer', () => ({ 'otari-key': `Bearer ${good()}` }), 200],
      ['Authorization', () => ({ authorization: `Bearer ${good()}` }), 200],
      ['Authorization in small letters', () => ({ authorization: `bearer ${good()}` }), 200],
      ['x-api-key', () => ({ 'x-api-key': good() }), 200],
      ['Otari-Key before a wrong Authorization', () => ({ 'otari-key': good(), authorization: 'Bearer gw-x' }), 200],
      ['a wrong Otari-Key before a good Authorization', () => ({ 'otari-key': 'gw-x', authorization: good() }), 401],
      [
        'a wrong Authorization before a good x-api-key',
        () => ({ authorization: 'Bearer x', 'x-api-key': good() }),
        401,
      ],
      ['of another scheme', () => ({ authorization: `Basic ${good()}` }), 401],
      ['nowhere', () => ({}), 401],
    ])('%s', async (_where, headers, status) => {
      expect((await chat({}, null, headers())).status).toBe(status)
    })
  })

  test('A-05 the master key is asked whom it acts for', async () => {
    const { status, json } = await chat({}, masterKey)
    expect([status, json.detail]).toEqual([400, "When using master key, 'user' field is required in request body"])
    expect((await chat({ user: 'default' }, masterKey)).status).toBe(200)
  })

  test('W-06 the workspace is that of the key, whatever a header says', async () => {
    const rowOf = async (answer: Answered) => {
      const request = answer.headers.get('x-request-id') ?? ''
      await expect.poll(async () => (await usageOf(deployment, request)).rows.length, { timeout: 10_000 }).toBe(1)
      return (await usageOf(deployment, request)).rows[0] as { workspace_id?: string } | undefined
    }
    const spoofed = { 'otari-workspace': 'ws-other', 'x-workspace-id': 'ws-other', 'openai-organization': 'org-other' }
    const [plain, other] = [await rowOf(await chat()), await rowOf(await chat({}, key, spoofed))]
    expect(plain?.workspace_id).toBeTruthy()
    expect(other?.workspace_id).toBe(plain?.workspace_id)
  })

  test('A-04 shows no key at its second start, and takes those of the first', async () => {
    expect((await deployment.kill('gateway', 'SIGTERM')).code).toBe(0)
    const env: Record<string, string> = kind === 'standalone' ? { OTARI_WEB_SEARCH_URL: engine.url } : {}
    deployment.start('gateway', env)
    await deployment.ready('gateway')
    expect(masterKeys()).toHaveLength(1)
    for (const given of [key, masterKey])
      expect((await ask(deployment, 'GET', '/api/v1/tools', { key: given })).status).toBe(200)
  }, 240_000)

  test('T-08 without fetch, a search runs, a fetch is refused and a chat is answered', async () => {
    if (kind === 'services') deployment.start('search-broker', { OTARI_WEB_SEARCH_URL: engine.url })
    await deployment.ready()
    // a broker that comes is noticed within seconds
    await expect.poll(tools, { timeout: 20_000 }).toMatchObject({ otari_web_search: true, otari_web_fetch: false })
    const answers = await Promise.all(
      [[{ type: 'otari_web_search' }], [{ type: 'otari_web_fetch' }], []].map((tools) =>
        chat(tools.length > 0 ? { tools } : {}),
      ),
    )
    expect(answers.map(({ status }) => status)).toEqual([200, 400, 200])
  }, 240_000)

  test.runIf(kind === 'services')(
    'T-02 each tool becomes available with what it needs, and with nothing else',
    async () => {
      expect(await tools()).toEqual({ otari_web_search: true, otari_web_fetch: false, otari_code_execution: false })
      const sandbox = await openFakeSandbox()
      try {
        deployment.start('sandbox-broker', { OTARI_SANDBOX_URL: sandbox.url })
        await deployment.ready('sandbox-broker')
        await expect
          .poll(tools, { timeout: 20_000 })
          .toEqual({ otari_web_search: true, otari_web_fetch: false, otari_code_execution: true })
        await deployment.kill('sandbox-broker', 'SIGTERM')
        await deployment.kill('gateway', 'SIGTERM')
        deployment.start('gateway', { OTARI_WEB_FETCH_ENABLED: 'true' })
        await deployment.ready('gateway')
        expect(await tools()).toEqual({ otari_web_search: true, otari_web_fetch: true, otari_code_execution: false })
      } finally {
        await sandbox.close()
      }
    },
    240_000,
  )
})

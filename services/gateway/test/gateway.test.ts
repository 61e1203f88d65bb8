import { createServer } from 'node:net'
import { startBilling } from '@tollgate/billing'
import { type Bus, memoryBus, natsBus } from '@tollgate/bus'
import { type Database, openDb } from '@tollgate/db'
import { defaultSettings, ensureFirstKey, ensureMasterKey, migrateGateway, startGateway } from '@tollgate/gateway'
import type { Running } from '@tollgate/service'
import { openLog } from '@tollgate/telemetry'
import { fakeOpenAi, fakeOpenAiDoors, freePort, freshDatabase, freshPrefix, restartableNats } from '@tollgate/testing'
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { type Send, sender } from './sender.ts'

const log = openLog({ service: 'gateway', level: 'silent' })
const bus = memoryBus({ log })
/** The same as another process has it: what a first gateway serves there, a second one does not. */
const elsewhere: Bus = { ...bus, serve: async () => {} }
let dropDatabase: () => Promise<void>
let db: Database
let billing: Running
let gateway: Awaited<ReturnType<typeof startGateway>>
let send: Send
let key: string
let master: string
const given = () => ({
  bus: elsewhere,
  log,
  db,
  settings: defaultSettings,
  version: '1',
  host: '127.0.0.1',
  port: 0,
  providers: {},
  demoProvider: true,
})

beforeAll(async () => {
  const database = await freshDatabase(inject('postgresUrl'))
  dropDatabase = database.drop
  db = await openDb({ url: database.url, log, poolSize: 4 })
  const own = await migrateGateway(db)
  key = (await ensureFirstKey(own)) ?? ''
  master = (await ensureMasterKey(own)) ?? ''
  billing = await startBilling({ bus, log, db, requirePricing: true, sweepEveryMs: 60_000 })
  gateway = await startGateway({ ...given(), bus })
  send = sender(gateway.url)
})
afterAll(async () => {
  await gateway.close(Date.now() + 2_000)
  await billing.close(Date.now() + 2_000)
  await db.close()
  await dropDatabase()
})

describe('a gateway that was started', () => {
  test('lists its models and shows that its demo answers', async () => {
    const models = await send<{ data: { id: string; owned_by: string }[] }>('GET', '/v1/models', { key })
    expect(models.body.data.length).toBeGreaterThan(0)
    const [first] = models.body.data
    expect(first).toMatchObject({ owned_by: 'demo' })
    for (const model_key of [first!.id, 'demo:*']) {
      await send('POST', '/api/v1/pricing', {
        key: master,
        body: { model_key, input_price_per_million: 0, output_price_per_million: 0 },
      })
    }
    const body = { model: first!.id, messages: [{ role: 'user', content: 'hello' }] }
    const answered = await send<{ choices: { message: { content: string } }[] }>('POST', '/v1/chat/completions', {
      key,
      body,
    })
    expect(answered.status).toBe(200)
    expect(answered.body.choices[0]?.message.content).toMatch(/\w/)
    const id = answered.headers.get('x-request-id')
    await expect
      .poll(async () => (await send<{ data: unknown[] }>('GET', `/v1/usage?request_id=${id}`, { key })).body.data)
      .toMatchObject([{ status: 'success', provider: 'demo', user_id: 'default', workspace_id: 'default' }])
  })

  test('A-05 R-65 asks the master key for a user before anything is called', async () => {
    const body = { model: 'demo:x', messages: [{ role: 'user', content: 'hello' }] }
    expect(await send('POST', '/v1/chat/completions', { key: master, body })).toMatchObject({
      status: 400,
      body: { detail: "When using master key, 'user' field is required in request body" },
    })
    expect(
      (await send('POST', '/v1/chat/completions', { key: master, body: { ...body, user: 'nobody' } })).status,
    ).toBe(404)
  })

  test('P-45 P-49 A-07 asks the candidates of a policy, leaves a row for each it had to, and lists what may be asked for', async () => {
    const failing = await fakeOpenAi(() => ({ status: 503, body: '{}' }))
    const doors = await fakeOpenAiDoors()
    doors.models = { object: 'list', data: [{ id: 'small', created: 5, context_window: 100 }] }
    const retryOn = ['server_error'] as const
    const candidates = [{ model: 'down:x' }, { model: 'down:y' }, { model: 'demo:echo' }]
    const another = await startGateway({
      ...given(),
      providers: {
        down: { type: 'openai-compatible', apiBase: `${failing.url}/v1`, models: ['x'] },
        doors: { type: 'openai-compatible', apiBase: `${doors.url}/v1`, models: [] },
      },
      routing: { policies: { best: { candidates, retryOn } }, aliases: { good: 'best' } },
    })
    const ask = sender(another.url)
    const price = (model_key: string) =>
      ask('POST', '/v1/pricing', {
        key: master,
        body: { model_key, input_price_per_million: 1, output_price_per_million: 1 },
      })
    for (const model of ['down:x', 'demo:*', 'doors:*']) await price(model)

    const body = { model: 'good', messages: [{ role: 'user', content: 'hello' }] }
    const answered = await ask('POST', '/v1/chat/completions', { key, body })
    expect([answered.status, failing.requests.length]).toEqual([200, 1])
    const rows = async (id: string | null) =>
      (await ask<{ data: object[] }>('GET', `/v1/usage?request_id=${id}`, { key })).body.data
    await expect.poll(async () => (await rows(answered.headers.get('x-request-id'))).length).toBe(3)
    const all = await rows(answered.headers.get('x-request-id'))
    expect(all).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ status: 'success', provider: 'demo', model: 'echo', counts_toward_budget: true }),
        expect.objectContaining({ status: 'absorbed', model: 'x', error: 'unavailable', counts_toward_budget: false }),
        expect.objectContaining({
          status: 'absorbed',
          model: 'y',
          error: expect.stringMatching(/^Skipped: The model/),
        }),
      ]),
    )

    const embedded = await ask('POST', '/v1/embeddings', { key, body: { model: 'doors:small', input: 'a' } })
    await expect
      .poll(() => rows(embedded.headers.get('x-request-id')))
      .toMatchObject([{ status: 'success', endpoint: '/api/v1/embeddings', prompt_tokens: 5, cost: 0.000005 }])

    const made = await ask<{ key: string }>('POST', '/v1/keys', {
      key: master,
      body: { allowed_models: ['doors:*', 'down:y'] },
    })
    const listed = (whose: string) => ask<{ data: { id: string }[] }>('GET', '/v1/models', { key: whose })
    await expect.poll(async () => (await listed(key)).body.data.map(({ id }) => id)).toContain('doors:small')
    expect((await listed(made.body.key)).body.data).toEqual([
      { id: 'best', object: 'model', created: 0, owned_by: 'tollgate', candidates: ['down:y'] },
      { id: 'good', object: 'model', created: 0, owned_by: 'tollgate', candidates: ['down:y'] },
      { id: 'doors:small', object: 'model', created: 5, owned_by: 'doors', context_window: 100 },
    ])
    expect(await ask('GET', '/v1/models/doors:small', { key })).toMatchObject({
      status: 200,
      body: { context_window: 100 },
    })
    expect((await ask('GET', '/v1/models/doors:large', { key })).status).toBe(404)
    await another.close(Date.now() + 2_000)
    await Promise.all([failing.close(), doors.close()])
  })

  test('documents the completions beside everything else', async () => {
    const { body } = await send<{ paths: object }>('GET', '/openapi.json')
    expect(Object.keys(body.paths)).toEqual(
      expect.arrayContaining(['/api/v1/chat/completions', '/api/v1/keys', '/health']),
    )
    expect(Object.keys(body.paths).filter((path) => path.startsWith('/v1'))).toEqual([])
  })

  test('is ready', async () => {
    expect(await gateway.notReady?.()).toBeUndefined()
    expect(await send('GET', '/health')).toMatchObject({ status: 200 })
  })

  test('A-02 remembers when a key was used, at the latest when it closes', async () => {
    const another = await startGateway(given())
    const made = await sender(another.url)<{ id: string; key: string }>('POST', '/v1/keys', { key: master, body: {} })
    await sender(another.url)('GET', '/v1/tools', { key: made.body.key })
    await another.close(Date.now() + 1_000)
    const shown = await send<{ last_used_at: string }>('GET', `/v1/keys/${made.body.id}`, { key: master })
    expect(Date.now() - Date.parse(shown.body.last_used_at)).toBeLessThan(60_000)
  })

  test('CFG-37 takes the master key that is set in place of the one that was made', async () => {
    const another = await startGateway({ ...given(), masterKey: 'chosen by the operator' })
    const asked = sender(another.url)
    expect((await asked('GET', '/v1/keys', { key: 'chosen by the operator' })).status).toBe(200)
    expect((await asked('GET', '/v1/keys', { key: master })).status).toBe(401)
    await another.close(Date.now() + 1_000)
  })
})

test('a port that is taken is named with what to do about it', async () => {
  const taken = createServer().listen(await freePort(), '127.0.0.1')
  await vi.waitFor(() => expect(taken.listening).toBe(true))
  const { port } = taken.address() as { port: number }
  await expect(startGateway({ ...given(), port })).rejects.toThrow(
    `cannot listen on 127.0.0.1, port ${port} (EADDRINUSE): set another host or port`,
  )
  taken.close()
})

test('a gateway whose database is gone is not ready, and says why', async () => {
  const database = await freshDatabase(inject('postgresUrl'))
  const own = await openDb({ url: database.url, log, poolSize: 2 })
  await ensureMasterKey(await migrateGateway(own))
  const another = await startGateway({ ...given(), db: own })
  await own.close()
  expect(await another.notReady?.()).toMatch(/^the database did not answer/)
  expect((await sender(another.url)('GET', '/health')).status).toBe(503)
  await another.close(Date.now() + 1_000)
  await database.drop()
})

test('a gateway that lost its bus is not ready until it is back, since what it did could not be charged', async () => {
  const nats = await restartableNats()
  const own = await natsBus({ servers: nats.url, name: 'gateway', log, prefix: freshPrefix() })
  const another = await startGateway({ ...given(), bus: own })
  await expect.poll(() => another.notReady?.(), { timeout: 10_000 }).toBeUndefined()
  await nats.stop()
  await expect
    .poll(() => another.notReady?.(), { timeout: 10_000 })
    .toMatch(/^the bus (is not connected|cannot record usage)$/)
  expect((await sender(another.url)('GET', '/health')).status).toBe(503)
  await nats.start()
  await expect.poll(() => another.notReady?.(), { timeout: 15_000 }).toBeUndefined()
  await another.close(Date.now() + 1_000)
  await own.drain(Date.now() + 1_000)
  await nats.close()
}, 60_000)

import { randomBytes } from 'node:crypto'
import { type Bus, memoryBus } from '@tollgate/bus'
import { sandboxDescribe, sandboxOpen } from '@tollgate/contracts'
import { type Database, openDb } from '@tollgate/db'
import { startSandboxBroker } from '@tollgate/sandbox-broker'
import { openSecrets } from '@tollgate/secrets'
import { openLog } from '@tollgate/telemetry'
import { type FakeE2b, openFakeE2b } from '@tollgate/testing'
import { sql } from 'kysely'
import { afterAll, beforeAll, beforeEach, expect, inject, onTestFinished, test } from 'vitest'
import { sandboxCredentialRoutes } from '../../src/routes/sandbox-credential.ts'
import { type Rig, startRig } from '../rig.ts'

const PATH = '/api/v1/tool-settings/sandbox/credential'
const FIRST = 'e2b_first_canary_0001'
const SECOND = 'e2b_second_canary_0002'
const FROM_ENVIRONMENT = 'e2b_environment_canary_0003'
const secretKey = () => randomBytes(32).toString('base64url')
const SECRET = secretKey()

let vendor: FakeE2b
let rig: Rig
let bus: Bus
let db: Database
const logged: string[] = []
const log = openLog({ service: 'sandbox-broker', level: 'debug', write: (line) => void logged.push(line) })

/** The bus of the gateway's process, to which a test starts the broker it needs. */
const front: { bus: Bus | undefined } = { bus: undefined }

beforeAll(async () => {
  vendor = await openFakeE2b({ apiKeys: [FIRST, SECOND, FROM_ENVIRONMENT] })
  const gateway = new Proxy({} as Bus, { get: (_none, name) => Reflect.get(front.bus as Bus, name) })
  rig = await startRig({
    postgresUrl: inject('postgresUrl'),
    routes: () => [sandboxCredentialRoutes({ bus: gateway })],
  })
  db = await openDb({ url: rig.databaseUrl, log, poolSize: 4 })
})
afterAll(async () => {
  await db.close()
  await rig.close()
  await vendor.close()
})
beforeEach(async () => {
  await sql`drop table if exists sandbox.credentials, sandbox.containers, sandbox.migrations`.execute(db.kysely)
  await sql`drop schema if exists sandbox cascade`.execute(db.kysely)
})

interface BrokerOptions {
  secret?: string
  environmentKey?: string
  everyMs?: number
}

/** A replica of the broker on a bus of its own: no announcement of another reaches it. */
async function startBroker({ secret, environmentKey, everyMs = 60_000 }: BrokerOptions = {}): Promise<Bus> {
  const bus = memoryBus({ log })
  const broker = await startSandboxBroker({
    bus,
    log,
    db,
    secrets: openSecrets(secret),
    credentialEveryMs: everyMs,
    settings: {
      provider: 'e2b',
      execTimeoutSeconds: 60,
      e2b: {
        domain: 'e2b.app',
        template: 'code-interpreter-v1',
        internet: false,
        apiUrl: vendor.url,
        sandboxUrl: vendor.url,
      },
    },
    ...(environmentKey === undefined ? {} : { environmentKey }),
  })
  onTestFinished(async () => {
    await bus.drain(Date.now() + 1_000)
    await broker.close(Date.now())
  })
  return bus
}
async function start(options?: BrokerOptions): Promise<void> {
  bus = await startBroker(options)
  front.bus = bus
}

const ask = (method: string, body?: unknown, key = rig.masterKey) =>
  rig.send(method, PATH, { key, ...(body === undefined ? {} : { body }) })
const put = async (api_key: string | null) => (await ask('PUT', { api_key })).body
const tenancy = { organization: 'o', workspace: 'w', user: 'u', key: 'k', request: 'r', attempt: 0 }
const soon = () => ({ deadline: Date.now() + 20_000 })
/** The key that a new sandbox is made with. */
async function keyInUse(on = bus): Promise<unknown> {
  vendor.requests.length = 0
  await on.call(sandboxOpen, { tenancy }, soon())
  return vendor.requests.find(({ operation }) => operation === 'POST /v2/sandboxes')?.headers['x-api-key']
}

test('CFG-53 is the operator’s alone, to read as to write', async () => {
  await start({ secret: SECRET })
  for (const [method, body] of [['GET'], ['PUT', { api_key: FIRST }], ['DELETE']] as const)
    expect((await ask(method, body, rig.firstKey)).status, method).toBe(403)
  expect((await rig.send('GET', PATH)).status).toBe(401)
  expect((await rig.send('POST', `${PATH}/reencrypt`, { key: rig.firstKey })).status).toBe(403)
  expect((await ask('GET')).body).toMatchObject({ last4: null, source: null })
})

test('CFG-53 without any key the start succeeds, says so in the log, and every call is refused', async () => {
  logged.length = 0
  await start({ secret: SECRET })
  const error = logged.map((line) => JSON.parse(line)).find(({ level }) => level === 'error' || level === 50)
  expect(error?.msg).toContain('E2B_API_KEY')
  expect(await bus.call(sandboxDescribe, {}, soon())).toMatchObject({
    available: false,
    provider: 'e2b',
    reason: expect.stringContaining('E2B_API_KEY'),
  })
  await expect(bus.call(sandboxOpen, { tenancy }, soon())).rejects.toMatchObject({ failure: 'unavailable' })
})

test('CFG-53 CFG-40 a stored key comes before the environment’s; it is rotated and cleared while the broker runs', async () => {
  await start({ secret: SECRET, environmentKey: FROM_ENVIRONMENT })
  expect((await ask('GET')).body).toEqual({ last4: '0003', source: 'environment', decryptable: true })
  expect(await keyInUse()).toBe(FROM_ENVIRONMENT)
  expect(await put(FIRST)).toEqual({ last4: '0001', source: 'stored', decryptable: true })
  expect(await keyInUse()).toBe(FIRST)
  expect(await put(SECOND)).toMatchObject({ last4: '0002', source: 'stored' })
  expect((await ask('GET')).body).toMatchObject({ last4: '0002', source: 'stored' })
  expect(await keyInUse()).toBe(SECOND)
  expect((await ask('DELETE')).body).toMatchObject({ last4: '0003', source: 'environment' })
  expect(await keyInUse()).toBe(FROM_ENVIRONMENT)
  await put(FIRST)
  expect(await put(null)).toMatchObject({ source: 'environment' })
})

test('CFG-53 a replica that heard no announcement comes to it by itself', async () => {
  await start({ secret: SECRET })
  const replica = await startBroker({ secret: SECRET, everyMs: 50 })
  const available = async () => (await replica.call(sandboxDescribe, {}, soon())).available
  expect(await available()).toBe(false)
  await put(FIRST)
  await expect.poll(available).toBe(true)
  expect(await keyInUse(replica)).toBe(FIRST)
  await put(null)
  await expect.poll(available).toBe(false)
})

test('A-30 A-34 neither the database nor a log has the key in it', async () => {
  logged.length = 0
  await start({ secret: SECRET })
  await put(FIRST)
  await keyInUse()
  const { rows } = await sql<{ row: string }>`select credentials::text as row from sandbox.credentials`.execute(
    db.kysely,
  )
  expect(rows).toHaveLength(1)
  expect(rows[0]?.row).toMatch(/gAAAA/)
  for (const text of [JSON.stringify(rows), logged.join(''), rig.logged()]) {
    expect(text).not.toContain(FIRST)
    expect(text).not.toContain('canary_0001')
  }
})

test('A-31 without OTARI_SECRET_KEY storing is refused, reading works and the environment’s key is in force', async () => {
  await start({ environmentKey: FROM_ENVIRONMENT })
  const refused = await ask('PUT', { api_key: FIRST })
  expect(refused.status).toBe(400)
  expect(refused.text).toContain('OTARI_SECRET_KEY')
  expect(refused.text).not.toContain(FIRST)
  expect((await ask('GET')).body).toMatchObject({ last4: '0003', source: 'environment' })
  expect(await keyInUse()).toBe(FROM_ENVIRONMENT)
})

test('A-30 A-32 A-33 secret keys are rotated: the first encrypts, all decrypt, and what none opens is passed over', async () => {
  const next = secretKey()
  await start({ secret: SECRET })
  await put(FIRST)
  await start({ secret: `${next}, ${SECRET}` })
  expect(await keyInUse()).toBe(FIRST)
  const reencrypt = async () => (await rig.send('POST', `${PATH}/reencrypt`, { key: rig.masterKey })).body
  expect(await reencrypt()).toEqual({ reencrypted: 1, unreadable: 0, skipped: 0 })
  expect(await reencrypt()).toEqual({ reencrypted: 0, unreadable: 0, skipped: 1 })
  await start({ secret: next })
  expect(await keyInUse()).toBe(FIRST)
  logged.length = 0
  await start({ secret: SECRET, environmentKey: FROM_ENVIRONMENT })
  expect((await ask('GET')).body).toEqual({ last4: '0003', source: 'environment', decryptable: false })
  expect(await keyInUse()).toBe(FROM_ENVIRONMENT)
  expect(await reencrypt()).toEqual({ reencrypted: 0, unreadable: 1, skipped: 0 })
  expect(logged.join('')).toContain('cannot be read with OTARI_SECRET_KEY')
})

test.each([
  ['too short', { api_key: 'e2b_abc' }],
  ['a blank in it', { api_key: 'e2b_0123 canary' }],
  ['a line end in it', { api_key: 'e2b_0123\r\ncanary' }],
  ['letters no header carries', { api_key: 'e2b_0123_cänary' }],
  ['no text', { api_key: 12_345_678 }],
  ['none', {}],
  ['another member', { api_key: FIRST, canary: 1 }],
])('CFG-53 a key that is %s is refused, and not repeated', async (_what, body) => {
  await start({ secret: SECRET })
  const refused = await ask('PUT', body)
  expect(refused.status).toBe(422)
  if ('api_key' in body) expect(refused.text).not.toContain(String(body.api_key))
  expect((await ask('GET')).body).toMatchObject({ source: null })
})

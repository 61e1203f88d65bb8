import { sql } from 'kysely'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { type Rig, startRig } from '../rig.ts'

interface Key {
  id: string
  key?: string
  key_prefix: string
  [member: string]: unknown
}
interface List {
  data: Key[]
  count: number
}

let rig: Rig
beforeAll(async () => {
  rig = await startRig({ postgresUrl: inject('postgresUrl') })
})
afterAll(() => rig.close())

const asMaster = <B = Key>(method: string, path: string, body?: unknown) =>
  rig.send<B>(method, path, { key: rig.masterKey, ...(body === undefined ? {} : { body }) })
const works = async (key: string, on: Rig = rig) => (await on.send('GET', '/api/v1/tools', { key })).status

describe('A-02 the life of a key', () => {
  test('A-02 is made, shown once, listed, changed, rotated and removed', async () => {
    const made = await asMaster('POST', '/api/v1/keys', { key_name: 'ci', metadata: { team: 'infra' } })
    expect(made.status).toBe(200)
    const { key, id } = made.body
    expect(key).toMatch(/^gw-[\w-]{43}$/)
    expect(made.body).toMatchObject({
      key_name: 'ci',
      key_prefix: key?.slice(0, 11),
      user_id: 'default',
      workspace_id: 'default',
      is_active: true,
      expires_at: null,
      allowed_models: null,
      allowed_tools: null,
      budget_exempt: false,
      reject_user_mismatch: null,
      metadata: { team: 'infra' },
      last_used_at: null,
    })
    expect(await works(key!)).toBe(200)

    const got = await asMaster('GET', `/api/v1/keys/${id}`)
    const { key: _, ...withoutKey } = made.body
    expect(got.body).toEqual(withoutKey)
    const listed = await asMaster<List>('GET', '/api/v1/keys')
    expect(listed.body.data.find((each) => each.id === id)).toEqual(withoutKey)
    expect(got.text + listed.text).not.toContain(key)

    const changed = await asMaster('PATCH', `/api/v1/keys/${id}`, { key_name: null, budget_exempt: true })
    expect(changed.body).toMatchObject({ key_name: null, budget_exempt: true, metadata: { team: 'infra' } })

    const rotated = await asMaster('POST', `/api/v1/keys/${id}/rotate`)
    expect(rotated.body).toMatchObject({ id, budget_exempt: true, key_prefix: rotated.body.key?.slice(0, 11) })
    expect(await works(key!)).toBe(401)
    expect(await works(rotated.body.key!)).toBe(200)

    const removed = await asMaster('DELETE', `/api/v1/keys/${id}`)
    expect([removed.status, removed.text]).toEqual([204, ''])
    expect(await works(rotated.body.key!)).toBe(401)
    expect((await asMaster('GET', `/api/v1/keys/${id}`)).status).toBe(404)
    expect((await asMaster('DELETE', `/api/v1/keys/${id}`)).status).toBe(404)
    expect((await asMaster('PATCH', `/api/v1/keys/${id}`, { key_name: 'x' })).status).toBe(404)
    expect((await asMaster('POST', `/api/v1/keys/${id}/rotate`)).status).toBe(404)
  })

  test('A-02 no key stands in the database, the log or a list, whole or in part beyond its prefix', async () => {
    const { key } = await rig.makeKey()
    await works(key)
    const tables = await sql<{ table_name: string }>`
      select table_name from information_schema.tables where table_schema = 'gateway'`.execute(rig.db.kysely)
    expect(tables.rows.length).toBeGreaterThan(4)
    for (const secret of [key, rig.firstKey, rig.masterKey]) {
      for (const { table_name } of tables.rows) {
        const { rows } = await sql`select t::text as row from ${sql.table(`gateway.${table_name}`)} t`.execute(
          rig.db.kysely,
        )
        expect(JSON.stringify(rows)).not.toContain(secret.slice(14, 30))
      }
      expect(rig.logged()).not.toContain(secret.slice(14, 30))
    }
  })

  test('A-02 ten thousand keys differ, also in their random part', async () => {
    const { mintKey } = await import('../../src/auth/secret-key.ts')
    const keys = Array.from({ length: 10_000 }, () => mintKey())
    expect(new Set(keys.map(({ plaintext }) => plaintext)).size).toBe(10_000)
    expect(new Set(keys.map(({ hash }) => hash)).size).toBe(10_000)
  })

  test('A-02 a change made on one replica counts on the other at once', async () => {
    const replica = await rig.replica()
    const { id, key } = await rig.makeKey()
    expect(await works(key)).toBe(200)
    expect(await works(key, replica)).toBe(200)
    await replica.send('PATCH', `/api/v1/keys/${id}`, { key: rig.masterKey, body: { is_active: false } })
    expect(await works(key, replica)).toBe(401)
    await expect.poll(() => works(key), { timeout: 1_000 }).toBe(401)
  })

  test('a key that was asked for before it existed works once it is made', async () => {
    const { id, key } = await rig.makeKey()
    const rotated = await asMaster('POST', `/api/v1/keys/${id}/rotate`)
    expect(await works(key)).toBe(401)
    expect(await works(rotated.body.key!)).toBe(200)
  })

  test('pages of a list do not overlap and know how many there are', async () => {
    await asMaster('POST', '/api/v1/users', { user_id: 'pages' })
    for (let i = 0; i < 5; i++) await rig.makeKey({ user_id: 'pages' })
    const page = (skip: number) => asMaster<List>('GET', `/api/v1/keys?user_id=pages&skip=${skip}&limit=2`)
    const pages = await Promise.all([page(0), page(2), page(4)])
    expect(pages.map(({ body }) => body.data.length)).toEqual([2, 2, 1])
    expect(pages.map(({ body }) => body.count)).toEqual([5, 5, 5])
    expect(new Set(pages.flatMap(({ body }) => body.data.map(({ id }) => id))).size).toBe(5)
  })
})

describe('A-03 whose a key is', () => {
  test('A-03 belongs to the named user, else to the shared one', async () => {
    await asMaster('POST', '/api/v1/users', { user_id: 'ann' })
    expect((await asMaster('POST', '/api/v1/keys', { user_id: 'ann' })).body.user_id).toBe('ann')
    expect((await asMaster('POST', '/api/v1/keys', {})).body.user_id).toBe('default')
  })

  test.each([
    ['a user that is not there', { user_id: 'nobody' }, "User 'nobody' not found"],
    ['a workspace that is not there', { workspace_id: 'nowhere' }, "Workspace 'nowhere' not found"],
  ])('A-03 refuses %s', async (_, body, detail) => {
    expect(await asMaster('POST', '/api/v1/keys', body)).toMatchObject({ status: 404, body: { detail } })
  })
})

describe('who may manage keys', () => {
  test.each([
    ['GET', '/api/v1/keys'],
    ['POST', '/api/v1/keys'],
    ['GET', '/api/v1/keys/x'],
    ['PATCH', '/api/v1/keys/x'],
    ['DELETE', '/api/v1/keys/x'],
    ['POST', '/api/v1/keys/x/rotate'],
    ['GET', '/api/v1/users'],
    ['POST', '/api/v1/users'],
    ['PATCH', '/api/v1/users/x'],
    ['GET', '/v1/keys'],
  ])('%s %s: nobody is 401, a key is 403', async (method, path) => {
    const body = method === 'GET' || method === 'DELETE' ? {} : { body: '{"not":"read"}' }
    expect((await rig.send(method, path, body)).status).toBe(401)
    expect(await rig.send(method, path, { key: rig.firstKey, ...body })).toMatchObject({
      status: 403,
      body: { detail: 'This endpoint requires the master key' },
    })
  })
})

describe('what a key may be given', () => {
  test.each([
    ['an unknown member', { colour: 'red' }, ['body']],
    ['a name that is a number', { key_name: 7 }, ['body', 'key_name']],
    ['an empty name', { key_name: '' }, ['body', 'key_name']],
    ['a name of 256 characters', { key_name: 'x'.repeat(256) }, ['body', 'key_name']],
    ['a name with a NUL', { key_name: 'a\0b' }, ['body', 'key_name']],
    ['a name with a line break', { key_name: 'a\nb' }, ['body', 'key_name']],
    ['a time that is none', { expires_at: 'tomorrow' }, ['body', 'expires_at']],
    ['a time before all years', { expires_at: '0000-01-01T00:00:00Z' }, ['body', 'expires_at']],
    ['a time after all years', { expires_at: '9999-12-31T23:59:59-01:00' }, ['body', 'expires_at']],
    ['a time without an offset', { expires_at: '2030-01-01T00:00:00' }, ['body', 'expires_at']],
    ['a boolean as text', { budget_exempt: 'true' }, ['body', 'budget_exempt']],
    ['a list as text', { allowed_models: 'openai:*' }, ['body', 'allowed_models']],
    ['a pattern without an instance', { allowed_models: ['gpt-4o'] }, ['body', 'allowed_models', 0]],
    ['a pattern with a star inside', { allowed_models: ['openai:g*o'] }, ['body', 'allowed_models', 0]],
    ['a pattern of a star alone', { allowed_models: ['*'] }, ['body', 'allowed_models', 0]],
    ['a pattern without a model', { allowed_models: ['openai:'] }, ['body', 'allowed_models', 0]],
    ['a wildcard instance', { allowed_models: ['*:gpt-4o'] }, ['body', 'allowed_models', 0]],
    ['metadata with a NUL in it', { metadata: { a: { b: 'x\0' } } }, ['body', 'metadata']],
    ['metadata of 20 kB', { metadata: { a: 'x'.repeat(20_000) } }, ['body', 'metadata']],
    ['a list', [], ['body']],
    ['nothing', null, ['body']],
    ['a text', '"x"', ['body']],
  ])('%s is a 422 that says where', async (_, body, loc) => {
    const refused = await asMaster<{ detail: { loc: unknown; msg: string; type: string }[] }>(
      'POST',
      '/api/v1/keys',
      body,
    )
    expect(refused.status).toBe(422)
    expect(refused.body.detail[0]).toEqual({ loc, msg: expect.any(String), type: expect.any(String) })
  })

  test.each([
    ['a name in any letters', { key_name: 'Schlüssel 🔑' }],
    ['a name of 255 characters', { key_name: 'x'.repeat(255) }],
    ['a time with an offset', { expires_at: '2030-01-01T00:00:00+02:00' }],
    ['an empty list of models', { allowed_models: [] }],
    ['every kind of pattern', { allowed_models: ['openai:gpt-4o', 'openai:*', 'hf:meta-llama/Llama-3*'] }],
    ['nested metadata', { metadata: { a: { b: [1, null, true, { c: 'd' }] } } }],
    ['the same name twice over', { name: 'n', key_name: 'n' }],
  ])('%s is fine', async (_, body) => {
    expect((await asMaster('POST', '/api/v1/keys', body)).status).toBe(200)
  })

  test('a time is kept as the instant it is', async () => {
    const { body } = await asMaster('POST', '/api/v1/keys', { expires_at: '2030-01-01T00:00:00+02:00' })
    expect(body.expires_at).toBe('2029-12-31T22:00:00.000Z')
  })

  test('null clears a limit and what is not said stays', async () => {
    const { id } = await rig.makeKey({ allowed_models: ['openai:*'], key_name: 'kept' })
    const { body } = await asMaster('PATCH', `/api/v1/keys/${id}`, { allowed_models: null })
    expect(body).toMatchObject({ allowed_models: null, key_name: 'kept' })
  })
})

test.each(['/keys?user_id=a%00b', '/keys?workspace_id=%00', '/keys/a%00b', '/keys/%ff', '/users/%00'])(
  '%s names what no database can hold, and is a mistake of the caller',
  async (path) => {
    const { status } = await asMaster('GET', `/api/v1${path}`)
    expect(status).toBeGreaterThanOrEqual(400)
    expect(status).toBeLessThan(500)
  },
)

test('a metadata text that looks like an exact number stays a text', async () => {
  const { body } = await asMaster('POST', '/api/v1/keys', { metadata: { a: '0.1', b: 0.1 } })
  expect(body.metadata).toEqual({ a: '0.1', b: 0.1 })
})

import { afterAll, beforeAll, expect, inject, test } from 'vitest'
import { type Rig, startRig } from '../rig.ts'

let rig: Rig
beforeAll(async () => {
  rig = await startRig({ postgresUrl: inject('postgresUrl') })
})
afterAll(() => rig.close())

const asMaster = <B = unknown>(method: string, path: string, body?: unknown) =>
  rig.send<B>(method, path, { key: rig.masterKey, ...(body === undefined ? {} : { body }) })

test('a user is made, shown, changed and listed', async () => {
  const made = await asMaster('POST', '/api/v1/users', { user_id: 'ann@example.com', alias: 'Ann', metadata: { a: 1 } })
  expect(made).toMatchObject({
    status: 200,
    body: {
      user_id: 'ann@example.com',
      alias: 'Ann',
      blocked: false,
      allowed_models: null,
      allowed_tools: null,
      metadata: { a: 1 },
    },
  })
  expect((await asMaster('GET', '/api/v1/users/ann@example.com')).body).toEqual(made.body)
  expect((await asMaster('GET', '/api/v1/users/ann%40example.com')).body).toEqual(made.body)
  const changed = await asMaster('PATCH', '/api/v1/users/ann@example.com', { blocked: true, alias: null })
  expect(changed.body).toMatchObject({ blocked: true, alias: null, metadata: { a: 1 } })
  expect((await asMaster('PATCH', '/api/v1/users/ann@example.com', {})).body).toEqual(changed.body)
  const list = await asMaster<{ data: { user_id: string }[]; count: number }>('GET', '/api/v1/users')
  expect(list.body.data.map((user) => user.user_id)).toEqual(['ann@example.com', 'default'])
  expect(list.body.count).toBe(2)
})

test('a user that is there already is a conflict and stays as it is', async () => {
  await asMaster('POST', '/api/v1/users', { user_id: 'twice', alias: 'first' })
  expect(await asMaster('POST', '/api/v1/users', { user_id: 'twice', alias: 'second' })).toMatchObject({
    status: 409,
    body: { detail: "User 'twice' exists" },
  })
  expect((await asMaster('GET', '/api/v1/users/twice')).body).toMatchObject({ alias: 'first' })
})

test('twenty that make one user at once make one', async () => {
  const made = await Promise.all(
    Array.from({ length: 20 }, () => asMaster('POST', '/api/v1/users', { user_id: 'race' })),
  )
  expect(made.filter(({ status }) => status === 200)).toHaveLength(1)
  expect(made.filter(({ status }) => status === 409)).toHaveLength(19)
})

test.each(['nobody', 'a%00b', 'a%2Fb', '%F0%9F%94%91'])(
  'a user %s that is not there is not found or no name',
  async (id) => {
    expect([404, 422]).toContain((await asMaster('GET', `/api/v1/users/${id}`)).status)
    expect([404, 422]).toContain((await asMaster('PATCH', `/api/v1/users/${id}`, { blocked: true })).status)
  },
)

test.each([
  [{}, 'no id'],
  [{ user_id: '' }, 'an empty id'],
  [{ user_id: 'a\0' }, 'an id with a NUL'],
  [{ user_id: 'x'.repeat(256) }, 'an id of 256 characters'],
  [{ user_id: 'x\ud800' }, 'an id with half a surrogate pair'],
  [{ user_id: 'x', metadata: { a: ['b\0'] } }, 'metadata with a NUL'],
  [{ user_id: 'x', metadata: { a: ['b\udfff'] } }, 'metadata with half a surrogate pair'],
  [{ user_id: 'x', metadata: { '\ud800': 1 } }, 'metadata named by half a surrogate pair'],
  [{ user_id: 'x', allowed_models: ['demo:\ud800'] }, 'a pattern with half a surrogate pair'],
  [{ user_id: 'x', blocked: 'yes' }, 'a block that is a text'],
  [{ user_id: 'x', organization: 'other' }, 'an organization'],
  [{ user_id: 'x', allowed_models: ['nope'] }, 'a pattern that is none'],
])('%j is refused: %s', async (body, _why) => {
  expect((await asMaster('POST', '/api/v1/users', body)).status).toBe(422)
})

test('metadata may speak of what it may not hold', async () => {
  const metadata = { '\\u0000': '\\ud800 and \\\\u0000', key: '🔑' }
  const made = await asMaster('POST', '/api/v1/users', { user_id: 'escapes', metadata })
  expect(made).toMatchObject({ status: 200, body: { metadata } })
})
